"""Clock, temperature and power of the card, read while it works and not after."""

import subprocess
from statistics import median

EVERY = 10  # samples from one reading to the next


def reading() -> dict:
    """MHz, °C and W now, from the driver's library; {} where there is none."""
    import torch

    try:
        return {
            "mhz": torch.cuda.clock_rate(),
            "celsius": torch.cuda.temperature(),
            "watt": torch.cuda.power_draw() / 1000,
        }
    except Exception:  # each version of torch has its own error for this
        return {}


def reading_of_the_command() -> dict:
    """The same from nvidia-smi, which takes some tenths of a second."""
    fields = "clocks.sm,temperature.gpu,power.draw"
    command = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
    try:
        text = subprocess.run(
            command, capture_output=True, text=True, timeout=20
        ).stdout
        clock, heat, power = text.splitlines()[0].split(",")
        return {"mhz": int(clock), "celsius": int(heat), "watt": float(power)}
    except (OSError, ValueError, IndexError, subprocess.TimeoutExpired):
        return {}


class Card:
    """What the card did during one provider's samples.

    Power is the driver's mean over the last moments, in which all took their turn.
    """

    def __init__(self) -> None:
        self.asked, self.seen = 0, []

    def look(self) -> None:
        """Take a reading at every tenth call; by the command at the first alone."""
        if self.asked % EVERY == 0:
            found = reading()
            if not found and self.asked == 0:
                found = reading_of_the_command()
            self.seen += [found] if found else []
        self.asked += 1

    def summary(self) -> dict:
        """Median clock and the least, median power, most heat; {} without readings."""
        if not self.seen:
            return {}
        clocks = [each["mhz"] for each in self.seen]
        return {
            "mhz": median(clocks),
            "least_mhz": min(clocks),
            "celsius": max(each["celsius"] for each in self.seen),
            "watt": median(each["watt"] for each in self.seen),
        }
