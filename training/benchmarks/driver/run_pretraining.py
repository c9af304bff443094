import time

SCRIPT_START = time.monotonic()  # before anything else is imported: e2e_time begins here

import gc  # noqa: E402
import sys  # noqa: E402
from pathlib import Path  # noqa: E402

# Until training is ready: to look through all that frameworks import, again and again, is a seventh of the start.
gc.disable()

if sys.path[0] == str(Path(__file__).resolve().parent):
    del sys.path[0]  # Python put this folder there, and its `paddle` would be taken for PaddlePaddle

from benchmarks.driver.session import run_and_exit  # noqa: E402

if __name__ == "__main__":
    run_and_exit(sys.argv[1:], SCRIPT_START)
