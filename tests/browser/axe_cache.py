"""The looks of elements that axe has judged and not failed, shared by all workers."""

import hashlib
from pathlib import Path


class Looks:
    """A line of a file for each look; workers append, and read what others wrote."""

    def __init__(self, file: Path):
        self._file, self._read, self._known = file, 0, set()

    def unknown(self, looks: list[str]) -> list[str]:
        """Those of ``looks`` that no worker has added yet."""
        if self._file.exists():
            with self._file.open("rb") as file:
                file.seek(self._read)
                lines = file.read().split(b"\n")
            whole = lines[:-1]  # the last one may be half written
            self._read += sum(len(line) + 1 for line in whole)
            self._known.update(line.decode() for line in whole)
        return [look for look in looks if _digest(look) not in self._known]

    def add(self, looks: list[str]) -> None:
        lines = "".join(_digest(look) + "\n" for look in looks)
        with self._file.open("ab", buffering=0) as file:
            file.write(lines.encode())


def _digest(look: str) -> str:
    return hashlib.sha256(look.encode()).hexdigest()
