"""What hosts say of themselves and of their data: a check has an answer, and nothing that is wrong counts as right."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from hypothesis import strategies as st

from run_benchmarks.doctor import host_checks
from run_benchmarks.doctor.differences import differences
from run_benchmarks.doctor.examine import ALL_HOSTS, Findings
from run_benchmarks.doctor.look import LONGEST_VALUE, parse
from run_benchmarks.doctor.report import as_dict, text_of
from run_benchmarks.plan.records import Plan
from run_benchmarks.plan.secrets import Secrets
from run_benchmarks.runtimes.base import Runtime
from run_benchmarks.stages import data_content
from run_benchmarks.stages.checks import LONGEST_TEXT, Check, DoubtError, HostUse, outcome
from run_benchmarks.stages.data_content import DataFolder, altered_files
from run_benchmarks.transports.base import Completed
from run_benchmarks.transports.local import LocalTransport
from tests.fuzz.long_run import holds
from tests.fuzz.test_results import ODD_TEXTS, torn
from tests.run_benchmarks.doctor.examined import PRINTED, patient_of
from utils.errors import FlagPerfError
from utils.manifest import FileEntry, Manifest, listed_in

PLAN = cast(Plan, SimpleNamespace(run=SimpleNamespace(uses_images=False), secrets=Secrets()))
OF_LOOK = (
    host_checks.system,
    host_checks.processors,
    host_checks.cpu_governor,
    host_checks.memory,
    host_checks.huge_pages,
    host_checks.limits,
    host_checks.mtu,
)
ANSWERS = torn(st.just(PRINTED)) | torn(torn(st.just(PRINTED))) | st.text()


@holds(answers=st.tuples(ANSWERS, ANSWERS))
def test_whatever_hosts_say_of_themselves_the_doctor_has_a_finding(answers: tuple[str, str]) -> None:
    async def examined(printed: str) -> list[Check]:
        patient = replace(patient_of(), look=replace(patient_of().look, values=parse(printed)))
        return [await outcome(check, PLAN, cast(Runtime, None), patient) for check in OF_LOOK]

    checks = {f"h{number}": asyncio.run(examined(printed)) for number, printed in enumerate(answers)}
    for check in (check for of_host in checks.values() for check in of_host):
        assert len(check.detail) <= LONGEST_TEXT + MARK and check.detail.isprintable()
        assert "not foreseen" not in check.detail
        assert all(len(str(value)) <= LONGEST_VALUE + MARK for value in check.facts.values())
    findings = Findings(checks, differences(checks, {ALL_HOSTS: list(checks)}), 1.0)
    assert all(line.isprintable() for line in text_of(findings).splitlines())
    assert set(as_dict(findings)["hosts"]) == set(checks)


MARK = 50  # characters by which a text says that it was cut
SUMS = ("a" * 64, "b" * 64)
STAMPS = ("1:5.0:5.0", "2:6.0:6.5")
DATA = Manifest(
    "x", "y", {}, {}, tuple(FileEntry(f"t/{number}", 7, digest) for number, digest in enumerate(SUMS))
)
LISTING = "".join(f"7 ext4 2049 {stamp} t/{number}\0" for number, stamp in enumerate(STAMPS))
MEMORY = "".join(
    f"{digest} ext4:2049:{stamp} t/{number}\n"
    for number, (digest, stamp) in enumerate(zip(SUMS, STAMPS, strict=True))
)
READ = "1700000000\n" + "".join(f"{digest}  ./t/{number}\n" for number, digest in enumerate(SUMS))


class Answering(LocalTransport):
    """FAKE: a host that answers each of the comparison's commands as it likes."""

    def __init__(self, memory: str, read: str, code: int) -> None:
        super().__init__("h")
        self.memory, self.read, self.code = memory, read, code
        self.kept = ""

    async def run(self, argv: Sequence[str], **options: Any) -> Completed:
        if data_content.READ in argv:
            return Completed(self.host, tuple(argv), self.code, self.read, "")
        if options.get("stdin"):
            self.kept = options["stdin"].decode()
        return Completed(self.host, tuple(argv), self.code, self.memory, "")


def told(text: str) -> st.SearchStrategy[str]:
    """As it should be, torn, of other files, or nothing of the kind."""
    return st.sampled_from(["", text, text.replace("a", "c"), *ODD_TEXTS]) | torn(st.just(text)) | st.text()


@holds(memory=told(MEMORY), read=told(READ), code=st.sampled_from([0, 0, 0, 1, 126]))
def test_whatever_a_host_says_of_its_data_only_what_has_their_sums_is_right(
    memory: str, read: str, code: int
) -> None:
    host = Answering(memory, read, code)
    use = HostUse(host, ())
    folder = DataFolder(use, "/w", "/d", DATA, listed_in(LISTING, "/d"))
    lines = set(memory.split("\n")) if code == 0 else set()
    remembered = {line for line in MEMORY.splitlines() if line in lines}
    seen = {f"{digest}  ./t/{number}" for number, digest in enumerate(SUMS)} & set(read.split("\n"))
    try:
        problems = asyncio.run(altered_files(folder))
    except DoubtError:
        assert len(remembered) + len(seen) < 4
        return
    except FlagPerfError:
        assert code
        return
    right = {line.split()[2] for line in remembered} | {line.split("./")[1] for line in seen}
    assert problems or right == {"t/0", "t/1"}
    assert set(host.kept.splitlines()) <= set(MEMORY.splitlines())


@holds(listing=torn(st.just(LISTING)) | st.text())
def test_a_listing_is_read_or_refused(listing: str) -> None:
    try:
        listed = listed_in(listing, "h:/d")
    except FlagPerfError as error:
        assert error.where == "h:/d"
        return
    assert all(file.bytes >= 0 and file.stamp.isascii() and path for path, file in listed.items())
