"""The check of a host's devices: FAKE vendors' tools, which are shell scripts, run for real."""

from __future__ import annotations

import pytest

from run_benchmarks.plan import apart
from run_benchmarks.stages import devices as stage
from run_benchmarks.stages.checks import Status
from run_benchmarks.stages.devices import devices
from tests.run_benchmarks.stages.checked_host import Site, assert_bad, assert_ok


def test_devices(site: Site) -> None:
    assert_ok(site.check(devices), "2 x Acme X1")


def test_devices_too_few(site: Site) -> None:
    site.devices("echo Acme X1")
    assert_bad(site.check(devices), Status.ERROR, "wants 2 devices; there are 1 (1 x Acme X1)", "lower nproc")


def test_devices_of_another_kind(site: Site) -> None:
    site.devices("echo Acme X1; echo Acme X2")
    check = site.check(devices)
    assert_bad(
        check,
        Status.ERROR,
        "toy:pytorch:X1:1:2:1 wants X1 (named Acme X1); there is 2 x Acme X1, Acme X2",
        "in place of config_X1x1x2.py; or, where it is X1, write a part of its name into device_names of "
        f"CHIPS['X1'] in {site.tree.training}/acme/vendor.py",
    )


def test_devices_that_cannot_be_listed(site: Site) -> None:
    site.devices("echo 'driver not loaded' >&2; exit 9")
    assert_bad(site.check(devices), Status.ERROR, "driver not loaded", "check the driver of acme")


def test_devices_that_nothing_says_how_to_list(site: Site) -> None:
    """A vendor's folder of existing FlagPerf: it has no vendor.py."""
    (site.tree.training / "acme/vendor.py").unlink()
    site.tree.write("benchmarks/toy/pytorch/run_pretraining.py", "")
    site.conf('ACCE_CONTAINER_OPT = ""\nACCE_VISIBLE_DEVICE_ENV_NAME = ""\n')
    assert_bad(site.check(devices), Status.WARNING, "not checked", "acme/vendor.py")


def test_devices_that_the_vendors_own_code_cannot_read(site: Site) -> None:
    text = (site.tree.training / "acme/vendor.py").read_text()
    site.tree.write("acme/vendor.py", text.replace("stdout.splitlines()", "[stdout.splitlines()[9]]"))
    check = site.check(devices)
    assert_bad(check, Status.ERROR, "parse_device_list: IndexError", "acme/vendor.py")


def test_what_the_vendors_code_says_of_the_devices_is_shown_with_its_own_remedy(site: Site) -> None:
    text = (site.tree.training / "acme/vendor.py").read_text()
    body = 'raise FlagPerfError("device 3 fell off the bus", remedy="reset it: acme-reset 3")'
    text = text.replace("return stdout.splitlines()", body)
    site.tree.write("acme/vendor.py", f"from utils.errors import FlagPerfError\n{text}")
    check = site.check(devices)
    assert_bad(check, Status.ERROR, "acme: device 3 fell off the bus", "reset it: acme-reset 3")
    assert "mend" not in check.remedy


def test_devices_whose_names_are_no_text(site: Site) -> None:
    text = (site.tree.training / "acme/vendor.py").read_text()
    site.tree.write("acme/vendor.py", text.replace("stdout.splitlines()", "[0, 1]"))
    assert_bad(site.check(devices), Status.ERROR, "acme's parse_device_list", "acme/vendor.py")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("sys.exit(0)", "SystemExit: 0"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("os._exit(0)", "ended the process that executed it, with exit code 0"),
        ("return (_ for _ in ())", "what it returns is no list of texts"),
    ],
)
def test_a_vendors_own_code_cannot_end_the_run(site: Site, body: str, said: str) -> None:
    text = (site.tree.training / "acme/vendor.py").read_text().replace("return stdout.splitlines()", body)
    site.tree.write("acme/vendor.py", f"import os, sys\n{text}")
    assert_bad(site.check(devices), Status.ERROR, f"acme's parse_device_list: {said}", "acme/vendor.py")


@pytest.mark.usefixtures("own_fork")  # which knows of another limit
def test_a_vendors_own_code_that_does_not_end(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "LIMIT_S", 3.0)  # the other files must be done within it on any machine
    text = (site.tree.training / "acme/vendor.py").read_text()
    line = text[: text.index("return stdout")].count("\n") + 1
    site.tree.write("acme/vendor.py", text.replace("return stdout.splitlines()", "while True: pass"))
    assert_bad(site.check(devices), Status.ERROR, "was not done after 3 s", f"acme/vendor.py:{line}")


def test_names_of_devices_are_shown_without_control_characters(site: Site) -> None:
    site.devices("printf 'X\\033[31mred\\n'; echo X")
    check = site.check(devices)
    assert check.status is Status.ERROR
    assert "\x1b" not in check.detail and "\ufffd[31mred" in check.detail


def test_a_list_command_that_hangs(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "LISTING_S", 0.2)
    site.devices("sleep 30")
    check = site.check(devices)
    assert_bad(check, Status.ERROR, "not done after 0.2 s", "LIST_DEVICES_COMMAND in ")
    assert "acme-list on this host" in check.remedy
