"""The check that no case asks a host's processors for a precision that they only emulate."""

from __future__ import annotations

import pytest

from run_benchmarks.stages.checks import Status
from run_benchmarks.stages.precision import precision
from tests.fakes.transports import AnsweringHost
from tests.run_benchmarks.plan.tree import VENDOR
from tests.run_benchmarks.stages.checked_host import Site, assert_bad, assert_ok, assert_skipped
from tests.utils.test_processor import CASCADE_LAKE, SAPPHIRE_RAPIDS
from utils.processor import CPUINFO


@pytest.fixture
def processors(site: Site) -> Site:
    """A site whose vendor is the hosts' own processors."""
    site.tree.write("acme/vendor.py", VENDOR.replace('"acme"', '"cpu"'))
    return site


def _wants(site: Site, precision: str) -> None:
    site.tree.write("acme/toy-pytorch/config/config_X1x1x2.py", f'precision = "{precision}"\n')


def _is(site: Site, cpuinfo: str) -> None:
    site.transport = AnsweringHost({CPUINFO: (0, cpuinfo, "")})


@pytest.mark.parametrize("wanted", ["bf16", "fp16"])
def test_an_emulated_precision_is_warned_of(processors: Site, wanted: str) -> None:
    _wants(processors, wanted)
    _is(processors, CASCADE_LAKE)
    check = processors.check(precision)
    detail = f"toy:pytorch:X1:1:2:1 asks for {wanted}, which is emulated here: Intel(R) Xeon(R) CPU @ 2.80GHz"
    assert_bad(check, Status.WARNING, detail, 'set precision = "auto" or "fp32" in acme/toy-pytorch/config')
    assert f"has none of amx_{wanted}, avx512_{wanted}" in check.detail


@pytest.mark.parametrize(
    ("wanted", "cpuinfo", "detail"),
    [
        ("bf16", SAPPHIRE_RAPIDS, "bf16: amx_bf16, avx512_bf16"),
        ("auto", SAPPHIRE_RAPIDS, "auto: amx_bf16, avx512_bf16"),
        ("auto", CASCADE_LAKE, "auto: fp32"),
    ],
)
def test_what_is_native_is_well(processors: Site, wanted: str, cpuinfo: str, detail: str) -> None:
    _wants(processors, wanted)
    _is(processors, cpuinfo)
    assert_ok(processors.check(precision), detail)


def test_this_machines_own_processors_are_read(processors: Site) -> None:
    _wants(processors, "auto")
    assert_ok(processors.check(precision), "auto: ")


def test_a_host_that_does_not_tell_is_warned_of(processors: Site) -> None:
    _wants(processors, "bf16")
    processors.transport = AnsweringHost({CPUINFO: (2, "", "grep: /proc/cpuinfo: Permission denied")})
    assert_bad(processors.check(precision), Status.WARNING, "Permission denied", "yourself")


def test_accelerators_and_fp32_are_not_asked(processors: Site, site: Site) -> None:
    _wants(processors, "fp32")
    _is(processors, "")
    assert_skipped(processors.check(precision))
    site.tree.write("acme/vendor.py", VENDOR)
    _wants(site, "bf16")
    assert_skipped(site.check(precision))
