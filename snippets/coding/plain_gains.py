from torch import Tensor


def plain_gains(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Gains (d,) of Gemma's form, 1 + w, as plain ones in float32."""
    return {
        name: 1 + value.float() if name.endswith("norm.weight") else value
        for name, value in state.items()
    }
