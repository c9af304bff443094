"""`test_conf.py` without its cases: how every case of a run is set up on the hosts."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from run_benchmarks.plan import kinds
from run_benchmarks.plan.pip import read_pip_settings
from run_benchmarks.plan.problems import UnfitError, listing
from run_benchmarks.plan.reader import Reader
from run_benchmarks.plan.records import RunSettings

LOG_LEVELS = ("debug", "info", "warning", "error")
TEST_TYPES = ("default", "customized")
RUNTIMES = ("docker", "process")
RANK_LAUNCHERS = ("flagperf", "torchrun")
DISTRIBUTIONS = ("build", "stream", "registry")
DEFAULT_CONTAINER_HOME = "/workspace/flagperf"
_HOUR = 3600.0


class _Paths(NamedTuple):
    host: str
    container: str
    log: Path
    log_container: str


def read_settings(reader: Reader, training_dir: Path, log_path: Path | None) -> RunSettings:
    """All settings of the run; `log_path` overrides the file's."""
    paths = _read_paths(reader, training_dir, log_path)
    _check_writable(paths.log, reader, log_path)
    hours = reader.get("CASE_DEADLINE_HOURS", kinds.number(0, above=True), 24.0)
    return RunSettings(
        test_type=reader.get("TEST_TYPE", kinds.one_of(*TEST_TYPES), "default"),
        flagperf_path_host=paths.host,
        flagperf_path_container=paths.container,
        log_path=paths.log,
        log_path_container=paths.log_container,
        log_level=reader.get("FLAGPERF_LOG_LEVEL", kinds.one_of(*LOG_LEVELS), "info"),
        shm_size=reader.get("SHM_SIZE", kinds.memory_size, "32G"),
        clear_caches=reader.get("CLEAR_CACHES", kinds.flag, False),
        runtime=reader.get("RUNTIME", kinds.one_of(*RUNTIMES), "docker"),
        container_engine=reader.get("CONTAINER_ENGINE", _engine, "docker"),
        process_python=reader.get("PROCESS_PYTHON", _program, "python3"),
        rank_launcher=reader.get("RANK_LAUNCHER", kinds.one_of(*RANK_LAUNCHERS), "flagperf"),
        checkpoint_path=reader.get("CHECKPOINT_PATH", kinds.absolute_path, ""),
        image_distribution=reader.get("IMAGE_DISTRIBUTION", kinds.one_of(*DISTRIBUTIONS), "stream"),
        image_registry=_read_registry(reader),
        pip=read_pip_settings(reader, training_dir),
        case_deadline_s=hours * _HOUR,
        min_free_disk_gib=reader.get("MIN_FREE_DISK_GIB", kinds.number(0), 5.0),
        monitor_interval_s=reader.get("MONITOR_INTERVAL", kinds.number(0, above=True), 1.0),
    )


def _read_paths(reader: Reader, training_dir: Path, log_path: Path | None) -> _Paths:
    """Both dialects: one path for host and container, or one each."""
    one = reader.get("FLAGPERF_PATH", kinds.absolute_path, None)
    host = reader.get("FLAGPERF_PATH_HOST", kinds.absolute_path, None)
    container = reader.get("FLAGPERF_PATH_CONTAINER", kinds.absolute_path, None)
    log_one = reader.get("FLAGPERF_LOG_PATH", _controller_path(training_dir), None)
    log_host = reader.get("FLAGPERF_LOG_PATH_HOST", _controller_path(training_dir), None)
    log_container = reader.get("FLAGPERF_LOG_PATH_CONTAINER", kinds.absolute_path, None)
    for single in ("FLAGPERF_PATH", "FLAGPERF_LOG_PATH"):
        _check_one_dialect(single, reader)
    at_host = one or host or str(training_dir)
    inside = one or container or f"{DEFAULT_CONTAINER_HOME}/training"
    log = log_one or log_host or training_dir / "result"
    log_inside = str(log_one) if log_one else log_container or f"{DEFAULT_CONTAINER_HOME}/result"
    return _Paths(at_host, inside, log_path.expanduser().absolute() if log_path else log, log_inside)


def log_path_in(values: Mapping[str, Any], training_dir: Path) -> Path:
    """Where these values of a `test_conf.py` put results, whatever else is wrong with them."""
    given = (values.get(name) for name in ("FLAGPERF_LOG_PATH", "FLAGPERF_LOG_PATH_HOST"))
    text = next((value for value in given if isinstance(value, str) and value), "result")
    return Path(os.path.normpath(training_dir / Path(text).expanduser()))


def _check_one_dialect(single: str, reader: Reader) -> None:
    """`FLAGPERF_PATH` sets host and container at once; another value beside it would be ignored."""
    for part in (f"{single}_HOST", f"{single}_CONTAINER"):
        value, other = reader.given(single), reader.given(part)
        if value is not None and other is not None and value != other:
            message = f"contradicts {single}, which holds for host and container"
            reader.unfit(part, message, f"keep {single}, or {single}_HOST and {single}_CONTAINER")


def _controller_path(training_dir: Path) -> kinds.Kind[Path]:
    def check(value: Any) -> Path:
        path = Path(kinds.text("result")(value)).expanduser()
        return Path(os.path.normpath(training_dir / path))

    return check


def _check_writable(log: Path, reader: Reader, override: Path | None) -> None:
    """The log folder, or the nearest folder above it that exists, must let this user write."""
    existing = next((path for path in (log, *log.parents) if path.exists()), Path("/"))
    if not existing.is_dir():
        message, remedy = f"{existing} is not a folder", "give a path below a folder"
    elif not os.access(existing, os.W_OK | os.X_OK, effective_ids=True):
        message = f"no permission to write into {existing}"
        remedy = "give a path that this user may write to, or change its owner"
    else:
        return
    _report_log_path(log, message, remedy, reader, override)


def _report_log_path(log: Path, message: str, remedy: str, reader: Reader, override: Path | None) -> None:
    if override is not None:
        reader.problems.add("command line", "--log-path", str(log), message, remedy)
        return
    names = ("FLAGPERF_LOG_PATH", "FLAGPERF_LOG_PATH_HOST")
    name = next((name for name in names if reader.given(name) is not None), names[0])
    reader.problems.add(reader.source.where(name), name, str(log), message, remedy)


def _engine(value: Any) -> str:
    engine = kinds.text("docker")(value)
    if engine not in ("docker", "podman") and not re.fullmatch(r"/\S+", engine):
        raise UnfitError(
            "is not a container engine", 'write "docker", "podman", or the absolute path of either'
        )
    return engine


def _program(value: Any) -> str:
    program = kinds.text("python3")(value)
    if not re.fullmatch(r"/.+|[A-Za-z0-9][\w.+-]*", program):
        raise UnfitError("is no program", 'write a name such as "python3", or an absolute path on the hosts')
    return program


def _registry(value: Any) -> str:
    registry = kinds.text("registry.example.org:5000/team")(value)
    if not re.fullmatch(r"([A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(:\d+)?(/[a-z0-9._/-]+)?", registry):
        remedy = 'write host[:port][/path] without https:// and in small letters, e.g. "registry.local:5000"'
        raise UnfitError("is not the address of a registry", remedy)
    return registry.rstrip("/")


def _read_registry(reader: Reader) -> str:
    registry = reader.get("IMAGE_REGISTRY", _registry, "")
    wanted = reader.given("IMAGE_DISTRIBUTION") == "registry"
    if wanted and reader.given("IMAGE_REGISTRY") in (None, ""):
        others = listing([choice for choice in DISTRIBUTIONS if choice != "registry"])
        remedy = f'add IMAGE_REGISTRY = "host:port/path", or choose another IMAGE_DISTRIBUTION ({others})'
        reader.unfit("IMAGE_DISTRIBUTION", "needs a registry, and IMAGE_REGISTRY is not set", remedy)
    return registry
