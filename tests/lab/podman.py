"""Podman on a machine that is itself in a sandbox: what its containers.conf must say there.

That is a matter of the machine, as it is for any user of Podman: FlagPerf itself knows nothing of it.
"""

from __future__ import annotations

import resource
from functools import cache
from pathlib import Path

from tests.lab.commands import LabError, run

# Version 2's tree beside those of version 1: crun refuses that, runc does not.
HYBRID_CGROUPS = Path("/sys/fs/cgroup/unified")
CONF = Path("/var/tmp/flagperf-test-podman/containers.conf")


def containers_conf() -> str:
    """The text of a containers.conf with which Podman runs here: with limits that nobody need raise."""
    nofile = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    pids = int(Path("/proc/sys/kernel/pid_max").read_text())
    hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    nproc = pids if hard == resource.RLIM_INFINITY else min(hard, pids)
    lines = ["[containers]", f'default_ulimits = ["nofile={nofile}:{nofile}", "nproc={nproc}:{nproc}"]']
    if HYBRID_CGROUPS.is_dir():
        lines += ["[engine]", 'runtime = "runc"', 'cgroup_manager = "cgroupfs"']
    return "\n".join(lines) + "\n"


# $1: the user to make on a host. The home lies where Podman's layers may lie; as root's, the account has no password.
ADMIT_USER = """set -e
id "$1" 2>/dev/null && exit
home=/var/lib/containers/home
chmod 755 /var/lib/containers
mkdir -p "$home"
useradd --create-home --home-dir "$home/$1" --password '*' --shell /bin/bash "$1"
cd "$home/$1"
mkdir -p .ssh .config/containers
cp /root/.ssh/authorized_keys .ssh/
printf '[storage]\ndriver = "overlay"\n' >.config/containers/storage.conf
chown -R "$1:" .
"""


@cache
def command() -> str:
    """What CONTAINER_ENGINE is for this machine's own Podman, with those settings.

    Raises:
        LabError: there is no podman that answers.
    """
    CONF.parent.mkdir(parents=True, exist_ok=True)
    CONF.write_text(containers_conf())
    wrapper = CONF.with_name("podman")
    wrapper.write_text(f'#!/bin/sh\nexec env CONTAINERS_CONF={CONF} podman "$@"\n')
    wrapper.chmod(0o755)
    try:
        run([str(wrapper), "version"])
    except (LabError, OSError) as error:
        raise LabError(f"podman does not answer: {error}", "apt-get install podman") from error
    return str(wrapper)
