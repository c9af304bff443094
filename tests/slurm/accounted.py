"""A Slurm that counts: with slurmdbd, and MariaDB behind it on a socket of its own, so that `sacct` knows its jobs."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.ports import free_port
from tests.slurm.fixtures import need_slurm
from tests.slurm.slurm import SBIN, Slurm, wait_until

TOOLS = ("mariadb-install-db", "my_print_defaults", "mariadbd", "slurmdbd", "sacct")
# A job that takes more memory than it asked for is killed: seen once a second, for there is no control group.
COUNTING = """\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={port}
AccountingStoragePass={folder}/munge.socket
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=1
JobAcctGatherParams=OverMemoryKill
SelectTypeParameters=CR_Core_Memory
"""
DATABASE = """\
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
DbdAddr=127.0.0.1
DbdHost=localhost
DbdPort={port}
SlurmUser=root
LogFile={folder}/slurmdbd.log
PidFile={folder}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=flagperf
"""


def why_no_accounting() -> str | None:
    """The reason why no Slurm can count on this machine, with the remedy; None: one can."""
    missing = [tool for tool in TOOLS if shutil.which(tool, path=SBIN) is None]
    packages = "mariadb-server-core mariadb-client-core slurmdbd"
    return f"{', '.join(missing)} not found (apt-get install {packages})" if missing else None


def need_accounting() -> None:
    """Skip where no Slurm can count; in CI, where that would hide a hole, fail."""
    need_slurm()
    if reason := why_no_accounting():
        reason = f"no accounting of Slurm on this machine: {reason}"
        pytest.fail(reason, pytrace=False) if os.environ.get("CI") else pytest.skip(reason)


@dataclass
class AccountedSlurm(Slurm):
    """A cluster whose jobs `sacct` knows; up in some five seconds more."""

    @property
    def variables(self) -> dict[str, str]:
        """By MYSQL_UNIX_PORT slurmdbd finds the database, which has no other address."""
        return {**super().variables, "MYSQL_UNIX_PORT": str(self._socket)}

    def wait_for_account(self, job: int) -> None:
        """Wait until a job and all of its steps have an end there; slurmctld sends it when it likes."""

        def have_ended() -> bool:
            argv = ["sacct", f"--jobs={job}", "--noheader", "--parsable2", "--format=End"]
            ends = self.run(*argv).split()
            return bool(ends) and "Unknown" not in ends

        wait_until(have_ended, self._logs)

    @property
    def _socket(self) -> Path:
        return self.folder / "mariadb.socket"

    def _start_munge(self) -> None:
        super()._start_munge()
        self._start_mariadb()
        self._start_slurmdbd()

    def _start_mariadb(self) -> None:
        data = self.folder / "mariadb"
        options = ["--no-defaults", "--user=root", f"--datadir={data}"]
        install = [
            "mariadb-install-db",
            *options,
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
        ]
        subprocess.run(install, check=True, capture_output=True, env=self.environment)
        small = [
            "--innodb-buffer-pool-size=16M",
            "--innodb-log-file-size=4M",
            "--innodb-flush-log-at-trx-commit=0",
        ]
        where = [f"--socket={self._socket}", "--skip-networking", f"--pid-file={self.folder / 'mariadb.pid'}"]
        self._start("mariadbd", ["mariadbd", *options, *where, *small])
        wait_until(self._socket.exists, self._logs, self._dead)

    def _start_slurmdbd(self) -> None:
        port = free_port()
        configuration = self.folder / "slurmdbd.conf"
        configuration.write_text(DATABASE.format(folder=self.folder, port=port))
        configuration.chmod(0o600)
        with self.configuration.open("a") as file:
            file.write(COUNTING.format(folder=self.folder, port=port))
        self._start("slurmdbd", ["slurmdbd", "-D"])
        wait_until(self._counts, self._logs, self._dead)

    def _counts(self) -> bool:
        """Whether slurmdbd answers, and knows the cluster."""
        argv = ("sacctmgr", "--immediate", "add", "cluster", "flagperf")
        done = subprocess.run(argv, env=self.environment, capture_output=True, text=True)
        return done.returncode == 0 or "already exists" in done.stdout
