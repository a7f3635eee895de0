# --8<-- [start:Traffic]
from dataclasses import dataclass


@dataclass(frozen=True)
class Traffic:
    """What a fused kernel must move, each tensor once."""

    reads: int  # tensors as large as x
    writes: int
    gains: int = 0  # vectors as wide as a row: gains, biases, their gradients
    statistics: int = 0  # float32 numbers a row

    def moved(self, rows: int, width: int, size: int = 2) -> int:
        """Bytes for x of (rows, width) at ``size`` bytes a number."""
        large = (self.reads + self.writes) * rows * width * size
        return large + self.gains * width * size + self.statistics * rows * 4


KERNELS = {
    "soft cap": Traffic(1, 1),
    "soft cap, backward": Traffic(2, 1),
    "RMSNorm": Traffic(1, 1, gains=1, statistics=1),
    "RMSNorm, backward": Traffic(2, 1, gains=2, statistics=1),
    "LayerNorm": Traffic(1, 1, gains=2, statistics=2),
    "LayerNorm, backward": Traffic(2, 1, gains=3, statistics=2),
    "add and RMSNorm": Traffic(2, 2, gains=1, statistics=1),
    "add and RMSNorm, backward": Traffic(3, 1, gains=2, statistics=1),
}
# --8<-- [end:Traffic]


# --8<-- [start:seconds]
DATASHEET = {"H100": 3.35e12, "H200": 4.8e12}  # bytes a second, at most
# Of a copy on it: put in your own (see below).
ASSUMED = {card: 0.9 * rate for card, rate in DATASHEET.items()}


def seconds(
    moved: int, rate: float, launches: int = 1, start: float = 0.0
) -> float:
    """At least this long: for the bytes, or for starting the kernels."""
    return max(moved / rate, launches * start)


# --8<-- [end:seconds]
