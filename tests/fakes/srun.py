"""FAKE `srun` of a Slurm with Pyxis: takes those of the documented options that FlagPerf uses; there is no container.

It runs the command on this machine, with the environment that the real one would give it: what --export names, of which
the image keeps what --container-env does not name too.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

# Of `srun --help`: Slurm's, and those of Pyxis (github.com/NVIDIA/pyxis).
FLAGS = {
    "--overlap",
    "--quiet",
    "--no-container-mount-home",
    "--no-container-remap-root",
    "--no-container-entrypoint",
    "--container-readonly",
}
VALUES = {
    "--jobid",
    "--nodelist",
    "--nodes",
    "--ntasks",
    "--cpu-bind",
    "--mpi",
    "--export",
    "--container-env",
    "--container-image",
    "--container-mounts",
    "--container-workdir",
}
HELP = "      --container-env=NAME[,NAME...]"
VERSION = "slurm 22.05.8"


def install(folder: Path) -> Path:
    """Put the program into a folder; the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "srun").write_text(f"#!{sys.executable} -I\n{Path(__file__).read_text()}")
    (folder / "srun").chmod(0o755)
    return folder


def main(words: list[str]) -> None:
    """What the command line asks for."""
    if words in (["--help"], ["--version"]):
        print(HELP if words == ["--help"] else VERSION)
        return
    given: dict[str, str] = {}
    while words[0].startswith("-"):
        name, equals, value = words.pop(0).partition("=")
        if not (name in VALUES if equals else name in FLAGS):
            sys.exit(f"srun: unrecognized option '{name}'")
        given[name] = value
    if not Path(given["--container-image"]).is_file():
        sys.exit(f"slurmstepd: error: pyxis: no such file: {given['--container-image']}")
    kept = set(given["--export"].split(",")) & set(given["--container-env"].split(","))
    variables = {name: os.environ[name] for name in kept}
    about = {"options": given, "left": sorted(name for name in os.environ if name.startswith("SLURM"))}
    Path(os.environ["FAKE_SRUN_LOG"]).write_text(json.dumps(about))
    os.execvpe(words[0], words, {"PATH": os.environ["PATH"], **variables})  # noqa: S606 - an argv


if __name__ == "__main__":
    main(sys.argv[1:])
