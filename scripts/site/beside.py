"""A function that runs beside this process, in a fork of it."""

import multiprocessing
import os
import sys
import tempfile


class Beside:
    """``with Beside(f, x) as other: ...; other.result()``; an error stops both.

    What it writes to stderr waits for `result`, so that a fault which both processes
    find is told once.
    """

    def __init__(self, function, *arguments):
        fork = multiprocessing.get_context("fork")
        self._said = tempfile.TemporaryFile("w+")  # noqa: SIM115 closed by __exit__
        self._outcome, self._sender = fork.Pipe(duplex=False)
        task = (function, arguments, self._sender, self._said.fileno())
        self._process = fork.Process(target=_run, args=task)

    def __enter__(self):
        self._process.start()
        self._sender.close()  # the other's is then the last: its death ends the pipe
        return self

    def result(self) -> None:
        """Wait, pass on what it said, raise what it raised."""
        try:
            error = self._outcome.recv()
        except EOFError:
            self._process.join()
            code = self._process.exitcode
            error = ChildProcessError(f"a process ended with {code}")
        self._said.seek(0)
        sys.stderr.write(self._said.read())
        if error:
            raise error

    def __exit__(self, kind, *_):
        if kind:
            self._process.terminate()
        self._process.join()
        self._said.close()


def _run(function, arguments, outcome, said) -> None:
    os.dup2(said, 2)
    try:
        function(*arguments)
    except BaseException as error:  # SystemExit too: MkDocs' Abort is one
        outcome.send(error)
    else:
        outcome.send(None)
