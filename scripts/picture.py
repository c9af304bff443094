"""A picture of a run on a terminal, as an SVG file: what a terminal emulator shows while `run.py` works.

    .venv/bin/python scripts/picture.py docs/images/run.svg -- --config DIR

What follows `--` goes to `run.py`. Of the screens that show a panel, the one at `--at` of the way is taken.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import pyte
from rich.console import Console
from rich.text import Text

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.run_benchmarks.display.emulator import Terminal

RUN = Path(__file__).resolve().parents[1] / "training" / "run_benchmarks" / "run.py"
PANEL = "╭"


def main() -> int:
    """Run, and write the picture; the run's exit code."""
    end = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    arguments = _parsed(sys.argv[1:end])
    command = [sys.executable, str(RUN), *sys.argv[end + 1 :]]
    environment = {**os.environ, "TERM": "xterm-256color", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
    terminal = Terminal(command, environment, arguments.columns, arguments.lines)
    screens: list[Text] = []
    shown = before = 0
    while terminal.read():
        if len(terminal.raw) == before > shown and PANEL in terminal.text:  # whole, and another one
            screens.append(screen_text(terminal.screen))
            shown = before
        before = len(terminal.raw)
    code = terminal.wait()
    print(terminal.everything)
    if screens:
        picture = screens[min(int(arguments.at * len(screens)), len(screens) - 1)]
        arguments.file.parent.mkdir(parents=True, exist_ok=True)
        arguments.file.write_text(svg(picture, arguments.columns, "run.py"), encoding="utf-8")
    return code


def screen_text(screen: pyte.Screen) -> Text:
    """The screen with its colours, without empty lines at its end."""
    lines = []
    for number in range(screen.lines):
        line = Text()
        for column in range(screen.columns):
            cell = screen.buffer[number][column]
            line.append(cell.data, f"{'bold ' if cell.bold else ''}{_colour(cell.fg)}")
        line.rstrip()
        lines.append(line)
    while lines and not lines[-1]:
        lines.pop()
    return Text("\n").join(lines)


def svg(text: Text, columns: int, title: str) -> str:
    """The text as an SVG file that loads nothing from elsewhere."""
    console = Console(record=True, width=columns, file=io.StringIO(), force_terminal=True, color_system="256")
    console.print(text)
    drawn = console.export_svg(title=title, unique_id="run")
    return re.sub(r"\s*@font-face \{.*?\}", "", drawn, flags=re.DOTALL)


def _colour(name: str) -> str:
    """rich's name of a colour of pyte's."""
    if re.fullmatch("[0-9a-f]{6}", name):
        return f"#{name}"
    return {"brown": "yellow"}.get(name, name.replace("bright", "bright_"))


def _parsed(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="A picture of a run on a terminal; after `--`: arguments of run.py."
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("--columns", type=int, default=80)
    parser.add_argument("--lines", type=int, default=24)
    parser.add_argument("--at", type=float, default=0.8, help="0: the first screen with a panel, 1: the last")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
