"""What a run's own files say is secret, before they leave this machine.

Ranks write into these files: a line of theirs hides no name that the run is read by, and no flood of lines hides that
something else is a secret.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import PurePosixPath

from run_benchmarks.exports.redaction import MOST_LINES, MOST_OF_LINES, Redaction, Searched, values_in
from run_benchmarks.exports.run_files import RunFile, node_of
from run_benchmarks.plan.secrets import SHORTEST, Secrets
from run_benchmarks.results.folder import RunFolder, as_list, section
from run_benchmarks.results.summary import Run
from utils.errors import FlagPerfError
from utils.events import PREFIX
from utils.inventory import INVENTORY_FILE
from utils.node import rank_log_name
from utils.telemetry.lines import TELEMETRY_FILE

# Characters of values that a file, a node's files and a whole run may add: each is looked for in some fifty spellings.
MOST_OF_A_FILE, MOST_OF_A_NODE, MOST_OF_A_RUN = 2**14, 2**15, 2**19
_PARTS_OF_NODE = len(["case", "round1", "node"]) - 1
_OF_CONTROLLER = len(PurePosixPath("case/round1/result.json").parts)
_FLOODED = (
    f"it gives names of secrets more than {MOST_OF_A_FILE} characters of values, its node's files more than "
    f"{MOST_OF_A_NODE}, or the run's more than {MOST_OF_A_RUN}: not all of them can be hidden"
)
_DENSE = (
    f"its node's files name secrets in more than {MOST_LINES} lines, or {MOST_OF_LINES} characters of lines: not all "
    "of them are looked through"
)


def redaction_of(
    folder: RunFolder, run: Run, scripts: list[RunFile], files: list[RunFile], secrets: Secrets
) -> tuple[Redaction, list[RunFile]]:
    """What hides all secrets that can be had, and the files, with an objection to those that name too many."""
    secrets = replace(secrets, open_texts=secrets.open_texts.union(_names_of(folder, run, files)))
    held: set[str] = set()
    for script in scripts:
        blocks = list(_blocks_of(script))
        secrets = secrets.with_those_of({}, (), "".join(blocks))
        held.update(values_in(blocks, Searched(), secrets.marked))
    named = defaultdict[str, _NamedValues](partial(_NamedValues, secrets.marked))
    checked = [file if file.objection else named[node_of(file)].taken(file) for file in files]
    values, flooding = _within_budget(named)
    checked = [
        replace(file, objection=file.objection or _FLOODED)
        if node_of(file) in flooding and not file.names_nothing
        else file
        for file in checked
    ]
    return Redaction(replace(secrets, held=secrets.held | held | values)), checked


def _within_budget(named: Mapping[str, _NamedValues]) -> tuple[frozenset[str], frozenset[str]]:
    """The values that are hidden, and the nodes whose own are too many: those that have most.

    The controller's own files come first.
    """
    order = sorted(named, key=lambda node: (node.count("/") == _PARTS_OF_NODE, named[node].size))
    values, flooding, size = set[str](), set[str](), 0
    for node in order:
        new = named[node].values - values
        size += sum(map(len, new))
        if size > MOST_OF_A_RUN:
            flooding.add(node)
        else:
            values |= new
    return frozenset(values), frozenset(flooding)


def _blocks_of(file: RunFile) -> Iterator[str]:
    with suppress(FlagPerfError):  # it was changed since, and is left out
        if not file.objection:
            yield from file.blocks()


@dataclass
class _NamedValues:
    """The values that the files of one node give to names of secrets, `marked` too; size: their characters."""

    marked: frozenset[str]
    searched: Searched = field(default_factory=Searched)
    values: set[str] = field(default_factory=set)
    size: int = 0

    def taken(self, file: RunFile) -> RunFile:
        """The file, whose values were taken; with an objection where not all of them could be."""
        before = self.searched.lines
        values = values_in(_blocks_of(file), self.searched, self.marked, is_document=file.is_document)
        objection = self._take(values)
        names_nothing = self.searched.lines == before and not file.is_document
        return replace(file, objection=objection, names_nothing=names_nothing)

    def _take(self, values: Iterable[str]) -> str:
        """Why not all of a file's values could be taken, or nothing."""
        limit = min(self.size + MOST_OF_A_FILE, MOST_OF_A_NODE)
        try:
            for value in values:
                if len(value) < SHORTEST or value in self.values:
                    continue
                if self.size + len(value) > limit:
                    return _FLOODED
                self.values.add(value)
                self.size += len(value)
        except FlagPerfError:
            return _DENSE
        return ""


def _names_of(folder: RunFolder, run: Run, files: Iterable[RunFile]) -> Iterator[str]:
    """What the run is read by: hosts, cases, folders, FlagPerf's own files, parameters, figures, the mark of events."""
    yield from map(str, as_list(section(folder.plan, "cluster").get("hosts")))
    for name, case in folder.cases.items():
        yield from (name, *case.parameters)
    for result in run.results:
        yield from result.figures
    yield from (PREFIX, run.name, run.uid, TELEMETRY_FILE, INVENTORY_FILE)
    for file in files:
        path = PurePosixPath(file.name)
        yield str(path.parent)
        # a rank may give a file in its node's folder any name
        if len(path.parts) <= _OF_CONTROLLER or path.name == rank_log_name(_digits(path.name)):
            yield path.name


def _digits(text: str) -> str:
    return "".join(filter(str.isdecimal, text))
