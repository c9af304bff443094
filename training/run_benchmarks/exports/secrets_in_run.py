"""What a run's own files say is secret, before they leave this machine.

Ranks write into these files: a line of theirs hides no name that the run is read by, and no flood of lines hides that
something else is a secret.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from run_benchmarks.exports.redaction import Redaction, Searched, values_in
from run_benchmarks.exports.run_files import RunFile
from run_benchmarks.plan.secrets import SHORTEST, Secrets
from run_benchmarks.results.folder import RunFolder, as_list, section
from run_benchmarks.results.summary import Run
from utils.errors import FlagPerfError
from utils.events import PREFIX
from utils.figures import DEFINITIONS
from utils.inventory import INVENTORY_FILE
from utils.node import rank_log_name
from utils.telemetry.lines import TELEMETRY_FILE

# Characters of values that a file, and a whole run, may add: each is looked for in some fifty spellings.
MOST_OF_A_FILE, MOST_OF_A_RUN = 2**15, 2**17
_OF_CONTROLLER = len(PurePosixPath("case/round1/result.json").parts)
_FLOODED = (
    f"it gives names of secrets more than {MOST_OF_A_FILE} characters of values, or a run's files more than "
    f"{MOST_OF_A_RUN}: not all of them can be hidden"
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
        held.update(values_in(blocks, Searched()))
    named = _NamedValues()
    # The controller's own files first, which lie above those of nodes: what ranks write leaves room for these.
    in_order = sorted(files, key=lambda file: file.name.count("/"))
    flooded = {file.name for file in in_order if not named.take(file)}
    checked = [replace(file, objection=_FLOODED) if file.name in flooded else file for file in files]
    return Redaction(replace(secrets, held=secrets.held | held | named.values)), checked


def _is_document(file: RunFile) -> bool:
    return not file.objection and file.is_document


def _blocks_of(file: RunFile) -> Iterator[str]:
    with suppress(FlagPerfError):  # it was changed since, and is left out
        if not file.objection:
            yield from file.blocks()


@dataclass
class _NamedValues:
    """The values that files give to names of secrets; size: their characters."""

    searched: Searched = field(default_factory=Searched)

    values: set[str] = field(default_factory=set)
    size: int = 0

    def take(self, file: RunFile) -> bool:
        """Take a file's values; whether all of them could be taken."""
        limit = min(self.size + MOST_OF_A_FILE, MOST_OF_A_RUN)
        with suppress(FlagPerfError):  # too many lines name some
            for value in values_in(_blocks_of(file), self.searched, is_document=_is_document(file)):
                if len(value) < SHORTEST or value in self.values:
                    continue
                if self.size + len(value) > limit:
                    return False
                self.values.add(value)
                self.size += len(value)
            return True
        return False


def _names_of(folder: RunFolder, run: Run, files: Iterable[RunFile]) -> Iterator[str]:
    """What the run is read by: hosts, cases, folders, FlagPerf's own files, parameters, figures, the mark of events."""
    yield from map(str, as_list(section(folder.plan, "cluster").get("hosts")))
    for name, case in folder.cases.items():
        yield from (name, *case.parameters)
    for result in run.results:
        yield from result.figures
    yield from (PREFIX, run.name, run.uid, TELEMETRY_FILE, INVENTORY_FILE, *DEFINITIONS)
    for file in files:
        path = PurePosixPath(file.name)
        yield str(path.parent)
        # a rank may give a file in its node's folder any name
        if len(path.parts) <= _OF_CONTROLLER or path.name == rank_log_name(_digits(path.name)):
            yield path.name


def _digits(text: str) -> str:
    return "".join(filter(str.isdecimal, text))
