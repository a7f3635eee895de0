"""Steps in several processes of one thread each, for training on a CPU.

Small models leave a second core idle whatever torch does with threads, and a sum
split over threads depends on their number. One process a core, with one thread,
is faster, and its rows depend on neither load nor cores.

A worker is this file run as a program. It reads numbers of steps, one a line,
and answers each with its rows as a line of JSON. When the one that started it is
gone, however that came about, its input ends and it stops at once.
"""

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from scripts.measure.records import ROOT, RecordError, Step, load_experiment

ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}


class Worker:
    """One process that runs steps of one experiment."""

    def __init__(self, name: str, size: str, folder: Path) -> None:
        self.name = name
        self.process = subprocess.Popen(
            [sys.executable, "-m", "scripts.measure.workers", name, size, str(folder)],
            cwd=ROOT,
            env=os.environ | ONE_THREAD,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C is for the one that started it
        )

    def run(self, step: int) -> list[dict]:
        """A step's rows; RecordError when the process ended instead."""
        try:
            self.process.stdin.write(f"{step}\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except (OSError, ValueError):
            line = ""
        if not line.endswith("\n"):
            raise RecordError(f"experiment {self.name!r}: a step failed, see above")
        return json.loads(line)

    def stop(self) -> None:
        """End it, in the middle of a step or not."""
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


def share(
    name: str,
    size: str,
    folder: Path,
    steps: Sequence[Step],
    todo: Sequence[int],
    processes: int,
    fits: Callable[[int], bool],
) -> Iterator[tuple[int, list[dict], float]]:
    """(index, rows, seconds) of the steps to do, as they end.

    Timed steps come last, one at a time. A step for which ``fits`` says no is
    left out. Raises RecordError when a step fails.
    """
    together = [index for index in todo if not steps[index].timed]
    alone = [index for index in todo if steps[index].timed]
    # The longest first, so that no core waits for one long step at the end.
    together.sort(key=lambda index: -steps[index].cost)
    for indices, count in ((together, processes), (alone, 1)):
        workers = [Worker(name, size, folder) for _ in indices[:count]]
        try:
            yield from _spread(indices, workers, fits)
        finally:
            for worker in workers:
                worker.stop()


def _spread(
    indices: Sequence[int], workers: Sequence[Worker], fits: Callable[[int], bool]
) -> Iterator[tuple[int, list[dict], float]]:
    waiting, done = iter(indices), queue.Queue()

    def begin(worker: Worker) -> bool:
        index = next(filter(fits, waiting), None)
        if index is not None:
            threading.Thread(target=run, args=(worker, index), daemon=True).start()
        return index is not None

    def run(worker: Worker, index: int) -> None:
        begun = time.monotonic()
        try:
            rows = worker.run(index)
        except Exception as error:
            rows = error
        done.put((worker, index, rows, time.monotonic() - begun))

    busy = sum([begin(worker) for worker in workers])
    while busy:
        worker, index, rows, seconds = done.get()
        if isinstance(rows, Exception):
            raise rows
        yield index, rows, seconds
        busy -= not begin(worker)


def main(name: str, size: str, folder: str) -> None:
    """The worker: answer until the input ends."""
    answers, sys.stdout = sys.stdout, sys.stderr  # a step may print
    asked: queue.Queue[int] = queue.Queue()

    def listen() -> None:
        for line in sys.stdin:
            asked.put(int(line))
        os._exit(0)

    steps = load_experiment(name, Path(folder)).measure(size)
    threading.Thread(target=listen, daemon=True).start()
    while True:
        rows = steps[asked.get()].run()
        print(json.dumps(rows), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
