"""How long a writer waits under `make serve` until a changed page is shown."""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.site.conftest import Project
from tests.site.served import serve, wait_for

EDITS = 5


def seconds() -> Iterator[tuple[str, float]]:
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder))
        page = project.page("index.md", "en")
        with serve(project) as address:
            yield "first page under make serve", wait_for(address + "en/", "Norms")
            wait_for(address + "zh/", "归一化")
            for number in range(EDITS):
                time.sleep(1)  # between two edits, as a writer's
                project.append(page, f"\nSentence number {number}.\n")
                waited = wait_for(address + "en/", f"Sentence number {number}.")
                yield "reload of one changed page", waited
