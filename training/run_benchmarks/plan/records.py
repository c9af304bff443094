"""The frozen records that flow from the config files to the runner."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class ClusterSettings:
    """`cluster_conf.py`: which hosts there are and how they are reached.

    hosts: all of them, each once: names or addresses; `localhost` is this machine and is reached without ssh.
    groups: vendor -> its hosts, in the order of their node ranks; empty where any vendor may use any host.
    ssh_port: None leaves the port to the user's ssh configuration.
    ssh_accept_new_host_keys: record the key of a host seen for the first time; a changed key is refused.
    host_lost_after_s: seconds without contact and without progress after which a host counts as lost.
    """

    hosts: tuple[str, ...]
    ssh_port: int | None = None
    ssh_user: str | None = None
    ssh_connect_timeout_s: float = 10.0
    ssh_accept_new_host_keys: bool = False
    master_port: int = 29501
    host_lost_after_s: float = 20.0
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def hosts_of(self, vendor: str) -> tuple[str, ...]:
        """The hosts that a case of this vendor may run on."""
        return self.groups.get(vendor, ()) if self.groups else self.hosts


@dataclass(frozen=True)
class PipSettings:
    """How pip reaches packages while an image is built. Values may hold secrets: never log `options`.

    options: pip's own option names -> values, as in the [global] section of a pip.conf.
    ca_file, wheel_dirs: paths on the controller, handed into the build.
    """

    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    ca_file: Path | None = None
    wheel_dirs: tuple[Path, ...] = ()


@dataclass(frozen=True)
class RunSettings:
    """`test_conf.py` without its cases: how every case of a run is set up on the hosts.

    Paths ending in `_host` are on the hosts, `_container` inside the containers;
    `log_path` is on the controller; `checkpoint_path` is on the hosts and the same
    inside, empty for none.
    """

    test_type: str
    flagperf_path_host: str
    flagperf_path_container: str
    log_path: Path
    log_path_container: str
    log_level: str
    shm_size: str
    clear_caches: bool
    runtime: str = "docker"
    container_engine: str = "docker"
    process_python: str = "python3"
    rank_launcher: str = "flagperf"
    checkpoint_path: str = ""
    image_distribution: str = "stream"
    image_registry: str = ""
    pip: PipSettings = field(default_factory=PipSettings)
    case_deadline_s: float = 86400.0
    min_free_disk_gib: float = 5.0
    monitor_interval_s: float = 1.0


@dataclass(frozen=True)
class CaseSettings:
    """One case as the user wrote it, in either dialect.

    name: the case's folder in the result tree: in the later dialect its key, `bert:pytorch_1.8:A100:1:8:1`;
        where that begins with a vendor, `acme/bert:...`, the folder is `acme:bert:...`.
    vendor: the name of the vendor's folder in `training/`.
    framework: with its version if one is given (`pytorch_1.8`).
    config: the vendor config file's name without `.py`, e.g. `config_A100x1x8`.
    """

    name: str
    vendor: str
    model: str
    framework: str
    config: str
    nnodes: int
    nproc: int
    repeat: int
    data_dir_host: str
    data_dir_container: str
    deadline_s: float | None = None

    @property
    def framework_name(self) -> str:
        """The framework without its version: `pytorch` of `pytorch_1.8`."""
        return self.framework.partition("_")[0]

    @property
    def chip(self) -> str:
        """The chip that the config file names: `A100` of `config_A100x1x8`."""
        stem = self.config.removeprefix("config_")
        parts = stem.rsplit("x", 2)
        return parts[0] if len(parts) == 3 else stem


@dataclass(frozen=True)
class Chip:
    """A chip as its vendor describes it; peak_flops: dtype -> dense FLOP/s."""

    name: str
    device_names: tuple[str, ...]
    memory_gib: float | None
    peak_flops: Mapping[str, float]
    source: str


@dataclass(frozen=True)
class Vendor:
    """`<vendor>/vendor.py`, checked; `described` is False for an existing vendor's folder that has none."""

    name: str
    folder: Path
    device_type: str
    visible_devices_env: str
    collective_backend: Mapping[str, str]
    container_options: tuple[str, ...]
    chips: Mapping[str, Chip]
    list_devices_command: tuple[str, ...]
    parse_devices: Callable[[str], list[str]] = field(repr=False)
    described: bool = True


@dataclass(frozen=True)
class CaseFiles:
    """Where a case's files lie; paths are relative to the `training/` folder, which every node has a copy of.

    script: the training script; script_args: what it gets before the launch contract's arguments.
    requirements: the files with pip requirements that become a layer of the image.
    environment_script: a shell file to source before the ranks start, or None.
    dockerfile_dir, install_script: the vendor's image for the framework.
    """

    case_dir: str
    script: str
    script_args: tuple[str, ...]
    config_dir: str
    config_file: str
    extern_dir: str
    requirements: tuple[str, ...]
    environment_script: str | None
    dockerfile_dir: str
    install_script: str | None


@dataclass(frozen=True)
class CasePlan:
    """A case with everything resolved: `hosts[i]` has node rank i; `parameters` are `_base.py`'s under the
    vendor's.

    container_options: what the user or, failing that, the vendor gives the container engine, as an argv.
    visible_devices_env: the variable that tells a process its chips; empty for none.
    image_build_args: arguments of the vendor's Dockerfile.
    kind: what the case is for: one of `utils.parameters.KINDS`.
    differs: what the vendor's file changes beyond the case's mutable names, name -> value. None where the
    shared driver tells it (INIT_START) or a case with a script of its own lists no mutable names.
    """

    settings: CaseSettings
    vendor: Vendor
    files: CaseFiles
    hosts: tuple[str, ...]
    chip: Chip | None
    parameters: Mapping[str, Any]
    deadline_s: float
    differs: Mapping[str, Any] | None = None
    container_options: tuple[str, ...] = ()
    visible_devices_env: str = ""
    image_build_args: Mapping[str, str] = field(default_factory=dict)
    kind: str = "converge"


@dataclass(frozen=True)
class Plan:
    """A whole run, resolved. `training_dir` is the controller's own copy of `training/`.

    continue_from: the uid of an earlier run, whose checkpoints the rounds go on from; empty: they begin anew.
    done: case -> its rounds that had converged in that run, as it is known here; they are not run again.
    """

    training_dir: Path
    cluster: ClusterSettings
    run: RunSettings
    cases: tuple[CasePlan, ...]
    continue_from: str = ""
    done: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def rounds(self, case: CasePlan) -> list[int]:
        """The rounds of a case that are to be run."""
        done = self.done.get(case.settings.name, ())
        return [number for number in range(1, case.settings.repeat + 1) if number not in done]
