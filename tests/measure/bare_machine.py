"""Run a script as on a machine that has torch, Triton, matplotlib, PyYAML, no more.

python tests/measure/bare_machine.py scripts/build.py measure norm_bandwidth
"""

import importlib.metadata
import runpy
import sys

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

WANTED = ("torch", "triton", "matplotlib", "PyYAML")


def packages(names=WANTED) -> set[str]:
    """Distributions with all that they need, by normalized name."""
    found, left = set(), list(map(canonicalize_name, names))
    while left:
        name = left.pop()
        if name in found:
            continue
        found.add(name)
        try:
            needed = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        asked = map(Requirement, needed)
        left += [
            canonicalize_name(r.name)
            for r in asked
            if not r.marker or r.marker.evaluate()
        ]
    return found


class Bare:
    """Finds no module of any other distribution."""

    def __init__(self):
        there = packages()
        self.hidden = {
            module
            for module, owners in importlib.metadata.packages_distributions().items()
            if not there & set(map(canonicalize_name, owners))
        }

    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top in self.hidden and top not in sys.stdlib_module_names:
            raise ModuleNotFoundError(f"No module named {top!r}", name=top)


if __name__ == "__main__":
    sys.meta_path.insert(0, Bare())
    sys.argv = sys.argv[1:]
    sys.path[0] = "."
    runpy.run_path(sys.argv[0], run_name="__main__")
