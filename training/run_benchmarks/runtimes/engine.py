"""The container engines' command lines, for the runtime and the image store alike: whatever one engine says or
does otherwise than Docker stands here and nowhere else. Pure: a plan prints them, and a user can paste them
into a shell.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import ClassVar

from run_benchmarks.plan.handover import PROXIES
from run_benchmarks.runtimes.base import Mount, Unit
from run_benchmarks.runtimes.engine_remedies import IMAGE_GONE, PAUSED, PODMAN_REMEDIES
from run_benchmarks.transports.base import Completed

# What Docker's client says whose server is not there, or went away; Podman has none.
ENGINE_DOWN = re.compile(
    r"cannot connect to the docker daemon|is the docker daemon running|error during connect|"
    r"docker\.sock[^\n]{0,300}(connection (refused|reset)|broken pipe)|daemon is shutting down",
    re.IGNORECASE,
)
BROKEN_OFF = re.compile(r"unexpected EOF$|^(error.*: )?EOF$", re.IGNORECASE | re.MULTILINE)
SHARED_MEMORY = "/dev/shm"  # noqa: S108 - it is mounted, and nothing made in it
# An engine gives its containers the proxies of its user, Docker those of its config.json, Podman those of its
# environment: their passwords are no case's, and a commit would keep them.
NO_PROXIES = tuple(f"--env={name}=" for name in sorted(PROXIES))


@dataclass(frozen=True)
class Engine:
    """Docker. `command`: `docker`, or a path of it."""

    command: str

    RUN_OPTIONS: ClassVar[tuple[str, ...]] = ()
    LIMITS: ClassVar[tuple[str, ...]] = ("--ulimit=memlock=-1", "--ulimit=stack=67108864")
    FORMAT: ClassVar[tuple[str, ...]] = ()
    # BuildKit alone hands secrets to a Dockerfile, and Docker's own builder is chosen where nothing says so
    SECRET_BUILDER: ClassVar[tuple[str, ...]] = ("env", "DOCKER_BUILDKIT=1")
    # whether its containers' root is the host's, by the exit code, and what else shows the host as they see it
    IS_ROOTS: ClassVar[str] = (
        'case $("$0" info --format "{{.SecurityOptions}}") in *rootless*) exit 1 ;; esac'
    )
    AS_INSIDE: ClassVar[tuple[str, ...]] = ()
    # the folder of its images, among what `info` says
    STORE_FORMAT: ClassVar[str] = "{{.DockerRootDir}}"

    # Containers.

    def start(self, unit: Unit, *, raise_limits: bool = True) -> tuple[str, ...]:
        """`docker run --detach` for a unit.

        It may do no more than the unit names, under the engine's own seccomp profile, and sees no process,
        shared memory or, unless the unit asks for it, network of the host. What a vendor's chips need more comes
        with the unit's own options, which stand last, so that they win. `raise_limits` False leaves locked memory,
        stack and processes at the engine's own limits, for engines that may not raise them (rootless ones, or one
        inside a container).
        """
        return (
            *self._run(unit),
            "--detach",
            *_namespaces(unit),
            *_privileges(unit),
            *(self.LIMITS if raise_limits else ()),
            # the engine's own default may keep nothing, and then a failed unit could not be explained
            "--log-driver=json-file",
            "--log-opt=max-size=16m",
            *_shared_memory(unit),
            *NO_PROXIES,
            *_flags("--env", unit.env),
            *(f"--env={name}" for name in unit.secrets),  # its value comes from the command's own environment
            *unit.options,
            *_main_process(unit),
        )

    def run_to_end(self, unit: Unit, *, proxies: bool = False) -> tuple[str, ...]:
        """`docker run` for a step of a build: it reads and prints what its main process does, and ends with its code.

        `proxies`: leave it those that the engine gives its containers, and those of the image.
        """
        network = "--net=host" if unit.host_network else "--net=none"
        words = ("--interactive", network, *_privileges(unit), *(() if proxies else NO_PROXIES))
        return (*self._run(unit), *words, *unit.options, *_main_process(unit))

    def _run(self, unit: Unit) -> tuple[str, ...]:
        return (
            self.command,
            "run",
            # an image is brought by its own stage; under its name a public registry may hold anybody's
            "--pull=never",
            *self.RUN_OPTIONS,
            f"--name={unit.name}",
            *_flags("--label", unit.labels),
            *map(bind_mount, unit.mounts),
            *((f"--workdir={unit.workdir}",) if unit.workdir else ()),
        )

    def remove(self, ids: Sequence[str]) -> tuple[str, ...]:
        """Remove units, running or not, with their anonymous volumes."""
        return (self.command, "rm", "--force", "--volumes", *ids)

    def version(self) -> tuple[str, ...]:
        """The version of what runs the containers."""
        return (self.command, "version", "--format", "{{.Server.Version}}")

    # Images.

    def build(
        self, context: str, tag: str, build_args: Sequence[str], label: str, secrets: Sequence[str] = ()
    ) -> tuple[str, ...]:
        """Build a Dockerfile. Of secrets, and of an argument that is a name alone, the value is in the environment."""
        args = [word for argument in build_args for word in ("--build-arg", argument)]
        args += [f"--secret=id={name},env={name}" for name in secrets]
        options = ("--network=host", "--rm", "--force-rm", "--label", label)
        builder = self.SECRET_BUILDER if secrets else ()
        return (*builder, self.command, "build", *self.FORMAT, *options, *args, "--tag", tag, context)

    def takes_secrets(self) -> tuple[str, ...]:
        """Whether its builds take secrets: by its exit code."""
        script = '"$@" --help 2>&1 | grep -q -e --secret'
        return ("sh", "-c", script, "sh", *self.SECRET_BUILDER, self.command, "build")

    def commit(self, container: str, tag: str, changes: Sequence[str]) -> tuple[str, ...]:
        """Make an image of a container that has ended."""
        words = [word for change in changes for word in ("--change", change)]
        return (self.command, "commit", *self.FORMAT, *words, container, tag)

    def history(self, tag: str) -> tuple[str, ...]:
        """The commands that made an image, with the build arguments that they had, a line each."""
        return (self.command, "history", "--no-trunc", "--format={{.CreatedBy}}", tag)

    # What it says.

    def refuses_limits(self, completed: Completed) -> bool:
        """Whether it did not start a container because it may not raise limits."""
        return re.search(r"rlimit|\bpids\b|(set|resource) limits", completed.stderr.lower()) is not None

    def is_gone(self, completed: Completed) -> bool:
        """Whether it refused because there is no such container."""
        text = completed.stderr.lower()
        return "no such container" in text or "no such object" in text

    def is_out_of_order(self, completed: Completed) -> bool:
        """Whether a command failed because the engine's server does not run, or ended meanwhile."""
        return any(words.search(completed.stderr) for words in (ENGINE_DOWN, BROKEN_OFF))

    def lacks_image(self, completed: Completed) -> bool:
        """Whether it refused because there is no such image."""
        return "no such" in completed.stderr.lower()

    def remedy(self, completed: Completed) -> str:
        """What to do about an engine that does not answer, or lacks something; empty for any other failure."""
        text = completed.stderr.lower()
        if completed.returncode == 127:
            return f'install {self.command} on {completed.host}, or set RUNTIME = "process" in test_conf.py'
        if "permission denied" in text:
            return (
                f"the user may not use the engine's socket: on {completed.host}, "
                "`sudo usermod -aG docker $USER` and log in again"
            )
        if "unknown flag: --pull" in text:
            return f"install Docker 20.10 or newer on {completed.host}"
        if "no such image" in text:
            return IMAGE_GONE.format(host=completed.host)
        if " is paused" in text:
            return PAUSED.format(host=completed.host)
        if self.is_out_of_order(completed):
            return f"start the engine on {completed.host}: `sudo systemctl start docker` (log: `journalctl -u docker`)"
        return ""

    def hangs(self, host: str) -> str:
        """What to do about an engine whose commands do not end."""
        return (
            f"see on {host} whether `{self.command} ps` ends; if not, start the engine anew and read its log"
        )


@dataclass(frozen=True)
class Podman(Engine):
    """Podman: no server, so nothing to be started or allowed; containers belong to the user who starts them."""

    # under SELinux a container may not read the host's folders; with --ipc=host Podman does this by itself
    RUN_OPTIONS = ("--security-opt=label=disable",)
    # by itself it lets a container have 2048 threads, which a task's ranks and their loaders soon need
    LIMITS = (*Engine.LIMITS, "--pids-limit=-1")
    SECRET_BUILDER = ()
    # the OCI format would drop a Dockerfile's SHELL, ONBUILD and HEALTHCHECK
    FORMAT = ("--format=docker",)
    IS_ROOTS, AS_INSIDE = '[ "$(id -u)" = 0 ]', ("unshare",)
    STORE_FORMAT = "{{.Store.GraphRoot}}"

    def version(self) -> tuple[str, ...]:
        """The version, after all has been looked at that a container needs: Podman's own `version` looks at nothing."""
        return (self.command, "info", "--format", "{{.Version.Version}}")

    def lacks_image(self, completed: Completed) -> bool:
        """Whether it refused because there is no such image."""
        return "image not known" in completed.stderr.lower() or super().lacks_image(completed)

    def remedy(self, completed: Completed) -> str:
        """What to do where something is missing on the host; empty for any other failure."""
        if completed.returncode == 127:
            return super().remedy(completed)
        text = completed.stderr.lower()
        remedies = (remedy for words, remedy in PODMAN_REMEDIES.items() if words in text)
        return next(remedies, "").format(host=completed.host)


def engine_of(command: str) -> Engine:
    """The engine behind CONTAINER_ENGINE: by its name, wherever it lies."""
    return Podman(command) if PurePosixPath(command).name == "podman" else Engine(command)


def bind_mount(mount: Mount) -> str:
    """The option for a bind mount; unlike `-v` it fails where the host path is missing. Its value is a line of CSV."""
    fields = ["type=bind", f"source={mount.host}", f"target={mount.inside}"]
    if mount.read_only:
        fields.append("readonly")
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(fields)
    return f"--mount={line.getvalue()}"


def mount_targets(options: Sequence[str]) -> set[str]:
    """The paths inside a container at which options of the user's mount something."""
    volumes = [value for name in ("-v", "--volume") for value in option_values(options, name)]
    targets = [value.partition(":")[2].partition(":")[0] or value for value in volumes]
    targets += [value.partition(":")[0] for value in option_values(options, "--tmpfs")]
    for value in option_values(options, "--mount"):
        targets += re.findall(r'(?:^|,)"?(?:target|dst|destination)=([^",]+)', value)
    return {target.rstrip("/") for target in targets}


def _main_process(unit: Unit) -> tuple[str, ...]:
    # the image may bring an entrypoint of its own (the vendors' often do)
    return (f"--entrypoint={unit.argv[0]}", unit.image, *unit.argv[1:])


def _namespaces(unit: Unit) -> Iterator[str]:
    if not any(_option_value(unit.options, name) for name in ("--net", "--network")):  # once at most
        yield "--net=host" if unit.host_network else "--net=none"
    if unit.host_network:
        yield "--uts=host"
    yield "--ipc=private"
    if not _option_value(unit.options, "--pid"):
        # As process 1 a program without a handler would not see SIGTERM, and nobody would reap orphans.
        yield "--init"


def _privileges(unit: Unit) -> Iterator[str]:
    """The unit's capabilities and no others. Where its options ask for all, Podman takes dropping them for an error."""
    added = [name.upper() for name in option_values(unit.options, "--cap-add")]
    if "--privileged" not in unit.options and "ALL" not in added:
        yield "--cap-drop=ALL"
        yield from (f"--cap-add={name}" for name in unit.capabilities)
    yield "--security-opt=no-new-privileges"


def _shared_memory(unit: Unit) -> Iterator[str]:
    """Give /dev/shm its size. With `--ipc=host`, a vendor's wish, an engine ignores `--shm-size` without a word.

    The tmpfs over the host's /dev/shm also takes segments that a killed task leaves behind with it.
    """
    size = _option_value(unit.options, "--shm-size") or unit.shm_size
    if not size or any(SHARED_MEMORY in option for option in unit.options):
        return
    if _option_value(unit.options, "--ipc") != "host":
        yield f"--shm-size={size}"
    else:
        yield f"--mount=type=tmpfs,target={SHARED_MEMORY},tmpfs-size={size},tmpfs-mode=1777"


def _option_value(options: Sequence[str], name: str) -> str:
    """The value of the last `--name=value` or `--name value` in `options`; empty if there is none."""
    return ["", *option_values(options, name)][-1]


def option_values(options: Sequence[str], name: str) -> Iterator[str]:
    """The values of each `--name=value` or `--name value`."""
    for index, option in enumerate(options):
        if option.startswith(f"{name}="):
            yield option.partition("=")[2]
        elif option == name and index + 1 < len(options):
            yield options[index + 1]


def _flags(flag: str, values: Mapping[str, str]) -> Iterator[str]:
    for name, value in values.items():
        yield f"{flag}={name}={value}"
