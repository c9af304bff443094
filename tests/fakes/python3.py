"""FAKE python3, at the tool's boundary: writes down what pip is asked, and knows which builds there are.

The real thing is several hundred MB and runs when the harness builds an image.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

TRAINING = Path(__file__).parents[2] / "training"
FAKE_PYTHON = """#!/bin/sh
[ "$1" = -c ] && exit 0
echo "$*" >> "$ASKED"
case "$*" in $GUARDED) ;; *) exit 0 ;; esac
case "$*" in $THERE_IS) exit 0 ;; *) exit 1 ;; esac
"""


def install(
    framework: str, vendor: str, guarded: str, there_is: str, folder: Path
) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """Run a vendor's install script where, of what matches `guarded`, only what matches `there_is` can be had.

    Both are shell patterns. Returns the end of the script, and what pip was asked for.
    """
    python = folder / "python3"
    python.write_text(FAKE_PYTHON.replace("$GUARDED", guarded).replace("$THERE_IS", there_is))
    python.chmod(0o755)
    asked = folder / "asked"
    environment = {"PATH": f"{folder}:{os.environ['PATH']}", "ASKED": str(asked)}
    script = TRAINING / vendor / "docker_image" / framework / f"{framework}_install.sh"
    done = subprocess.run(["sh", str(script)], env=environment, capture_output=True, text=True, check=False)
    prefix = "-m pip install --quiet "
    return done, [line.removeprefix(prefix) for line in asked.read_text().splitlines()]
