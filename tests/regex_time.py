"""Which regular expressions below a folder need more time than grows with their text.

`python -m tests.regex_time FOLDER LIMIT_S`: a line each. It is a process of its own, as it imports what it finds there
and ends what goes on for too long.
"""

from __future__ import annotations

import mmap
import os
import signal
import sys
import time
from collections import deque
from pathlib import Path
from typing import Any

from tests.regexes import Use, uses_of
from tests.worst_texts import WorstText, worst_texts

# A text of LONG characters takes a linear one milliseconds, or a second where it does much at each place, and a
# quadratic one minutes. Most need not be tried with it: of SHORT they are done at once, or of four times as many after
# no more than GROWS times as long.
SHORT, AT_ONCE_S, GROWS = 5_000, 0.003, 7
LONG = 200_000
PLACE_BYTES = 4


def main() -> None:
    """Print those of the folder."""
    for use in uses_of(Path(sys.argv[1])):
        text = _too_much(use, float(sys.argv[2]))
        if text is not None:
            print(f"{use}: {text}", flush=True)


def _too_much(use: Use[Any], limit_s: float) -> WorstText | None:
    """A text that it cannot cope with."""
    texts = worst_texts(use.pattern)
    place = mmap.mmap(-1, PLACE_BYTES)  # of the text, as the child knows it
    child = os.fork()
    if not child:
        for index, text in enumerate(texts):
            place[:] = index.to_bytes(PLACE_BYTES, "big")
            signal.setitimer(signal.ITIMER_PROF, limit_s)  # ends the process: an expression hears no handler
            short = _seconds(use, text.of_length(SHORT))
            if short > AT_ONCE_S and _seconds(use, text.of_length(4 * SHORT)) > GROWS * short:
                _seconds(use, text.of_length(LONG))
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, -signal.SIGPROF), use
    return texts[int.from_bytes(place[:], "big")] if code else None


def _seconds(use: Use[Any], text: str) -> float:
    """Of the processor's time, to go through the text."""
    given = text.encode() if isinstance(use.pattern.pattern, bytes) else text
    begin = time.process_time()
    if use.method == "finditer":
        deque(use.pattern.finditer(given), 0)
    else:
        getattr(use.pattern, use.method)(given)
    return time.process_time() - begin


if __name__ == "__main__":
    main()
