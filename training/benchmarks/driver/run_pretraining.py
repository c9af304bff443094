import time

SCRIPT_START = time.monotonic()  # before anything else is imported: e2e_time begins here

import sys  # noqa: E402

from benchmarks.driver.session import run_and_exit  # noqa: E402

if __name__ == "__main__":
    run_and_exit(sys.argv[1:], SCRIPT_START)
