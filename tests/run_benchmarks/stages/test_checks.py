"""Each check of a host: what passes, what is worth a warning, what forbids a run, and what the user is told.

Commands run for real on this machine. Only the runtime is a FAKE, and the answers that this machine cannot give.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import pytest

from run_benchmarks.names import LABEL_RUN
from run_benchmarks.runtimes.base import UnitState
from run_benchmarks.stages import caches, checks
from run_benchmarks.stages.checks import Status
from run_benchmarks.transports.base import CommandError, Completed
from tests.fakes.transports import AnsweringHost
from tests.run_benchmarks.stages.checked_host import Site, assert_bad, assert_ok, prepare
from utils import manifest
from utils.errors import FlagPerfError

# ---- engine


def test_engine(site: Site) -> None:
    assert_ok(site.check(checks.engine), "20.10")
    refused = Completed("node1", ("docker", "version"), 1, "", "Cannot connect to the Docker daemon")
    site.runtime.error = CommandError(refused, "start the engine on node1")
    assert_bad(site.check(checks.engine), Status.ERROR, "Cannot connect", "start the engine on node1")


# ---- deploy path


def test_deploy_path_is_made(site: Site) -> None:
    assert_ok(site.check(checks.deploy_path), f"{site.folder}/fp/.flagperf")
    assert (site.folder / "fp/.flagperf/runs").is_dir()
    assert_ok(site.check(checks.deploy_path), ".flagperf")  # and may be there


def test_deploy_path_that_cannot_be_made(site: Site) -> None:
    (site.folder / "fp").write_text("a file")
    check = site.check(checks.deploy_path)
    assert_bad(check, Status.ERROR, f"FLAGPERF_PATH_HOST = {site.folder}/fp", "name a folder in test_conf.py")
    assert "not a directory" in check.detail.lower()


# ---- disk


def test_free_disk(site: Site) -> None:
    assert_ok(site.check(checks.free_disk), "GiB")  # the folder itself is not there yet
    site.conf("MIN_FREE_DISK_GIB = 1e9\n")
    assert_bad(site.check(checks.free_disk), Status.ERROR, "GiB at", "MIN_FREE_DISK_GIB")


def test_free_disk_that_df_does_not_tell(site: Site) -> None:
    site.transport = AnsweringHost({"df -Pk": (1, "", "df: cannot read table of mounted file systems")})
    assert_bad(site.check(checks.free_disk), Status.WARNING, "cannot read table", "look yourself")


# ---- data


def test_data_without_a_manifest(site: Site) -> None:
    assert_ok(site.check(checks.data), f"{site.folder}/data (no manifest)")


def test_data_as_in_its_manifest(site: Site) -> None:
    prepare(site.folder / "data")
    assert_ok(site.check(checks.data), "2 files as in the manifest")


def test_data_that_is_not_there(site: Site) -> None:
    (site.folder / "data").rmdir()
    check = site.check(checks.data)
    assert_bad(check, Status.ERROR, f"{site.folder}/data does not exist", "put the data there on this host")


@pytest.mark.parametrize("harm", ["missing", "short", "unexpected"])
def test_data_that_is_not_as_in_its_manifest(harm: str, site: Site) -> None:
    prepare(site.folder / "data")
    shard = site.folder / "data" / "train" / "shard_1.hdf5"
    harms: dict[str, Callable[[], object]] = {
        "missing": shard.unlink,
        "short": lambda: shard.write_bytes(b"y"),
        "unexpected": lambda: shard.with_name("shard_2.hdf5").touch(),
    }
    harms[harm]()
    check = site.check(checks.data)
    assert_bad(check, Status.ERROR, harm, "copy it from a good host")
    assert "train/shard_" in check.detail


def test_data_of_which_much_is_wrong_is_told_in_a_few_words(site: Site) -> None:
    prepare(site.folder / "data")
    for number in range(2, 50):
        (site.folder / "data" / "train" / f"shard_{number}.hdf5").touch()
    check = site.check(checks.data)
    assert_bad(check, Status.ERROR, "and 43 more", "prepare the data again")


def test_data_with_a_broken_manifest(site: Site) -> None:
    (site.folder / "data" / manifest.MANIFEST_NAME).write_text("{")
    assert_bad(site.check(checks.data), Status.ERROR, "manifest cannot be read", "prepare")


# ---- devices


def test_devices(site: Site) -> None:
    assert_ok(site.check(checks.devices), "2 x Acme X1")


def test_devices_too_few(site: Site) -> None:
    site.devices("echo Acme X1")
    assert_bad(site.check(checks.devices), Status.ERROR, "1, but nproc is 2", "lower nproc")


def test_devices_of_another_kind(site: Site) -> None:
    site.devices("echo Acme X1; echo Acme X2")
    check = site.check(checks.devices)
    assert_bad(check, Status.ERROR, "Acme X2 is not a X1", "config_X1x1x2.py")


def test_devices_that_cannot_be_listed(site: Site) -> None:
    site.devices("echo 'driver not loaded' >&2; exit 9")
    assert_bad(site.check(checks.devices), Status.ERROR, "driver not loaded", "check the driver of acme")


def test_devices_that_nothing_says_how_to_list(site: Site) -> None:
    """A vendor's folder of existing FlagPerf: it has no vendor.py."""
    (site.tree.training / "acme/vendor.py").unlink()
    site.tree.write("benchmarks/toy/pytorch/run_pretraining.py", "")
    site.conf('ACCE_CONTAINER_OPT = ""\nACCE_VISIBLE_DEVICE_ENV_NAME = ""\n')
    assert_bad(site.check(checks.devices), Status.WARNING, "not checked", "acme/vendor.py")


def test_devices_that_the_vendors_own_code_cannot_read(site: Site) -> None:
    text = (site.tree.training / "acme/vendor.py").read_text()
    site.tree.write("acme/vendor.py", text.replace("stdout.splitlines()", "[stdout.splitlines()[9]]"))
    check = site.check(checks.devices)
    assert_bad(check, Status.ERROR, "parse_device_list: IndexError", "acme/vendor.py")


# ---- clock


@pytest.mark.parametrize(
    ("offset", "status", "remedy"),
    [
        (0.0, Status.OK, ""),
        (7.0, Status.WARNING, "start NTP"),
        (-3600.0, Status.ERROR, "set the host's clock"),
    ],
)
def test_clock(
    offset: float, status: Status, remedy: str, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test's controller lags behind by `offset`, so that the host, which is this machine, is ahead."""
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() - offset)
    check = site.check(checks.clock)
    assert check.status is status, check
    assert remedy in check.remedy


def test_clock_that_gives_no_answer(site: Site) -> None:
    site.transport = AnsweringHost({"date": (1, "", "date: invalid format")})
    assert_bad(site.check(checks.clock), Status.WARNING, "invalid format", "look yourself")


# ---- leftovers


def unit(run: str, *, running: bool) -> UnitState:
    return UnitState("flagperf-x", {LABEL_RUN: run}, running)


def test_leftovers(site: Site) -> None:
    assert_ok(site.check(checks.leftovers), "none")
    # made by hand from an image of ours, which carries our label without a run
    site.runtime.units = (unit("", running=True),)
    assert_ok(site.check(checks.leftovers), "none")
    site.runtime.units = (unit("run2", running=False), unit("run1", running=False))
    check = site.check(checks.leftovers)
    assert_bad(check, Status.WARNING, "ended units of run1, run2", "run.py cleanup run1")
    assert "share this host" not in check.remedy
    site.runtime.units = (unit("run1", running=True),)
    check = site.check(checks.leftovers)
    assert_bad(check, Status.WARNING, "running units of run1", "both runs share this host")


def test_leftovers_that_cannot_be_listed(site: Site) -> None:
    site.runtime.error = FlagPerfError("no answer", remedy="start the engine")
    assert_bad(site.check(checks.leftovers), Status.WARNING, "no answer", "start the engine")


# ---- caches


def test_caches(site: Site) -> None:
    assert_ok(site.check(caches.caches), "kept")
    site.conf("CLEAR_CACHES = True\n")
    site.transport = AnsweringHost({caches.CAN_DROP_CACHES: (0, "", "")})
    assert_ok(site.check(caches.caches), "before every round")
    site.transport = AnsweringHost({caches.CAN_DROP_CACHES: (1, "", "sudo: a password is required")})
    assert_bad(site.check(caches.caches), Status.ERROR, "may not drop", "CLEAR_CACHES = False")


# ---- software


def test_software_in_an_image(site: Site) -> None:
    assert_ok(site.check(checks.software), "in the image")


def test_software_without_images(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.conf(f'RUNTIME = "process"\nPROCESS_PYTHON = "{sys.executable}"\n')
    monkeypatch.setattr(checks, "_required_modules", lambda case: ("json", "email"))
    assert_ok(site.check(checks.software), "email, json, psutil")
    monkeypatch.setattr(checks, "_required_modules", lambda case: ("json", "no_such_module"))
    check = site.check(checks.software)
    assert_bad(check, Status.ERROR, f"{sys.executable} lacks no_such_module", "PROCESS_PYTHON")


def test_software_of_the_monitor(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.runtime.uses_images = False
    site.conf(f'RUNTIME = "process"\nPROCESS_PYTHON = "{sys.executable}"\n')
    monkeypatch.setattr(checks, "_required_modules", lambda case: ())
    monkeypatch.setattr(checks, "MONITOR_MODULE", "no_such_module")
    assert_bad(site.check(checks.software), Status.ERROR, "lacks no_such_module", "PROCESS_PYTHON")


def test_software_without_an_interpreter(site: Site) -> None:
    site.conf('RUNTIME = "process"\nPROCESS_PYTHON = "/no/such/python"\n')
    assert_bad(site.check(checks.software), Status.ERROR, "/no/such/python", "PROCESS_PYTHON")
