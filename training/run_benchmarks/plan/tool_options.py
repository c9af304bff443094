"""Runtimes that are tools of the user's, and no container engine: what they cannot do is refused before a launch.

vendor.py and ACCE_CONTAINER_OPT say in Docker's words which devices, folders and variables a container is to have. A
tool that has none of an engine's rights gives it what the user has, and no more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from run_benchmarks.plan.reader import Reader
from run_benchmarks.plan.records import CasePlan, ClusterSettings, RunSettings

# What a path of Pyxis's list of mounts cannot hold.
ODD = re.compile(r"[:,\s]")
TOOLS = ("apptainer", "pyxis")
SHORT = {"-v": "--volume", "-e": "--env"}
# What may stand behind a volume's paths: these tools neither label what they mount nor pass mounts on.
MODES = ("ro", "rw")
NO_MATTER = ("z", "Z", "private", "rprivate", "slave", "rslave", "shared", "rshared")
# The user's groups are those of its container anyway, and these tools have no seccomp profile of their own.
NEEDS_NOTHING = ("--group-add=", "--security-opt=seccomp=unconfined")


class NoSuchOptionError(ValueError):
    """An option that only a container engine can do; the text is the option, of its value at most a word."""


@dataclass(frozen=True)
class Wanted:
    """What options ask for.

    gpus: those of NVIDIA that the host has. devices: paths of device nodes. folders: a path of the host, where it is
    seen, and whether it is only read there.
    """

    gpus: bool = False
    devices: tuple[str, ...] = ()
    folders: tuple[tuple[str, str, bool], ...] = ()
    variables: tuple[tuple[str, str], ...] = ()


def wanted_by(options: Sequence[str]) -> Wanted:
    """What an engine's options ask for.

    Raises:
        NoSuchOptionError: one of them is an engine's alone.
    """
    gpus, devices, variables = False, list[str](), list[tuple[str, str]]()
    folders = list[tuple[str, str, bool]]()
    for option in _joined(options):
        name, _, value = option.partition("=")
        if option == "--gpus=all":
            gpus = True
        elif name == "--device" and ":" not in value:
            devices.append(value)
        elif name == "--volume" and value.count(":") in (1, 2) and value.startswith("/"):
            host, inside, *mode = value.split(":")
            folders.append((host, inside, _is_read_only(mode[0] if mode else "rw")))
        elif name == "--env" and "=" in value:
            variables.append((value.partition("=")[0], value.partition("=")[2]))
        elif not option.startswith(NEEDS_NOTHING):
            raise NoSuchOptionError(name)
    return Wanted(gpus, tuple(devices), tuple(folders), tuple(variables))


def _is_read_only(mode: str) -> bool:
    words = mode.split(",")
    for word in words:
        if word not in (*MODES, *NO_MATTER):
            raise NoSuchOptionError(f"{word!r} of --volume")
    if set(MODES) <= set(words):
        raise NoSuchOptionError(f"{','.join(MODES)!r} of --volume")
    return "ro" in words


def _joined(options: Sequence[str]) -> Iterator[str]:
    """Each option with its value as `--name=value`."""
    words = iter(options)
    for word in words:
        name, equals, value = word.partition("=")
        name = SHORT.get(name, name)
        yield f"{name}={value}" if equals else f"{name}={next(words, '')}"


def check_tool(reader: Reader, cluster: ClusterSettings, run: RunSettings, cases: Sequence[CasePlan]) -> None:
    """Report what the runtime, where it is such a tool, cannot do of the settings."""
    if run.runtime not in TOOLS:
        return
    if run.image_distribution != "stream":
        message = f"is for container engines; with RUNTIME = {run.runtime!r} this machine makes the image"
        reader.problem("IMAGE_DISTRIBUTION", message, "leave it out", run.image_distribution)
    for options in {case.container_options: None for case in cases}:
        try:
            wanted_by(options)
        except NoSuchOptionError as error:
            message = f"{error} is a container engine's, and RUNTIME = {run.runtime!r} cannot do it"
            remedy = "write with ACCE_CONTAINER_OPT what is needed all the same: --gpus=all, --device, --volume, --env"
            reader.problem("ACCE_CONTAINER_OPT", message, remedy)
    if run.runtime == "pyxis":
        if cluster.slurm is None:
            remedy = "write HOSTS = slurm(...) in cluster_conf.py, or choose another RUNTIME"
            reader.problem(
                "RUNTIME", "is a part of Slurm, and HOSTS are none of Slurm's", remedy, run.runtime
            )
        _check_paths(reader, run, cases)


def _check_paths(reader: Reader, run: RunSettings, cases: Sequence[CasePlan]) -> None:
    """Pyxis takes its mounts as a list, whose parts nothing can quote; of the host's folders, links can be made."""
    paths = {run.flagperf_path_host, run.flagperf_path_container, run.log_path_container}
    for path in sorted({*paths, *(case.settings.data_dir_container for case in cases)}):
        if ODD.search(path):
            message = f"{path!r} has a colon, a comma or a blank in it, with which Pyxis can mount nothing"
            reader.problem("RUNTIME", message, "name folders without them", run.runtime)
    odd = [case.settings.name for case in cases if ODD.search(case.settings.name)]
    if odd and run.checkpoint_path:
        message = f"has folders that are named like cases, and Pyxis cannot mount one with a colon: {odd[0]}"
        reader.problem(
            "CHECKPOINT_PATH", message, "leave it out, or choose another RUNTIME", run.checkpoint_path
        )
