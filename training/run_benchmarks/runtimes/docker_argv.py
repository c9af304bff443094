"""The container engine's command lines. Pure: a plan prints them, and a user can paste them into a shell."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from run_benchmarks.runtimes.base import Mount, Unit

SHARED_MEMORY = "/dev/shm"
LABEL_PREFIX = "flagperf."
RUN_LABEL = "flagperf.run"
LIMITS = ("--ulimit=memlock=-1", "--ulimit=stack=67108864")


@dataclass(frozen=True)
class Engine:
    """A container engine's command: `docker`, `podman`, or words before it, such as `sudo -n docker`."""

    words: tuple[str, ...]

    @property
    def is_podman(self) -> bool:
        """Whether it is podman, which has no server of its own to ask for its version."""
        return PurePosixPath(self.words[-1]).name == "podman"

    def start(self, unit: Unit, *, raise_limits: bool = True) -> tuple[str, ...]:
        """`docker run` for a unit.

        The host's network, UTS and IPC namespaces, locked memory, stack and seccomp are as FlagPerf sets
        them: collective libraries need them. `--privileged` comes only with the unit's own options, which
        stand last, so that they win. `raise_limits` False leaves locked memory and stack at the engine's own
        limits, for engines that may not raise them (rootless ones, or one inside a container).
        """
        return (
            *self.words,
            "run",
            "--detach",
            f"--name={unit.name}",
            *_flags("--label", unit.labels),
            *_namespaces(unit),
            *(LIMITS if raise_limits else ()),
            "--security-opt=seccomp=unconfined",
            # the engine's own default may keep nothing, and then a failed unit could not be explained
            "--log-driver=json-file",
            "--log-opt=max-size=16m",
            *_shared_memory(unit),
            *_flags("--env", unit.env),
            *(f"--mount={_bind(mount)}" for mount in unit.mounts),
            *((f"--workdir={unit.workdir}",) if unit.workdir else ()),
            *unit.options,
            # the image may bring an entrypoint of its own (the vendors' often do)
            f"--entrypoint={unit.argv[0]}",
            unit.image,
            *unit.argv[1:],
        )

    def wait(self, name: str) -> tuple[str, ...]:
        """Returns when the unit has ended; prints its exit code."""
        return (*self.words, "wait", name)

    def stop(self, name: str, grace_s: int) -> tuple[str, ...]:
        """SIGTERM, then SIGKILL after `grace_s` seconds."""
        return (*self.words, "stop", "-t", str(grace_s), name)

    def list_ids(self, run_id: str | None) -> tuple[str, ...]:
        """The IDs of the run's units, or of all of FlagPerf's, whatever state they are in."""
        label = RUN_LABEL if run_id is None else f"{RUN_LABEL}={run_id}"
        return (*self.words, "ps", "--all", "--quiet", "--no-trunc", f"--filter=label={label}")

    def describe(self, ids: Sequence[str]) -> tuple[str, ...]:
        """A line of JSON a unit: its name, whether it runs, its labels."""
        fields = "[{{json .Name}},{{json .State.Running}},{{json .Config.Labels}}]"
        return (*self.words, "inspect", "--type=container", f"--format={fields}", *ids)

    def remove(self, ids: Sequence[str]) -> tuple[str, ...]:
        """Remove units, running or not, with their anonymous volumes."""
        return (*self.words, "rm", "--force", "--volumes", *ids)

    def output(self, name: str, lines: int) -> tuple[str, ...]:
        """The last `lines` lines that the main process printed."""
        return (*self.words, "logs", "--tail", str(lines), name)

    def version(self) -> tuple[str, ...]:
        """The version of what runs the containers."""
        return (
            *self.words,
            "version",
            "--format",
            f"{{{{.{'Client' if self.is_podman else 'Server'}.Version}}}}",
        )


def _namespaces(unit: Unit) -> Iterator[str]:
    yield from ("--net=host", "--uts=host", "--ipc=host")
    if unit.host_namespaces:
        yield "--pid=host"
    else:
        # As process 1 a program without a handler would not see SIGTERM, and nobody would reap orphans.
        yield "--init"


def _shared_memory(unit: Unit) -> Iterator[str]:
    """Give /dev/shm its size. With `--ipc=host` an engine ignores `--shm-size` without a word.

    The tmpfs over the host's /dev/shm also takes segments that a killed task leaves behind with it.
    """
    size = _option_value(unit.options, "--shm-size") or unit.shm_size
    if not size or any(SHARED_MEMORY in option for option in unit.options):
        return
    if (_option_value(unit.options, "--ipc") or "host") != "host":
        yield f"--shm-size={size}"
    else:
        yield f"--mount=type=tmpfs,target={SHARED_MEMORY},tmpfs-size={size},tmpfs-mode=1777"


def _option_value(options: Sequence[str], name: str) -> str:
    """The value of the last `--name=value` or `--name value` in `options`; empty if there is none."""
    value = ""
    for index, option in enumerate(options):
        if option.startswith(f"{name}="):
            value = option.partition("=")[2]
        elif option == name and index + 1 < len(options):
            value = options[index + 1]
    return value


def _flags(flag: str, values: Mapping[str, str]) -> Iterator[str]:
    for name, value in values.items():
        yield f"{flag}={name}={value}"


def _bind(mount: Mount) -> str:
    """A bind mount; unlike `-v` it fails where the host path is missing. Its value is a line of CSV."""
    fields = ["type=bind", f"source={mount.host}", f"target={mount.inside}"]
    if mount.read_only:
        fields.append("readonly")
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(fields)
    return line.getvalue()
