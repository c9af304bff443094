"""python3 -m benchmarks.cpm.prepare"""

import sys

from benchmarks.cpm.prepare.command import main

if __name__ == "__main__":
    sys.exit(main())
