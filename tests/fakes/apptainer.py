"""FAKE Apptainer: takes those of its documented options that FlagPerf uses. Its containers have this machine's tree.

A real one needs Apptainer's own starter. What it promises is made here by the kernel's own means, as root: a tree that
keeps nothing, bind mounts, processes and shared memory of its own, an environment of APPTAINERENV_* alone. `install`
puts it where a PATH finds it.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

# Of `apptainer exec --help`, and of `apptainer build --help` (apptainer.org/docs/user/main/cli).
FLAGS = {"--containall", "--no-home", "--no-privs", "--no-eval", "--nv", "--net"}
VALUES = {"--workdir", "--network", "--mount", "--pwd"}
HANDED_ON = "APPTAINERENV_"
VERSION = "apptainer version 1.3.4"


def install(folder: Path, *names: str) -> Path:
    """Put the program into a folder, under its name, or others; the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names or ("apptainer",):
        program = folder / name
        program.write_text(f"#!{sys.executable} -I\n{Path(__file__).read_text()}")
        program.chmod(0o755)
    return folder


def main(words: list[str]) -> None:
    """What the command line asks for."""
    if words == ["--version"]:
        print(VERSION)
    elif words[:1] == ["build"] and words[2].startswith("docker-archive:"):
        shutil.copy(words[2].partition(":")[2], words[1])
    elif words[:1] == ["exec"]:
        execute(words[1:])
    elif words[:1] == ["--inside"]:
        inside(json.loads(words[1]))
    else:
        sys.exit(f"unknown command {words}")


def execute(words: list[str]) -> None:
    """`apptainer exec [OPTIONS] IMAGE COMMAND...`."""
    options: list[tuple[str, str]] = []
    while words[0].startswith("-"):
        name, equals, value = words.pop(0).partition("=")
        if name in VALUES:
            options.append((name, value if equals else words.pop(0)))
        elif name in FLAGS and not equals:
            options.append((name, ""))
        else:
            sys.exit(f'Error for command "exec": unknown flag: {name}')
    image, *argv = words
    if not Path(image).is_file():
        print(f"FATAL:   could not open image {image}: no such file or directory", file=sys.stderr)
        sys.exit(255)
    given = dict(options)
    if "--workdir" in given and not Path(given["--workdir"]).is_dir():
        sys.exit("FATAL:   the workdir is not there")
    own = ["--net"] if given.get("--network") == "none" and "--net" in given else []
    mounts = [value for name, value in options if name == "--mount"]
    about = json.dumps(
        {"mounts": mounts, "pwd": given.get("--pwd", "/"), "tmp": given["--workdir"], "argv": argv}
    )
    unshare = ["unshare", "--mount", "--propagation=private", "--pid", "--ipc", "--fork", *own]
    os.execvp("unshare", [*unshare, sys.executable, "-I", sys.argv[0], "--inside", about])  # noqa: S606 - an argv


def inside(about: dict) -> None:
    """The first process of the container: makes its tree, starts the command, waits for all."""
    root = make_root(about)
    os.chroot(root)
    os.chdir(about["pwd"])
    variables = {
        name.removeprefix(HANDED_ON): value for name, value in os.environ.items() if HANDED_ON in name
    }
    path = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
    command = subprocess.Popen(about["argv"], env={"PATH": path, **variables})
    signal.signal(signal.SIGTERM, lambda *_: command.send_signal(signal.SIGTERM))
    code = command.wait()
    os._exit(code if code >= 0 else 128 - code)


def make_root(about: dict) -> str:
    """This machine's tree below a layer that keeps nothing, with the mounts."""
    base = Path(about["tmp"])
    mount("-t", "tmpfs", "tmpfs", str(base))
    for name in ("upper", "work", "root", "tmp"):
        (base / name).mkdir()
    root = base / "root"
    layers = f"lowerdir=/,upperdir={base}/upper,workdir={base}/work"
    mount("-t", "overlay", "overlay", "-o", layers, str(root))
    mount("-t", "proc", "proc", str(root / "proc"))
    mount("--rbind", "/dev", str(root / "dev"))
    mount("-t", "tmpfs", "-o", "mode=1777", "tmpfs", str(root / "dev/shm"))
    for each in about["mounts"]:
        fields = dict(field.partition("=")[::2] for field in each.split(","))
        bind(fields["source"], root / fields["destination"].lstrip("/"), read_only="ro" in fields)
    return str(root)


def bind(source: str, target: Path, *, read_only: bool) -> None:
    """A bind mount, whose target is made."""
    if Path(source).is_dir():
        target.mkdir(parents=True, exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    mount("--bind", source, str(target))
    if read_only:
        mount("-o", "remount,bind,ro", str(target))


def mount(*words: str) -> None:
    """`mount`, which has to succeed."""
    subprocess.run(["mount", *words], check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
