"""The frozen records that flow from the config files to the runner.

A setting is one field of a pydantic dataclass here: its name, its type from `values`, its default, its meaning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, AliasChoices, Field
from pydantic.dataclasses import dataclass as model

from run_benchmarks.plan import values
from run_benchmarks.plan.energy_factors import EnergyFactors
from run_benchmarks.plan.kubernetes import HostsOfKubernetes
from run_benchmarks.plan.machine_use import MachineUse
from run_benchmarks.plan.meters import Meters
from run_benchmarks.plan.monitors import Monitors, SamplingInterval
from run_benchmarks.plan.pip_record import PipSettings
from run_benchmarks.plan.secrets import Secrets
from run_benchmarks.plan.slurm import HostsOfSlurm
from run_benchmarks.plan.vendor_record import Chip, Vendor
from utils.config_files import parts_of_config


@model(frozen=True, config=values.IN_CAPITALS)
class ClusterSettings:
    """`cluster_conf.py`: which hosts there are and how they are reached.

    hosts: all of them, each once: names or addresses; `localhost` is this machine and is reached without ssh.
    ssh_port: None leaves the port to the user's ssh configuration.
    ssh_accept_new_host_keys: record the key of a host seen for the first time; a changed key is refused.
    host_lost_after_s: seconds without contact and without progress after which a host counts as lost.
    groups: vendor -> its hosts, in the order of their node ranks; empty where any vendor may use any host.
    spares: those of the hosts that no case is planned for: they take the places of lost ones. spare_groups: vendor ->
    its spares, where hosts have groups. meters: host -> what this machine asks for the power of the whole host.
    slurm, kubernetes: what the hosts come from in place of a list; `hosts` are then those of the job that run.py is in,
    or none.
    """

    hosts: values.HostList
    ssh_port: values.Port | None = None
    ssh_user: values.User | None = None
    ssh_connect_timeout_s: values.Seconds = Field(default=10.0, validation_alias="SSH_CONNECT_TIMEOUT")
    ssh_accept_new_host_keys: values.Flag = False
    master_port: values.Port = 29501
    host_lost_after_s: values.Seconds = Field(default=60.0, validation_alias="HOST_LOST_AFTER")
    groups: values.HostGroups = Field(default_factory=dict, validation_alias="HOSTS")
    spares: values.HostList = Field(default=(), validation_alias="SPARE_HOSTS")
    spare_groups: values.HostGroups = Field(default_factory=dict, validation_alias="SPARE_HOSTS")
    meters: Meters = Field(default_factory=dict, validation_alias="POWER_METERS")
    slurm: HostsOfSlurm = Field(default=None, validation_alias="HOSTS")
    kubernetes: HostsOfKubernetes = Field(default=None, validation_alias="HOSTS")

    @property
    def scheduler(self) -> str:
        """Who names the hosts, as a user calls it; empty where they are listed."""
        return "Slurm" if self.slurm else "Kubernetes" if self.kubernetes else ""

    def hosts_of(self, vendor: str) -> tuple[str, ...]:
        """The hosts that a case of this vendor is planned for."""
        if self.groups:
            return self.groups.get(vendor, ())
        return tuple(host for host in self.hosts if host not in self.spares)

    def spares_of(self, vendor: str) -> tuple[str, ...]:
        """The hosts that may take the place of one of those."""
        return self.spare_groups.get(vendor, ()) if self.groups else self.spares

    def all_groups(self) -> dict[str, tuple[str, ...]]:
        """Vendor -> its hosts and its spares, which should be alike; empty where any vendor may use any host."""
        return {vendor: (*hosts, *self.spares_of(vendor)) for vendor, hosts in self.groups.items()}


def _path(*names: str) -> Any:
    """A setting with a name for host and container at once, or one of its own: both dialects are read."""
    return Field(validation_alias=AliasChoices(*names))


@model(frozen=True, config=values.IN_CAPITALS)
class RunSettings:
    """`test_conf.py` without its cases: how every case of a run is set up on the hosts.

    Paths ending in `_host` are on the hosts, `_container` in the containers; `log_path` and `metrics_port` (None: none)
    are the controller's; `checkpoint_path` is on the hosts and the same inside, empty for none; `hang_timeout_s`: 0 for
    never, None where it follows from the pace, `idle_reading_s` from the vendor. `secrets` are names of variables.
    """

    flagperf_path_host: values.AbsolutePath = _path("FLAGPERF_PATH", "FLAGPERF_PATH_HOST")
    flagperf_path_container: values.AbsolutePath = _path("FLAGPERF_PATH", "FLAGPERF_PATH_CONTAINER")
    log_path: Path = _path("FLAGPERF_LOG_PATH", "FLAGPERF_LOG_PATH_HOST")
    log_path_container: values.AbsolutePath = _path("FLAGPERF_LOG_PATH_CONTAINER")
    test_type: values.TestType = "default"
    log_level: values.LogLevel = Field(default="info", validation_alias="FLAGPERF_LOG_LEVEL")
    shm_size: values.MemorySize = "32G"
    clear_caches: values.Flag = False
    runtime: values.Runtime = "docker"
    container_engine: values.Engine = "docker"
    process_python: values.Program = "python3"
    process_setup: values.OptionalPath = ""
    checkpoint_path: values.OptionalPath = ""
    image_distribution: values.Distribution = "stream"
    image_registry: values.Registry = ""
    case_deadline_hours: values.Hours = 24.0
    retries: values.Count = 1
    hang_timeout_s: values.SecondsOrZero | None = Field(default=None, validation_alias="HANG_TIMEOUT")
    case_writable: values.Flag = False
    require_undisturbed: values.Flag = False
    min_free_disk_gib: values.NotNegative = 5.0
    monitor_interval_s: SamplingInterval = Field(default=1.0, validation_alias="MONITOR_INTERVAL")
    monitors: Monitors = field(default_factory=dict)
    carbon_g_per_kwh: values.NotNegative | None = None
    cost_per_kwh: values.Price | None = None
    idle_reading_s: values.IdleSeconds | None = Field(default=None, validation_alias="IDLE_READING")
    metrics_port: values.Port | None = None
    metrics_address: values.Address = "127.0.0.1"
    secrets: values.EnvironmentNames = ()
    pip: PipSettings = field(default_factory=PipSettings)
    machine: MachineUse = field(default_factory=MachineUse)

    @property
    def uses_images(self) -> bool:
        """Whether what runs on a host runs in an image; a plain process uses what the host has."""
        return self.runtime != "process"

    @property
    def uses_engine(self) -> bool:
        """Whether hosts need a container engine; elsewhere it builds images on this machine, if any."""
        return self.runtime == "docker"


@model(frozen=True, config=values.IN_CAPITALS)
class VendorChoice:
    """`test_conf.py`: the vendor of the cases that name none, and what it says of each vendor."""

    vendor: Annotated[values.PathName, Field(examples=['"cpu"'])]
    vendors: values.Sections = Field(default_factory=dict)


@model(frozen=True, config=values.IN_CAPITALS)
class MachineVendors:
    """`machine_conf.py`: what it says of each vendor, as VENDORS of `test_conf.py` does."""

    vendors: values.Sections = Field(default_factory=dict)


@model(frozen=True, config=values.IN_CAPITALS)
class VendorSettings:
    """What `test_conf.py` says of a vendor's containers and images; None leaves it to `vendor.py`."""

    container_options: values.EngineOptions | None = Field(
        default=None, validation_alias="ACCE_CONTAINER_OPT"
    )
    visible_devices_env: values.EnvironmentName | None = Field(
        default=None, validation_alias="ACCE_VISIBLE_DEVICE_ENV_NAME"
    )
    image_build_args: values.TextDict = Field(default_factory=dict)


@model(frozen=True)
class CaseSettings:
    """One case as the user wrote it, in either dialect; the fields from `vendor` on are the 2022 dict's keys.

    name: the case's folder in the result tree: in the later dialect its key, `bert:pytorch_1.8:A100:1:8:1`;
        where that begins with a vendor, `acme/bert:...`, the folder is `acme:bert:...`.
    vendor: the name of the vendor's folder in `training/`.
    framework: with its version if one is given (`pytorch_1.8`).
    config: the vendor config file's name without `.py`, e.g. `config_A100x1x8`.
    """

    name: str
    vendor: values.PathName
    model: values.PathName
    framework: Annotated[values.PathName, Field(examples=['"pytorch"'])]
    config: Annotated[
        values.PathName,
        AfterValidator(lambda config: config.removesuffix(".py")),
        Field(examples=['"config_A100x1x8"']),
    ]
    nnodes: values.CaseSize
    nproc: values.CaseSize
    repeat: values.CaseSize
    data_dir_host: values.AbsolutePath
    data_dir_container: values.AbsolutePath
    deadline_hours: values.Hours | None = None

    @property
    def framework_name(self) -> str:
        """The framework without its version: `pytorch` of `pytorch_1.8`."""
        return self.framework.partition("_")[0]

    @property
    def chip(self) -> str:
        """The chip that the config file names: `A100` of `config_A100x1x8`."""
        parts = parts_of_config(self.config)
        return parts[0] if parts else self.config.removeprefix("config_")


@dataclass(frozen=True)
class CaseFiles:
    """Where a case's files lie; paths are relative to the `training/` folder, which every node has a copy of.

    script: the training script; script_args: what it gets before the launch contract's arguments.
    requirements: the files with pip requirements that become a layer of the image.
    environment_script: a shell file to source before the ranks start, or None.
    dockerfile_dir, install_script: the vendor's image for the framework.
    takes_vendor: whether the script's launch contract has `--vendor`.
    extension_dir: the vendor's folder with a `setup.py` that becomes a layer of the image, or None.
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
    takes_vendor: bool = True
    extension_dir: str | None = None


@dataclass(frozen=True)
class CasePlan:
    """A case with everything resolved: `hosts[i]` has node rank i; `parameters` are `_base.py`'s under the
    vendor's.

    container_options: what the user or, failing that, the vendor gives the container engine, as an argv.
    visible_devices_env: the variable that tells a process its chips; empty for none.
    image_build_args: arguments of the vendor's Dockerfile.
    differs: what the vendor's file changes beyond the case's mutable names, name -> value, as far as the files
    tell. None where a case with a script of its own lists no mutable names.
    extern: the files of the vendor's `extern/`, whose code runs in the ranks: path -> SHA-256.
    environment: likewise the file that is sourced before the ranks start, by its path below `training/`.
    writable: whether a script of its own runs in copies of code and data that are thrown away.
    undisturbed: whether a round that something disturbed is INVALID.
    roles: what its processes are, of a search: a controller, and a worker a node, without which the round can go on;
    else empty.
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
    extern: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    writable: bool = False
    undisturbed: bool = False
    energy_factors: EnergyFactors = field(default_factory=EnergyFactors)
    roles: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """A whole run, resolved.

    training_dir: the controller's own. options: what another command must be given to come to the same files.
    continue_from: the uid of the run whose checkpoints the rounds go on from, or empty.
    done: case -> its rounds that had succeeded in that run, as it is known here; they are not run again.
    secrets: what of it no text may show.
    """

    training_dir: Path
    cluster: ClusterSettings
    run: RunSettings
    cases: tuple[CasePlan, ...]
    options: tuple[str, ...] = ()
    continue_from: str = ""
    done: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    secrets: Secrets = field(default_factory=Secrets)

    def rounds(self, case: CasePlan) -> list[int]:
        """The rounds of a case that are to be run."""
        name, repeat = case.settings.name, case.settings.repeat
        return [number for number in range(1, repeat + 1) if number not in self.done.get(name, ())]
