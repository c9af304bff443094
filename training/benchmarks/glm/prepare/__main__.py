"""python3 -m benchmarks.glm.prepare"""

import sys

from benchmarks.common.preparation.packages import packages_beside

with packages_beside(__file__):
    from benchmarks.glm.prepare.command import main

if __name__ == "__main__":
    sys.exit(main())
