"""What differs between hosts that should be alike, and how many hosts' answers are told in a few lines."""

from __future__ import annotations

import json

from run_benchmarks.doctor.differences import Difference, differences
from run_benchmarks.doctor.examine import ALL_HOSTS, Findings
from run_benchmarks.doctor.report import as_dict, text_of
from run_benchmarks.stages.checks import Check, Status

OK, WARNING, ERROR, SKIPPED = Status.OK, Status.WARNING, Status.ERROR, Status.SKIPPED


def host(
    mtu: str = "1500", *, gib: float = 500.0, status: Status = OK, engine: str = "24.0.7"
) -> list[Check]:
    return [
        Check("engine", OK, engine),
        Check("mtu", status, f"eth0 {mtu}", "mend it" * (status is not OK), {"eth0": mtu}),
        Check("free disk", OK, f"{gib} GiB", facts={"free_gib": gib}),
        Check("clock", OK, "", facts={"offset_s": gib}),
        Check("host key", OK, "", facts={"kind": "ssh-ed25519", "fingerprint": f"SHA256:{gib}"}),
        Check("peers", SKIPPED, ""),
    ]


def test_what_differs_stands_out_and_what_is_each_host_s_own_does_not() -> None:
    checks = {
        "n1": host(),
        "n2": host("9000", gib=80.0),
        "n3": host(gib=5000.0),
        "n4": host(engine="20.10.24"),
    }
    assert differences({"n1": checks["n1"], "n2": host(gib=80.0)}, {ALL_HOSTS: ("n1", "n2")}) == []
    assert differences(checks, {ALL_HOSTS: tuple(checks)}) == [
        Difference("engine", "version", ALL_HOSTS, (("24.0.7", ("n1", "n2", "n3")), ("20.10.24", ("n4",)))),
        Difference("mtu", "eth0", ALL_HOSTS, (("1500", ("n1", "n3", "n4")), ("9000", ("n2",)))),
        Difference(
            "free disk", "free_gib", ALL_HOSTS, ((500.0, ("n1", "n4")), (80.0, ("n2",)), (5000.0, ("n3",)))
        ),
    ]


def test_only_hosts_of_one_vendor_should_be_alike() -> None:
    checks = {"n1": host(), "n2": host("9000")}
    assert differences(checks, {"nvidia": ("n1",), "acme": ("n2",)}) == []


def test_equal_answers_of_many_hosts_are_folded() -> None:
    checks = {f"n{number}": host() for number in range(1000)}
    checks["n7"] = host("9000", status=WARNING)
    checks["n8"] = [Check("reachable", ERROR, "no answer", "check that the host is up")]
    findings = Findings(checks, differences(checks, {ALL_HOSTS: tuple(checks)}), 2.0)
    text = text_of(findings)
    assert len(text.splitlines()) < 25 and not findings.is_healthy
    assert "n[0-6,9-999]" in text.splitlines()[0]
    assert "mtu, eth0: 1500 on n[0-6,9-999]; 9000 on n7" in text
    assert "n8  reachable  no answer\n-> check that the host is up" in text
    assert "nothing asks for: peers" in text


def test_the_names_in_the_json_stay() -> None:
    """docs/doctor.md has them."""
    checks = {"n1": host(), "n2": host("9000")}
    findings = Findings(checks, differences(checks, {ALL_HOSTS: ("n1", "n2")}), 1.23456)
    content = json.loads(json.dumps(as_dict(findings)))
    assert content["version"] == 1 and content["healthy"] is True and content["seconds"] == 1.235
    assert content["hosts"]["n1"]["mtu"] == {
        "status": "ok",
        "detail": "eth0 1500",
        "remedy": "",
        "facts": {"eth0": "1500"},
    }
    assert content["differences"] == [
        {
            "check": "mtu",
            "fact": "eth0",
            "group": "all hosts",
            "answers": [{"value": "1500", "hosts": ["n1"]}, {"value": "9000", "hosts": ["n2"]}],
        }
    ]
