"""python3 -m benchmarks.bert.prepare"""

import sys

from benchmarks.bert.prepare.command import main

if __name__ == "__main__":
    sys.exit(main())
