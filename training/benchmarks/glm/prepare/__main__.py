"""python3 -m benchmarks.glm.prepare"""

import sys

from benchmarks.glm.prepare.command import main

if __name__ == "__main__":
    sys.exit(main())
