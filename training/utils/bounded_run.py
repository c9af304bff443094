"""A command that somebody else wrote, run to its end: of what it prints no more is held than it should print.

Standard library, Python 3.8 or later.
"""

from __future__ import annotations

import os
import selectors
import subprocess
import time
from collections.abc import Mapping, Sequence

CHUNK_BYTES = 2**16


class TooMuchOutputError(Exception):
    """It printed more than it was to; it was killed."""


def run_bounded(
    argv: Sequence[str], *, timeout_s: float, most: int, cwd: str, env: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """As `subprocess.run` with its output captured and nothing to read; bytes that are no UTF-8 are replaced.

    Args:
        most: bytes of its standard output, and as many of its standard error.

    Raises:
        OSError: it cannot be started.
        subprocess.TimeoutExpired: it did not end in time; it was killed.
        TooMuchOutputError: it printed more than `most`.
    """
    pipe, until = subprocess.PIPE, time.monotonic() + timeout_s
    with subprocess.Popen(
        argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe
    ) as process:
        try:
            out, err = _outputs(process, until, most)
            code = process.wait(max(0.0, until - time.monotonic()))
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(argv, code, out.decode(errors="replace"), err.decode(errors="replace"))


def _outputs(process: subprocess.Popen[bytes], until: float, most: int) -> list[bytearray]:
    """What it prints to its standard output and its standard error, until both are closed."""
    outputs = [bytearray(), bytearray()]
    with selectors.DefaultSelector() as selector:
        for pipe, output in zip((process.stdout, process.stderr), outputs):  # noqa: B905 - not before Python 3.10
            if pipe:
                selector.register(pipe, selectors.EVENT_READ, output)
        while selector.get_map():
            left = until - time.monotonic()
            if left <= 0:
                raise subprocess.TimeoutExpired(process.args, 0)
            for key, _ in selector.select(left):
                chunk = os.read(key.fd, CHUNK_BYTES)
                key.data.extend(chunk)
                if len(key.data) > most:
                    raise TooMuchOutputError
                if not chunk:
                    selector.unregister(key.fileobj)
    return outputs
