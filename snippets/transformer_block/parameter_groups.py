from torch import nn


def parameter_groups(model: nn.Module, weight_decay: float) -> list[dict]:
    """Matrices with weight decay, vectors (gains, biases) without."""
    matrices = [each for each in model.parameters() if each.ndim > 1]
    vectors = [each for each in model.parameters() if each.ndim < 2]
    return [
        {"params": matrices, "weight_decay": weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
