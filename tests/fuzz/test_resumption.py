"""A run's folder, as who takes the run up reads it: whatever stands in it, an answer or an error."""

from __future__ import annotations

import json
import tempfile
from copy import deepcopy
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from run_benchmarks.interruption import REQUEST, take_request
from run_benchmarks.journal import Journal
from run_benchmarks.names import JOURNAL, RUN_UID
from run_benchmarks.plan.secrets import NO_SECRETS
from run_benchmarks.resumption import read_resumption
from run_benchmarks.stages.watch import Ended, Outcome
from tests.fuzz.long_run import holds
from tests.fuzz.test_results import ODD_TEXTS, VALUES, torn
from tests.run_benchmarks.builders import make_case, observed
from utils.errors import FlagPerfError

CASE = make_case(["h1"])
OF_ROUND = {"case": CASE.settings.name, "round": 1}
SEEN = observed(CASE, outcome=Outcome({0: Ended(0, 1.0)}, timed_out=False, out_of_contact={})).as_dict()
UID = "run20260102030405-abcdef"
STARTED = {"run": UID[:17], "uid": UID, "started": "2026-01-02T03:04:05+00:00", "plan": "0", "tree": "0"}
ENTRIES: list[dict[str, Any]] = [
    {"time": 1.0, "event": "run_started", **STARTED},
    {"time": 2.0, "event": "checked", "checks": {"h1": [{"name": "clock", "status": "ok", "detail": ""}]}},
    {"time": 3.0, "event": "round_started", **OF_ROUND},
    {"time": 4.0, "event": "stage", **OF_ROUND, "stage": "train", "seen": SEEN},
    {"time": 5.0, "event": "stage", **OF_ROUND, "stage": "collect", "seen": SEEN},
    {"time": 6.0, "event": "kept", "folder": "x"},
]
FIELDS = sorted({name for entry in ENTRIES for name in entry} | set(SEEN))


@st.composite
def journals(draw: st.DrawFn) -> str:
    """The lines of a run that was cut off, some of them with other values, torn, twice or not there."""
    more = draw(st.lists(st.sampled_from(ENTRIES), max_size=9))
    entries = [deepcopy(entry) for entry in ([*ENTRIES, *more] if draw(st.booleans()) else more)]
    for entry in entries:
        if draw(st.booleans()):
            seen = entry.get("seen")
            target = seen if isinstance(seen, dict) and draw(st.booleans()) else entry
            target[draw(st.sampled_from(FIELDS))] = draw(VALUES)
    lines = [json.dumps(entry, default=str) for entry in entries]
    odd = draw(st.lists(st.sampled_from(ODD_TEXTS), max_size=1))
    return draw(torn(st.just("\n".join([*lines, *odd]))))


@holds(journal=journals())
def test_whatever_a_journal_says_it_is_taken_up_or_refused(journal: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "plan.json").write_text('{"cases": []}')
        (folder / JOURNAL).write_text(journal, encoding="utf-8", errors="replace")
        ours = Journal(folder / JOURNAL, is_taken_over=True)
        try:
            so_far = read_resumption(folder, ours, NO_SECRETS)
        except FlagPerfError:
            return
        finally:
            ours.close()
    assert RUN_UID.fullmatch(so_far.run.uid)
    for each in so_far.unfinished.values():
        assert each.unwatched_s() >= 0
        assert not each.seen or not any("/" in host for host in each.seen.hosts)
    assert not so_far.unfinished.keys() & so_far.ended


@holds(asker=st.binary(max_size=300))
def test_whoever_asks_a_run_to_stop_is_named_in_a_line(asker: bytes) -> None:
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / REQUEST).write_bytes(asker)
        shown = take_request(Path(name))
        assert shown and shown.isprintable() and take_request(Path(name)) is None
