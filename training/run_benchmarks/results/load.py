"""`load_run`: a run read back from its folder alone, whole or torn, of this version or an earlier one."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from run_benchmarks.journal import is_held
from run_benchmarks.names import JOURNAL
from run_benchmarks.plan.secrets import SecretsHere
from run_benchmarks.reading import LARGEST_BYTES
from run_benchmarks.results.alterations import alterations, verdicts_of
from run_benchmarks.results.bounds import bounded, checks_in
from run_benchmarks.results.controller import lost_controller
from run_benchmarks.results.folder import (
    RoundKey,
    RunFolder,
    as_list,
    open_folder,
    read_observation,
    read_result,
    section,
    summed_up,
)
from run_benchmarks.results.judge import without_secrets
from run_benchmarks.results.of_2022 import NOTE
from run_benchmarks.results.round_result import RoundResult, few
from run_benchmarks.results.shared import Shared
from run_benchmarks.results.summary import Run
from utils.errors import FlagPerfError, raised
from utils.node import rank_log_name
from utils.text_files import matching

# Of all the rounds' results: the largest summary.json, in which each of them stands too, has half as much.
MOST_BYTES = 2 * LARGEST_BYTES
MOST_LOG_BYTES = 2**30  # of the rounds that have no result: that is judged whenever the folder is read
MOST_PLANNED = 10_000  # rounds of a plan that are looked for: a stranger's may name any number


def load_run(path: Path, secrets: SecretsHere) -> Run:
    """The run in the folder `path`: the inverse of what a run writes there.

    Args:
        secrets: what is hidden in what has to be judged now; what a run wrote it has hidden itself.

    Raises:
        FlagPerfError: it is no result folder of a run, or cannot be listed.
    """
    return run_in(open_folder(path), secrets)


def run_in(folder: RunFolder, secrets: SecretsHere) -> Run:
    """The run in a folder that has been opened; what cannot be read of it is among the notes."""
    results = _results(folder, cache(secrets))
    first, end = _entry(folder, "run_started"), _entry(folder, "run_ended")
    about = {"run": folder.path.resolve().name, "started": _moment(first.get("time")), **first, **end}
    about |= {"planned": sum(1 for _ in planned_rounds(folder)) or None, **folder.summary}
    if folder.of_2022:
        about["started"] = min((result.started for result in results.values()), default="")
    code, planned = about.get("exit_code"), about.get("planned")
    missing = list(_missing(folder, results, ended="exit_code" in about))
    checks = checks_in(folder)
    return Run(
        name=str(about["run"]),
        uid=str(about.get("uid") or ""),
        started=str(about["started"]),
        exit_code=code if type(code) is int else None,
        results=tuple(results.values()),
        checks=checks,
        notes=tuple(few([*map(str, as_list(folder.summary.get("notes"))), *folder.notes, *missing])),
        planned=planned if type(planned) is int else None,
    )


def results_in(
    folder: RunFolder, ended: Collection[RoundKey], unwritten: Collection[RoundKey], secrets: SecretsHere
) -> Iterator[RoundResult]:
    """The results of those rounds that have one, and of those that had `ended` before it could be written.

    Args:
        unwritten: those that had none, by the journal: whatever lies there since then, they are judged.

    Raises:
        FlagPerfError: there is one that cannot be read.
    """
    for key in folder.rounds:
        if key in unwritten and (judged := _judged(folder, key, secrets)):
            yield judged
            continue
        result = read_result(folder, key)
        if result is None and (folder.round_path(key) / "result.json").exists():
            raise FlagPerfError(folder.notes[-1], remedy="put it back, or start a new run")
        result = result or (_judged(folder, key, secrets) if key in ended else None)
        if result:
            yield result


def going_on(folder: RunFolder) -> str:
    """Since when a run goes on and where it is, by its journal; empty where it does not, or nobody can tell."""
    if not is_held(folder.path / JOURNAL):
        return ""
    first = _entry(folder, "run_started")
    since = first.get("started") or _moment(first.get("time"))
    key, stage = next(reversed(_last_stages(folder).items()), ("its preflight", ""))
    return f"since {since or 'an unknown time'}, now at {key}{stage and f', stage {stage}'}"


def lost_rounds(folder: RunFolder, results: Sequence[RoundResult]) -> list[RoundKey]:
    """The rounds that were begun, by the journal, and have no result; not the one at which a run still is."""
    begun = list(_last_stages(folder))
    begun = begun[:-1] if is_held(folder.path / JOURNAL) else begun
    there = {RoundKey(each.case, each.round) for each in results}
    return [key for key in begun if key not in there]


def planned_rounds(folder: RunFolder) -> Iterator[RoundKey]:
    """The first MOST_PLANNED rounds that the run was to make; those that had succeeded in the run before are not."""
    done = section(folder.plan, "done")
    of_cases = (
        (name, number) for name, case in folder.cases.items() for number in range(1, case.settings.repeat + 1)
    )
    made = {
        name: {number for number in as_list(done.get(name)) if type(number) is int} for name in folder.cases
    }
    for name, number in islice(of_cases, MOST_PLANNED):
        if number not in made[name]:
            yield RoundKey(name, number)


def _results(folder: RunFolder, secrets: SecretsHere) -> dict[RoundKey, RoundResult]:
    """Each round's result: as it was written, else as the summary has it, else judged from what there is."""
    from_summary = summed_up(folder)
    results, logged, shared = {}, 0, Shared()
    (written, held), verdicts = _written(folder), verdicts_of(folder)
    for key in folder.rounds:
        own, summed = written.get(key), from_summary.pop(key, None)
        folder.notes += alterations(folder, key, own, summed, verdicts)
        if summed and not own and not (folder.round_path(key) / "result.json").exists():
            folder.notes.append(f"{key}: result.json is not there, its figures are those of summary.json")
        judged = None
        if not own and not summed and held <= MOST_BYTES:
            logged += sum(map(_size, matching(folder.round_path(key), "*/*")))
            judged = _judged(folder, key, secrets) if logged <= MOST_LOG_BYTES else None
            if logged > MOST_LOG_BYTES:
                more = "has no result, and more logs than are judged unasked: `show --rescore`"
                folder.notes.append(f"{key} {more}")
            held += len(json.dumps(judged.as_dict())) if judged else 0
        elif not own and not summed:
            folder.notes.append(f"{key} is not judged: the results hold more than {MOST_BYTES} bytes")
        result = own or summed or judged
        if result:
            results[key] = shared.one(result)
    return bounded(folder, {**results, **from_summary})


def _written(folder: RunFolder) -> tuple[dict[RoundKey, RoundResult], int]:
    """The rounds' result.json, and how many bytes all of them have; the small ones are read first.

    So one that is large costs none of the others.
    """
    sizes = {key: _size(folder.round_path(key) / "result.json") for key in folder.rounds}
    results, held = {}, 0
    for key in sorted(sizes, key=sizes.__getitem__):
        held += sizes[key]
        if held > MOST_BYTES:
            folder.notes.append(f"{key} is not read: with it the results hold more than {MOST_BYTES} bytes")
        elif result := read_result(folder, key):
            results[key] = result
    return results, held


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0  # it is not there, or cannot be read either


def _judged(folder: RunFolder, key: RoundKey, secrets: SecretsHere) -> RoundResult | None:
    """The result of a round whose controller was killed before it had written it."""
    try:
        seen, case = read_observation(folder, key), folder.cases.get(key.case)
        return without_secrets(case, seen, folder.round_path(key), secrets()) if seen and case else None
    except FlagPerfError as error:
        folder.note(error)
    except Exception as error:  # a stranger's logs may hold anything
        folder.notes.append(f"{key} cannot be judged: {raised(error)}")
    return None


def _entry(folder: RunFolder, event: str) -> Mapping[str, Any]:
    """The journal's first line of an event, or nothing."""
    return next((entry for entry in folder.journal if entry.get("event") == event), {})


def _missing(folder: RunFolder, results: Mapping[RoundKey, RoundResult], *, ended: bool) -> Iterator[str]:
    """What a reader misses: the end of the run, files, rounds that have no result, and logs of those that have one."""
    if folder.of_2022:
        yield NOTE
    elif is_held(folder.path / JOURNAL):
        yield "the run still goes on"
    elif not ended:
        gone = lost_controller(folder).fate
        yield f"the run did not come to its end: {gone} (`run.py resume`), or it still runs elsewhere"
    yield from () if folder.of_2022 else _missing_files(folder, ended)
    stages = _last_stages(folder)
    lost = {*results, *_ended_rounds(folder)}.difference(folder.rounds)
    for key in dict.fromkeys((*planned_rounds(folder), *stages, *results)):
        gone = f"its folder is not there: {folder.round_path(key)}" if key in lost else ""
        if key not in results:
            begun = f"it was last seen at the stage {stages[key]}" if key in stages else "it was not begun"
            if key in folder.rounds and key not in stages:
                begun = "what its folder has was not read"
            if key in stages or not folder.summary:  # a summary says itself which rounds were not begun
                yield f"{key} has no result: {'; '.join(filter(None, (begun, gone)))}"
        elif gone:
            yield f"{key}: {gone}; what is shown of it is what summary.json says"
        elif _has_reported(results[key]) and not folder.has_log(key):
            yield f"{key}: {rank_log_name(0)} is not there: its figures cannot be computed again"


def _has_reported(result: RoundResult) -> bool:
    """Whether something of it came from global rank 0's log, which was there then."""
    own = ("round_time",)  # the controller's
    return bool(result.facts) or any(
        figure.value is not None for name, figure in result.figures.items() if name not in own
    )


def _missing_files(folder: RunFolder, ended: bool) -> Iterator[str]:
    """Those files of the run that should be there and are not."""
    losses = {
        "plan.json": "which rounds were planned, and with which parameters, is not known",
        JOURNAL: "how far rounds came that have no result is not known",
    }
    if ended:
        losses["summary.json"] = "the preflight is not known"
    for name, loss in losses.items():
        if not (folder.path / name).exists():
            yield f"{name} is not there: {loss}"


def _last_stages(folder: RunFolder) -> dict[RoundKey, str]:
    """Each round that was begun, with the stage that the journal last names."""
    stages: dict[RoundKey, str] = {}
    for entry in folder.journal:
        case, number = entry.get("case"), entry.get("round")
        if isinstance(case, str) and isinstance(number, int):
            stages[RoundKey(case, number)] = str(
                entry.get("stage") or stages.get(RoundKey(case, number), "deploy")
            )
    return stages


def _ended_rounds(folder: RunFolder) -> set[RoundKey]:
    """The rounds that came to their end, by the journal: each has left a folder."""
    ended = [entry for entry in folder.journal if entry.get("event") == "round_ended"]
    return {RoundKey(str(entry.get("case")), _whole(entry.get("round"))) for entry in ended}


def _whole(value: object) -> int:
    return value if type(value) is int else 0


def _moment(time_s: object) -> str:
    """Seconds since the epoch as text; empty where there are none."""
    try:
        return datetime.fromtimestamp(float(str(time_s)), timezone.utc).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        return ""
