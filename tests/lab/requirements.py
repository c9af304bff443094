"""Whether this machine can make a lab, and if not, why."""

from __future__ import annotations

import os
import shutil
import tempfile
from functools import cache

from tests.lab.commands import LabError, run
from tests.lab.place import labs_folder

# command -> Debian package
COMMANDS = {
    "ip": "iproute2",
    "tc": "iproute2",
    "iptables": "iptables",
    "nsenter": "util-linux",
    "unshare": "util-linux",
    "dockerd": "docker.io",
    "docker": "docker.io (docker-cli)",
    "sshd": "openssh-server",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
}
# A host sees this machine's root file system and none that is mounted on it, so the tools must be on that one.
OVERLAY_PROBE = """
cd "$1" && mkdir u w m && mount -t overlay overlay -o lowerdir=/,upperdir=u,workdir=w m || exit 1
for file in $(command -v bash dockerd docker sshd); do
  [ -x "m$file" ] || { echo "$file is not on the root file system"; exit 1; }
done
umount m
"""


@cache
def why_not() -> str | None:
    """The reason why this machine cannot make a lab, with the remedy; None: it can."""
    if os.geteuid() != 0:
        return "namespaces and mounts need root (run the tests as root)"
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    missing = [command for command in COMMANDS if shutil.which(command, path=path) is None]
    if missing:
        packages = " ".join(sorted({COMMANDS[command] for command in missing}))
        return f"{', '.join(missing)} not found (apt-get install {packages})"
    try:
        _probe_kernel()
    except (LabError, OSError) as error:
        return f"{error} (tests/lab/README.md, 'What it needs')"
    return None


def _probe_kernel() -> None:
    """Tries what no list of commands can tell: namespaces and an overlay on the lab's file system."""
    run(["unshare", "--net", "--mount", "--pid", "--uts", "--ipc", "--fork", "true"])
    labs_folder().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="probe.", dir=labs_folder()) as folder:
        run(["unshare", "--mount", "--propagation", "private", "sh", "-c", OVERLAY_PROBE, "probe", folder])
