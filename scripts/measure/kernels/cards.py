"""Cards by the name that their driver gives: peaks, and the copy that each reached."""

from dataclasses import dataclass
from math import isnan

from scripts.measure import records
from scripts.measure.kernels import report

COPY = 0.9  # of the datasheet's bandwidth, assumed of a card that has no record
RECORDED = ("norm_bandwidth", "norm_backward", "qk_norm_bandwidth", "launch_bound")


@dataclass(frozen=True)
class Card:
    """What its datasheet says: docs/data/references.bib, `source`."""

    name: str
    driver: str  # as nvidia-smi names it
    bandwidth: float  # bytes a second
    float32: float  # operations a second, outside the tensor cores
    source: str
    sms: int = 132


CARDS = {
    "h100": Card("H100 SXM", "NVIDIA H100 80GB HBM3", 3.35e12, 67e12, "nvidia2024h100"),
    "h200": Card("H200 SXM", "NVIDIA H200", 4.8e12, 67e12, "nvidia2024h200"),
}


def of(card: Card, names=RECORDED) -> list[records.Record]:
    """The records of a card."""
    found = [record for name in names for record in records.find(name, records.RECORDS)]
    return [record for record in found if record.device == card.driver]


def copies(card: Card) -> list[float]:
    """Bytes a second of the large copies that the card's records have."""
    rates = map(report.copy_rate, of(card))
    return [rate for rate in rates if not isnan(rate)]


def copy_rate(card: Card) -> float:
    """Bytes a second of a large copy: as measured on this card, else assumed."""
    return max(copies(card), default=COPY * card.bandwidth)
