"""What stays on hosts after runs and nobody may need any more: trees of code, copies on their way, images, checkpoints.

None of it is removed while it may be needed: a run that goes on is told by its units, by the lock of its journal, and
by what was used within a day, which is how a run shows itself whose controller is on another machine and has no
unit running just now. Where hosts share a work folder, whose units may run on another one, it is told by its logs too:
they are being written. Only what has a name or a label of ours, where we make it, is looked at; no link is followed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from run_benchmarks.images import open_image_files, open_image_store
from run_benchmarks.images.layers import plan_image
from run_benchmarks.journal import is_held
from run_benchmarks.names import COPY_NAME, JOURNAL, RUN_NAME, RUN_UID, run_of, work_folder
from run_benchmarks.plan.records import Plan, RunSettings
from run_benchmarks.results.find import has_uid
from run_benchmarks.results.folder import open_folder
from run_benchmarks.runtimes.base import UnitState
from run_benchmarks.stages.tree import tree_of
from run_benchmarks.stages.work_folder import ENTER_OWN, SEE, in_work_folder
from run_benchmarks.transports.base import Transport, checked
from utils.errors import FlagPerfError
from utils.numbers import whole

DAY_S = 24 * 3600
LOOKING_S, REMOVING_S = 300.0, 600.0
TREES, COPIES, IMAGES, CHECKPOINTS, LOGS = "code", "copy", "image", "checkpoints", "logs"
WRITTEN_MIN = (
    60  # logs that were written so recently are those of a run that goes on: its monitors write all the time
)
# As it is deployed, as it was put aside, and as it is left by a deployment that was cut off.
TREE_NAME = re.compile(r"tree-([0-9a-f]{16})(\.altered|\.[A-Za-z0-9]{6})?", re.ASCII)
NAMES = {TREES: TREE_NAME, COPIES: COPY_NAME, CHECKPOINTS: RUN_UID}
# $0: the work folder, $1: CHECKPOINT_PATH or nothing. A line each: kind, name, KiB, seconds since its last use. A tree
# is used when a round has seen that it is whole; checkpoints when one was written. Both need not be there. Of runs'
# logs those are listed that are being written.
LIST = (
    "export LC_ALL=C; now=$(date +%s); "
    'row() { printf "%s\\t%s\\t%s\\t%s\\n" "$1" "${2##*/}" "$(du -sk "$2" 2>/dev/null | cut -f 1)" "$((now - $3))"; }; '
    f'[ ! -d "$0" ] || ({ENTER_OWN}for kind in "{TREES} tree" "{COPIES} copy"; do for d in ./"${{kind#* }}"-*; do '
    '[ -d "$d" ] && [ ! -L "$d" ] && row "${kind% *}" "$d" "$(stat -c %Z "$d")"; done; done; '
    'for d in ./runs/run*; do [ -d "$d" ] && [ ! -L "$d" ] && '
    f'[ "$(find "$d" -type f -mmin -{WRITTEN_MIN} -print -quit 2>/dev/null)" ] && row {LOGS} "$d" "$now"; done; :) '
    '|| exit; [ -z "$1" ] || for d in "$1"/run*; do [ -d "$d" ] && [ ! -L "$d" ] && '
    f'row {CHECKPOINTS} "$d" "$(find "$d" -printf "%C@\\n" 2>/dev/null | sort -n | tail -n 1 | cut -d . -f 1)"; '
    "done; exit 0"
)
# In the folder that holds them; $1: nothing that is used, $2: minutes since their last use, then names. What was used
# since it was listed stays, and is printed.
REMOVE = (
    'minutes=$2; shift 2; for n; do [ -d "./$n" ] && [ ! -L "./$n" ] || continue; '
    'if [ "$minutes" = 0 ] || [ "$(find "./$n" -maxdepth 0 -cmin "+$minutes")" ]; then rm -rf -- "./$n" || failed=1; '
    'else printf "%s\\n" "$n"; fi; done; exit "${failed:-0}"'
)


@dataclass(frozen=True)
class Item:
    """Something that a host keeps. size: bytes. age_s: since its last use, of an image since it was made."""

    kind: str
    name: str
    size: int
    age_s: float


@dataclass(frozen=True)
class Held:
    """What a host holds: items; FlagPerf's units; written: the uids of runs whose logs are being written."""

    items: Sequence[Item] = ()
    units: Sequence[UnitState] = ()
    written: Sequence[str] = ()


@dataclass(frozen=True)
class Needs:
    """What keeps items, beside their age.

    log_path: where the results of runs are. going_on: the names of those there that go on. trees, images: what a run of
    today's configuration would use. named: the run that the user named, or empty. continued: by the uid of a run, the
    names of those there that have not ended and go on from its checkpoints.
    """

    log_path: Path
    going_on: Sequence[str] = ()
    trees: Collection[str] = ()
    images: Collection[str] = ()
    named: str = ""
    continued: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def keeps(self, item: Item, held: Held, others: Iterable[UnitState] = ()) -> str:
        """Why an item of a host that holds these things stays; empty where it may go. others: units on other hosts."""
        if item.kind == CHECKPOINTS:  # which may lie on a file system that hosts share
            return self._keeps_checkpoints(item, (*held.units, *others))
        units = held.units
        running = sorted({run_of(unit.labels) or unit.name for unit in units if unit.running})
        if running:
            return f"units of {running[0]} still run here"
        if self.going_on:
            return f"{self.going_on[0]} goes on"
        if item.name in (self.trees if item.kind == TREES else self.images):
            return "a run of today's configuration would use it"
        if held.written:
            return f"logs of {held.written[0]} are being written here"
        used = "made" if item.kind == IMAGES else "used"
        return f"{used} less than a day ago" if item.age_s < DAY_S else ""

    def _keeps_checkpoints(self, item: Item, units: Sequence[UnitState]) -> str:
        folder = self.log_path / item.name.partition("-")[0]
        is_here = _is_of(folder, item.name)
        if any(unit.running and run_of(unit.labels) == item.name for unit in units):
            return "its units still run here"
        if is_here and _may_go_on(folder):
            return "its run may go on"
        is_named = self.named in (item.name, item.name.partition("-")[0])
        for later in self.continued.get(item.name, ()):
            if not is_named or _may_go_on(self.log_path / later):
                return f"{later} has not ended, and goes on from them"
        if is_here and open_folder(folder).summary.get("exit_code") == 0:
            return ""
        if not is_named:
            return "its run has not ended well" if is_here else f"{self.log_path} has no results of its run"
        return "" if is_here or item.age_s >= DAY_S else "written less than a day ago"


def _is_of(folder: Path, uid: str) -> bool:
    try:
        return has_uid(folder, uid)
    except FlagPerfError:  # there is none, or it cannot be read
        return False


def _may_go_on(folder: Path) -> bool:
    return is_held(folder / JOURNAL) is not False


def runs_going_on(log_path: Path) -> list[str]:
    """The names of the runs below a log path whose controllers live, by the locks of their journals."""
    return [path.name for path in _runs_in(log_path) if is_held(path / JOURNAL)]


def _continued(log_path: Path) -> dict[str, list[str]]:
    """By the uid of a run, those that go on from it and have not ended: their controllers live, or may be resumed."""
    continued: dict[str, list[str]] = {}
    for path in _runs_in(log_path):
        earlier = _continue_from(path)
        if earlier:
            continued.setdefault(earlier, []).append(path.name)
    return continued


def _continue_from(path: Path) -> str:
    """The uid of the run that the one in a folder goes on from; empty where there is none, or it has ended."""
    try:
        folder = open_folder(path)
    except FlagPerfError:  # nothing of a run is in it yet, or it cannot be read
        return ""
    if "exit_code" in folder.summary and not _may_go_on(path):
        return ""
    values = (entry.get("continue_from") for entry in (folder.plan, *folder.journal[:1]))
    return next((value for value in values if isinstance(value, str) and value), "")


def _runs_in(log_path: Path) -> list[Path]:
    return sorted(path for path in log_path.glob("run*") if RUN_NAME.fullmatch(path.name))


def needs_of(plan: Plan | None, log_path: Path, named: str) -> Needs:
    """What today's configuration needs, where there is a valid one."""
    needs = Needs(log_path, runs_going_on(log_path), named=named, continued=_continued(log_path))
    if plan is None:
        return needs
    layers = [layer for case in plan.cases if plan.run.uses_images for layer in plan_image(plan, case).layers]
    trees = (f"tree-{tree_of(plan).digest[:16]}",)
    store = open_image_store(plan.run) or open_image_files(plan.run)
    return replace(needs, trees=trees, images={store.kept_as(layer.tag) for layer in layers if store})


async def held_by(transport: Transport, run: RunSettings, units: Sequence[UnitState]) -> Held:
    """What a host keeps, trees of code, copies, checkpoints and images, beside these units."""
    argv = ("sh", "-c", LIST, work_folder(run), run.checkpoint_path)
    listed = await checked(transport, argv, timeout=LOOKING_S)
    items = [item for line in listed.whole_stdout().splitlines() if (item := item_of(line))]
    store = open_image_store(run) or open_image_files(run)
    images = await store.own_images(transport) if store else []
    items += [Item(IMAGES, image.tag, image.size, image.age_s) for image in images]
    written = [item.name for item in items if item.kind == LOGS]
    return Held([item for item in items if item.kind != LOGS], units, written)


def item_of(line: str) -> Item | None:
    """The item that a line of LIST tells; None where it has no name of ours, or is none."""
    kind, name, kib, age = (line.split("\t") + [""] * 4)[:4]
    size, seconds = whole(kib), whole(age)
    pattern = {**NAMES, LOGS: RUN_UID}.get(kind)
    if size is None or seconds is None or not pattern or not pattern.fullmatch(name):
        return None
    return Item(kind, name, size * 1024, float(seconds))


async def remove_items(transport: Transport, run: RunSettings, items: Sequence[Item]) -> list[str]:
    """Remove items from a host; the names of those that stayed, as they were used meanwhile.

    Raises:
        FlagPerfError: something could not be removed; what comes after it was not tried.
    """
    names = {kind: [item.name for item in items if item.kind == kind] for kind in (*NAMES, IMAGES)}
    for kind, pattern in NAMES.items():
        if not all(map(pattern.fullmatch, names[kind])):
            raise FlagPerfError(f"no names of ours: {names[kind]!r}", where=transport.host)
    stayed: list[str] = []
    if names[TREES] or names[COPIES]:
        words = (str(DAY_S // 60), *names[TREES], *names[COPIES])
        done = await in_work_folder(
            transport, work_folder(run), ENTER_OWN + REMOVE, *words, timeout=REMOVING_S, enter=SEE
        )
        stayed += done.whole_stdout().splitlines()
    if names[CHECKPOINTS]:
        remedy = f"remove it yourself: what a container wrote in {run.checkpoint_path} may be root's"
        script = f'cd -P -- "$0" || exit; {REMOVE}'
        argv = ("sh", "-c", script, run.checkpoint_path, "", "0", *names[CHECKPOINTS])
        await checked(transport, argv, timeout=REMOVING_S, remedy=remedy)
    store = open_image_store(run) or open_image_files(run)
    if store:
        for tag in names[IMAGES]:
            await store.remove(transport, tag)
    return stayed
