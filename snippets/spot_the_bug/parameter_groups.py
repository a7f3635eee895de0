from torch import nn


def parameter_groups(model: nn.Module, weight_decay: float) -> list[dict]:
    """Groups for AdamW: matrices decay, gains and biases do not."""
    decay, keep = [], []
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        if name.endswith("bias"):
            keep.append(parameter)
        else:
            decay.append(parameter)
    return [
        {"params": decay, "weight_decay": weight_decay},
        {"params": keep, "weight_decay": 0.0},
    ]
