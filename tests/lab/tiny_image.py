"""A container image of a few MB, made in a second of this machine's own binaries, without a registry."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import tarfile
import zlib
from pathlib import Path

from tests.lab.commands import LabError, run

COMMANDS = ("sh", "cat", "sleep", "hostname", "ip", "dd", "ls", "ln", "mknod", "mount", "mv")
NAME = f"flagperf-lab-test:tiny-{zlib.crc32(' '.join(COMMANDS).encode()):08x}"


def build(engine: str = "docker") -> str:
    """Makes the image in an engine of this machine, unless it is there; returns its name."""
    present = run([*engine.split(), "image", "ls", "--quiet", NAME]).strip()
    if not present:
        done = subprocess.run([*engine.split(), "import", "-", NAME], input=_tree(), capture_output=True)
        if done.returncode:
            raise LabError(f"{engine} import failed: {done.stderr.decode().strip()}")
    return NAME


def _tree() -> bytes:
    """A tar archive of COMMANDS in /bin, and the libraries they need."""
    files = {}
    for command in COMMANDS:
        binary = shutil.which(command, path="/usr/bin:/bin:/usr/sbin:/sbin")
        if binary is None:
            raise LabError(f"there is no command {command!r}", "see tests/lab/README.md")
        files[f"bin/{command}"] = Path(binary)
        for library in re.findall(r"(/\S+) \(0x", run(["ldd", binary])):
            files[library.lstrip("/")] = Path(library)
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", dereference=True) as tar:
        for name, file in files.items():
            tar.add(file, name)
    return archive.getvalue()
