"""python3 -m benchmarks.search.prepare"""

import sys

from benchmarks.search.prepare.command import main

if __name__ == "__main__":
    sys.exit(main())
