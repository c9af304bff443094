"""Merge two JSON objects.

    python3 -m utils.merged_json BASE CHANGES TARGET

writes BASE to TARGET, with the members of CHANGES in place of its own. Exit code: 1 where one of them is none.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main(argv: list[str]) -> int:
    """Returns the exit code."""
    if len(argv) != 3:
        print("usage: python3 -m utils.merged_json BASE CHANGES TARGET", file=sys.stderr)
        return 2
    merged: dict[str, object] = {}
    for path in map(Path, argv[:2]):
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            print(f"{path}: {error}", file=sys.stderr)
            return 1
        if not isinstance(content, dict):
            print(f"{path}: is no JSON object", file=sys.stderr)
            return 1
        merged |= content
    Path(argv[2]).write_text(json.dumps(merged, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
