"""Each check of a host: what passes, what is worth a warning, what forbids a run, and what the user is told.

Commands run for real on this machine. Only the runtime is a FAKE, and the answers that this machine cannot give.
"""

from __future__ import annotations

import sys
import time

import pytest

from run_benchmarks.names import LABEL_RUN
from run_benchmarks.plan.records import Plan
from run_benchmarks.runtimes.base import Runtime, UnitState
from run_benchmarks.runtimes.engine import engine_of
from run_benchmarks.stages import caches, checks
from run_benchmarks.stages.build_secrets import build_secrets
from run_benchmarks.stages.checks import HostUse, Status
from run_benchmarks.stages.clock import ClockReading
from run_benchmarks.transports.base import CommandError, Completed
from tests.fakes.transports import AnsweringHost
from tests.run_benchmarks.conftest import LogLines
from tests.run_benchmarks.stages.checked_host import Site, assert_bad, assert_ok, assert_skipped
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
    assert_bad(
        check, Status.ERROR, f"FLAGPERF_PATH_HOST = {site.folder}/fp", "FLAGPERF_PATH_HOST in test_conf.py"
    )
    assert "not a directory" in check.detail.lower()


def test_deploy_path_that_others_can_replace(site: Site) -> None:
    (site.folder / "fp").mkdir()
    (site.folder / "fp").chmod(0o777)
    check = site.check(checks.deploy_path)
    assert_bad(check, Status.ERROR, f"others may replace what is in {site.folder}/fp", "the sticky bit")
    assert not (site.folder / "fp/.flagperf").exists()


# ---- disk


def test_free_disk(site: Site) -> None:
    assert_ok(site.check(checks.free_disk), "GiB")  # the folder itself is not there yet
    site.conf("MIN_FREE_DISK_GIB = 1e9\n")
    assert_bad(site.check(checks.free_disk), Status.ERROR, "GiB at", "MIN_FREE_DISK_GIB (1,000,000,000 GiB)")


def test_free_disk_that_df_does_not_tell(site: Site) -> None:
    site.transport = AnsweringHost({"df -Pk": (1, "", "df: cannot read table of mounted file systems")})
    assert_bad(site.check(checks.free_disk), Status.WARNING, "cannot read table", "look yourself")
    site.transport = AnsweringHost({"df -Pk": (0, "/dev/sda 9 9 \N{SUPERSCRIPT TWO} 1% /", "")})
    assert_bad(site.check(checks.free_disk), Status.WARNING, "/dev/sda", "look yourself")
    site.transport = AnsweringHost({"df -Pk": (0, f"/dev/sda 9 9 {'9' * 5000} 1% /", "")})
    assert_bad(site.check(checks.free_disk), Status.WARNING, "/dev/sda", "look yourself")


def test_an_answer_that_nobody_foresaw_is_an_error_of_that_host(site: Site, log_lines: LogLines) -> None:
    async def unready(plan: Plan, runtime: Runtime, use: HostUse) -> str:
        raise ValueError("a fault of our own")

    assert_bad(site.check(unready), Status.ERROR, "not foreseen: ValueError", "flagperf_run.log")
    assert "Traceback" in log_lines.details[0]


# ---- clock


@pytest.mark.parametrize(
    ("offset", "status", "remedy"),
    [
        (0.0, Status.OK, ""),
        (7.0, Status.WARNING, "start NTP"),
        (-3600.0, Status.ERROR, "set the clock of node1"),
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
    direction = "behind" if offset < 0 else "ahead of"
    assert not offset or f" s {direction} the controller (+- " in check.detail, check
    measured, error = check.facts["offset_s"], check.facts["uncertainty_s"]
    assert isinstance(measured, float) and isinstance(error, float)
    assert abs(measured - offset) <= error + 0.01, "a clock that is off goes with the results too"


def test_a_clock_is_told_in_words() -> None:
    assert str(ClockReading(1e9, 3600.25, 0.002)) == "3,600.250 s ahead of the controller (+- 0.002 s)"
    assert str(ClockReading(1e9, -0.5, 0.01)) == "0.500 s behind the controller (+- 0.010 s)"


def test_clock_that_gives_no_answer(site: Site) -> None:
    site.transport = AnsweringHost({"date": (1, "", "date: invalid format")})
    assert_bad(site.check(checks.clock), Status.WARNING, "invalid format", "look yourself")


@pytest.mark.parametrize("answer", ["nan", "-inf", "1e999"])
def test_a_clock_that_tells_no_time_is_a_doubt(answer: str, site: Site) -> None:
    """It passed, and then no file could hold its offset: neither the round's nor the summary was written."""
    site.transport = AnsweringHost({"date": (0, f"{answer}\n", "")})
    check = site.check(checks.clock)
    assert_bad(check, Status.WARNING, answer, "look yourself")
    assert check.facts == {}


# ---- leftovers


def unit(run: str, *, running: bool) -> UnitState:
    return UnitState("flagperf-x", {LABEL_RUN: run}, running)


def test_leftovers(site: Site) -> None:
    assert_ok(site.check(checks.leftovers), "none")
    # made by hand from an image of ours, which carries our label without a run
    site.runtime.units = (unit("", running=True),)
    assert_ok(site.check(checks.leftovers), "none")
    # and a stranger's
    site.runtime.units = (unit("*", running=True), unit("run20260102030405-aaaaaa; reboot", running=True))
    assert_ok(site.check(checks.leftovers), "none")
    first, second = "run20260102030405-aaaaaa", "run20260102030405-bbbbbb"
    site.runtime.units = (unit(second, running=False), unit(first, running=False))
    check = site.check(checks.leftovers)
    assert_bad(check, Status.WARNING, f"ended units of {first}, {second}", f"run.py cleanup {first}")
    assert f"run.py cleanup {second}" in check.remedy
    assert "share a host" not in check.remedy
    site.runtime.units = (unit(first, running=True),)
    check = site.check(checks.leftovers)
    assert_bad(check, Status.WARNING, f"running units of {first}", "runs that share a host have figures")
    assert "cleanup ends what runs, and is for runs alone that are over: " in check.remedy


def test_leftovers_that_cannot_be_listed(site: Site) -> None:
    site.runtime.error = FlagPerfError("no answer", remedy="start the engine")
    assert_bad(site.check(checks.leftovers), Status.WARNING, "no answer", "start the engine")


# ---- caches


def test_caches(site: Site) -> None:
    assert_skipped(site.check(caches.caches))
    site.conf("CLEAR_CACHES = True\n")
    site.transport = AnsweringHost({caches.CAN_DROP_CACHES: (0, "", "")})
    assert_ok(site.check(caches.caches), "before every round")
    site.transport = AnsweringHost({caches.CAN_DROP_CACHES: (1, "", "sudo: a password is required")})
    assert_bad(site.check(caches.caches), Status.ERROR, "may not drop", "CLEAR_CACHES = False")


# ---- software


def test_software_in_an_image(site: Site) -> None:
    assert_skipped(site.check(checks.software))


def test_software_without_images(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.conf(f'RUNTIME = "process"\nPROCESS_PYTHON = "{sys.executable}"\n')
    monkeypatch.setattr(checks, "_required_modules", lambda case: ("json", "email"))
    assert_ok(site.check(checks.software), "email, json, psutil")
    monkeypatch.setattr(checks, "_required_modules", lambda case: ("json", "no_such_module"))
    check = site.check(checks.software)
    assert_bad(check, Status.ERROR, f"{sys.executable} lacks no_such_module", "PROCESS_PYTHON")


def test_a_python_that_the_shared_driver_is_not_written_for(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.conf(f'RUNTIME = "process"\nPROCESS_PYTHON = "{sys.executable}"\n')
    monkeypatch.setattr(checks, "_required_modules", lambda case: ("json",))
    monkeypatch.setattr(checks, "DRIVER_PYTHON", (3, 99))
    assert_bad(site.check(checks.software), Status.ERROR, "lacks Python 3.99 (it is 3.", "PROCESS_PYTHON")
    site.tree.write("benchmarks/toy/pytorch/run_pretraining.py", "")
    assert_ok(site.check(checks.software), "json, psutil")


def test_software_of_the_monitor(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.runtime.uses_images = False
    site.conf(f'RUNTIME = "process"\nPROCESS_PYTHON = "{sys.executable}"\n')
    monkeypatch.setattr(checks, "_required_modules", lambda case: ())
    monkeypatch.setattr(checks, "MONITOR_MODULE", "no_such_module")
    assert_bad(site.check(checks.software), Status.ERROR, "lacks no_such_module", "PROCESS_PYTHON")


def test_software_without_an_interpreter(site: Site) -> None:
    site.conf('RUNTIME = "process"\nPROCESS_PYTHON = "/no/such/python"\n')
    assert_bad(site.check(checks.software), Status.ERROR, "/no/such/python", "PROCESS_PYTHON")


@pytest.mark.parametrize("answer", [0, 1])
def test_build_secrets(answer: int, site: Site) -> None:
    """Asked where an image may be built that mounts one, and nowhere else."""
    builder = " ".join(engine_of("docker").takes_secrets())
    site.transport = AnsweringHost({builder: (answer, "", "")})
    site.conf("IMAGE_BUILD_ARGS = {'REPO_TOKEN': 'hunter22'}\n")
    assert site.check(build_secrets).status is Status.SKIPPED
    site.tree.write("acme/docker_image/pytorch/Dockerfile", "RUN --mount=id=REPO_TOKEN,type=secret true\n")
    check = site.check(build_secrets)
    assert check.status is (Status.ERROR if answer else Status.OK)
    assert "REPO_TOKEN" in check.detail
    assert "hunter22" not in str(check)
    site.rank = 1
    assert site.check(build_secrets).status is Status.SKIPPED
    site.conf("IMAGE_BUILD_ARGS = {'REPO_TOKEN': 'hunter22'}\nIMAGE_DISTRIBUTION = 'build'\n")
    assert site.check(build_secrets).status is not Status.SKIPPED
