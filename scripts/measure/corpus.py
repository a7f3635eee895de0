"""Text that is on every machine: the sources of Python's standard library, as bytes."""

from functools import cache

# Modules that Python 3.11 to 3.13 all ship as one file.
MODULES = """
argparse ast bdb calendar cmd codecs configparser copy csv datetime difflib dis
doctest enum fractions ftplib functools getopt gettext gzip heapq imaplib inspect
ipaddress locale mailbox mimetypes netrc optparse os pdb pickle pickletools
platform plistlib poplib pprint profile pstats pydoc queue random sched selectors
shelve shlex shutil smtplib socket socketserver statistics subprocess symtable
tarfile tempfile textwrap threading timeit tokenize trace traceback turtle types
typing uuid warnings wave weakref webbrowser
"""
HELD_OUT = 10  # the last 1/10 of each module's bytes


@cache
def corpus():
    """(training bytes, held-out bytes), both int64 tensors of values below 256."""
    import os
    from pathlib import Path

    import torch

    folder = Path(os.__file__).parent
    training, held_out = bytearray(), bytearray()
    for name in sorted(MODULES.split()):
        text = (folder / f"{name}.py").read_bytes()
        cut = len(text) - len(text) // HELD_OUT
        training += text[:cut]
        held_out += text[cut:]
    return tuple(
        torch.frombuffer(part, dtype=torch.uint8).long()
        for part in (training, held_out)
    )


def sample(data, batch, context, generator):
    """(batch, context + 1) consecutive bytes from random places."""
    import torch

    starts = torch.randint(len(data) - context, (batch, 1), generator=generator)
    return data[starts + torch.arange(context + 1)]


def loss_of(model, text):
    """Mean cross-entropy in nats per byte; text is (batch, context + 1)."""
    from torch.nn import functional as F

    logits = model(text[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())
