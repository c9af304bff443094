"""Hosts that are examined: what one said when it was looked at, and a patient of it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import cast

from run_benchmarks.doctor.look import Look, Patient, parse
from run_benchmarks.plan.load import load_hosts
from run_benchmarks.plan.records import Plan
from run_benchmarks.plan.vendor_record import Vendor
from run_benchmarks.runtimes.base import Runtime
from run_benchmarks.stages.checks import Check, Checker, outcome
from run_benchmarks.transports.base import Transport
from run_benchmarks.transports.local import LocalTransport
from tests.fakes.runtime import FakeRuntime
from tests.run_benchmarks.plan.tree import TEST_CONF, make_tree

# A server with two Xeons, of which the serial line of its first log-in is a part.
PRINTED = """\
Welcome to node1!
kernel=Linux 6.1.0-18-amd64
machine=x86_64
system="Debian GNU/Linux 12 (bookworm)"
processor=Intel(R) Xeon(R) Platinum 8480+
processors=224
governor=performance
load=3.10
MemTotal=2113363128
MemAvailable=2093363128
HugePages_Total=0
HugePages_Free=0
Hugepagesize=2048
transparent_huge_pages=madvise
memlock=unlimited
nofile=1048576
rdma=mlx5_0 mlx5_1
python3=/usr/bin/python3
mtu.eth0=1500
mtu.ib0=4092
"""


def plan_of(folder: Path, *, test_conf: str = TEST_CONF, cluster_conf: str = "") -> Plan:
    """A plan without cases."""
    tree = make_tree(folder)
    tree.configure(test_conf=test_conf, **({"cluster_conf": cluster_conf} if cluster_conf else {}))
    return load_hosts(tree.config, tree.training)


def patient_of(
    changed: str = "",
    *,
    transport: Transport | None = None,
    vendors: tuple[Vendor, ...] = (),
    address: str = "n1.invalid",
) -> Patient:
    """A host that said PRINTED, but for lines that come after it."""
    look = Look(parse(PRINTED + changed))
    here = transport or LocalTransport("node1")
    return Patient(here, (), is_only_seen=True, look=look, vendors=vendors, address=address)


def judge(checker: Checker[Patient], plan: Plan, patient: Patient) -> Check:
    """What a check makes of the host; the runtime is a FAKE."""
    return asyncio.run(outcome(checker, plan, cast(Runtime, FakeRuntime()), patient))


def as_process(plan: Plan) -> Plan:
    """The same without containers."""
    return replace(plan, run=replace(plan.run, runtime="process"))
