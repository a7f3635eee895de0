from math import prod

import torch
from torch import Tensor


def row_means(name: str, count):
    """An operator with one number a row; its fake counts rows by count."""

    @torch.library.custom_op(f"fakes::{name}", mutates_args=())
    def means(x: Tensor) -> Tensor:
        return x.mean(dim=-1).flatten()

    @means.register_fake
    def _(x: Tensor) -> Tensor:
        return x.new_empty(count(x.shape[:-1]))

    return means


FAKES = {
    "numel": row_means("numel", torch.Size.numel),
    "prod": row_means("prod", prod),
}
