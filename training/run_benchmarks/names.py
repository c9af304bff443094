"""How runs, folders, containers and labels are named, on the hosts and inside the containers."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from run_benchmarks.user_path import user_path
from utils.node import rank_log_name, start_log_name
from utils.search.events import CONTROLLER_LOG
from utils.telemetry.lines import monitor_log_name

if TYPE_CHECKING:
    from run_benchmarks.plan.records import CasePlan, RunSettings

LABEL_RUN = "flagperf.run"
LABEL_ROLE = "flagperf.role"
LABELS = (LABEL_RUN, "flagperf.case", "flagperf.round", "flagperf.node_rank", LABEL_ROLE)
# The folder, below FLAGPERF_PATH_HOST, that belongs to FlagPerf: what a user has beside it is never touched.
WORK_FOLDER = ".flagperf"
# In it: the folders of units that are processes.
UNITS = "units"
# A run's name and, behind it in its uid, what makes that unique.
RUN_NAME = re.compile(r"(run\d{14})(?:-[0-9a-f]{6})?", re.ASCII)
RUN_UID = re.compile(r"run\d{14}-[0-9a-f]{6}", re.ASCII)
# In the work folder: a file on its way to many hosts; its random part is the controller's, who need believe no answer.
COPY_NAME = re.compile(rf"copy-({RUN_UID.pattern})-[0-9a-f]{{12}}", re.ASCII)
# In a run's result folder: what it holds beside the folders of cases, in which are those of rounds.
JOURNAL, SUMMARY = "journal.jsonl", "summary.json"
RUN_LOG = "flagperf_run.log"
RUN_FILES = ("plan.json", JOURNAL, SUMMARY)
# In a round's folder: rank 0's events as they were followed, as long as its log is not home.
FOLLOWED_EVENTS = "followed_events.log"
# In a round's folder, behind the name of a node's: what the controller read of meters outside that node. What lies
# in the node's folder comes from the node, and a node cannot write here.
METER_FILE_ENDING = ".meters.jsonl"
ROUND_FOLDER = re.compile(r"round([1-9]\d{0,8})", re.ASCII)


@dataclass(frozen=True)
class RunId:
    """A run: `name` is its result folder, `uid` what its containers are labelled with on every host.

    Two controllers may start a run in the same second, so the uid holds a random part too. started: the moment that
    both are named after, as ISO 8601 with offset.
    """

    name: str
    uid: str
    started: str


def plain_path(path: Path) -> Path:
    """The path from the root, as it is shown, without `..`: behind a link that means what is above its target.

    Raises:
        FlagPerfError: see `user_path`.
    """
    whole = user_path(path).absolute()
    return whole.resolve() if ".." in whole.parts else whole


def is_run_folder(path: Path) -> bool:
    """Whether a run, or a part of one, lies in a folder; it need not have its own name any more."""
    return any((path / name).is_file() for name in RUN_FILES)


def places_of(given: str, log_path: Path) -> Iterator[Path]:
    """Where the run may lie that a user names by its name, its uid or its folder, in the order in which to look.

    Below the log path first: the current folder may be one in which others can put a folder of that name.
    """
    match = RUN_NAME.fullmatch(given)
    if match:
        yield log_path / match[1]
    places = (Path(given), log_path / given)
    yield from reversed(places) if is_name(given) else places


def is_name(given: str) -> bool:
    """Whether what a user gives is a name, and no path: a run here, in the current folder, is `./NAME`."""
    return "/" not in given and given not in ("", ".", "..")


def home_of(file: Path) -> Path:
    """The folder of the run in which a round's or a node's file lies: above those of its round and case.

    The file's own folder where it is of no round. Between the two no link is followed: the folder may be a stranger's,
    who can put one there at any moment.
    """
    rounds = (folder for folder in file.parents if ROUND_FOLDER.fullmatch(folder.name))
    return next((folder.parent.parent for folder in rounds), file.parent)


def run_of(labels: Mapping[str, str]) -> str:
    """The uid of the run whose labels a unit has.

    Empty where it has none that we made: one started by hand from an image of ours, or a stranger's.
    """
    uid = labels.get(LABEL_RUN, "")
    return uid if RUN_UID.fullmatch(uid) else ""


def run_of_copy(folder: str) -> str:
    """The uid of the run that passes a file on in a folder; empty for another folder."""
    return match[1] if (match := COPY_NAME.fullmatch(PurePosixPath(folder).name)) else ""


def new_run_id(now: datetime) -> RunId:
    """A fresh ID for a run that starts `now` (local time, as the result folder shows it, with its offset)."""
    name = f"run{now:%Y%m%d%H%M%S}"
    return RunId(name, f"{name}-{secrets.token_hex(3)}", now.isoformat(timespec="seconds"))


@dataclass(frozen=True, eq=False)
class Node:
    """One host in one round of one case. Nodes are compared by identity: a round makes its own, once."""

    case: CasePlan
    round: int
    rank: int

    @property
    def host(self) -> str:
        """The host as the user named it."""
        return self.case.hosts[self.rank]

    @property
    def folder(self) -> str:
        """Where this node's logs lie below the run's folder."""
        return f"{self.case.settings.name}/round{self.round}/{node_folder_name(self.host, self.rank)}"

    @property
    def own_logs(self) -> frozenset[str]:
        """The logs of its own ranks and processes, of its launcher, and of its vendor's accelerators."""
        settings = self.case.settings
        ranks = range(self.rank * settings.nproc, (self.rank + 1) * settings.nproc)
        return frozenset(
            (
                *map(rank_log_name, ranks),
                *((decisive_log(self.case.roles),) if self.rank == 0 else ()),
                start_log_name(settings.framework_name),
                monitor_log_name(settings.vendor),
            )
        )


def node_folder_name(host: str, rank: int) -> str:
    """A node's folder in that of its round."""
    return f"{host}_noderank{rank}"


def meter_file_of(node_folder: Path) -> Path:
    """What the controller read of meters outside a node, beside the node's folder of the result tree."""
    return node_folder.with_name(f"{node_folder.name}{METER_FILE_ENDING}")


def decisive_log(roles: Sequence[str]) -> str:
    """The file in the first node's folder that a round is judged by; `roles` are its case's."""
    return CONTROLLER_LOG if roles else rank_log_name(0)


def nodes_of(case: CasePlan, round_number: int) -> tuple[Node, ...]:
    """The nodes of a round, by node rank."""
    return tuple(Node(case, round_number, rank) for rank in range(len(case.hosts)))


@dataclass(frozen=True)
class HostPaths:
    """Where things lie on a host; the same on every host.

    run: in it lies one folder, `logs`, named like the run's result folder.
    """

    work: str
    tree: str
    run: str
    logs: str

    def node(self, node: Node) -> str:
        """The folder that the node's task and monitors write to."""
        return f"{self.logs}/{node.folder}"


def work_folder(settings: RunSettings) -> str:
    """FlagPerf's own folder on every host."""
    return f"{settings.flagperf_path_host.rstrip('/')}/{WORK_FOLDER}"


def image_file(work: str, tag: str, suffix: str) -> str:
    """Where a host keeps an image that is a file, below the work folder."""
    return f"{work}/images/{re.sub(r'[^A-Za-z0-9_.-]', '-', tag)}{suffix}"


def copy_folder(run_uid: str) -> str:
    """A new name for the folder of one copy, below the work folder."""
    return f"copy-{run_uid}-{secrets.token_hex(6)}"


def host_paths(settings: RunSettings, run: RunId, tree_digest: str) -> HostPaths:
    """The paths of a run on its hosts."""
    work = work_folder(settings)
    folder = f"{work}/runs/{run.uid}"
    return HostPaths(work, f"{work}/tree-{tree_digest[:16]}", folder, f"{folder}/{run.name}")


def checkpoint_folder(path: str, run: str, case: CasePlan, round_number: int) -> str:
    """Where a round has its checkpoints, below CHECKPOINT_PATH; `run` is a uid: names are not unique to a run."""
    return f"{path}/{run}/{case.settings.name}/round{round_number}"


def unit_name(run: RunId, node: Node, role: str) -> str:
    """The name of a container (or process tree): readable, and unique on the cluster."""
    case = re.sub(r"[^A-Za-z0-9_.-]", "-", node.case.settings.name)
    return f"flagperf-{run.uid}-{case}-round{node.round}-node{node.rank}-{role}"


def unit_labels(run: RunId, node: Node, role: str) -> Mapping[str, str]:
    """The labels by which a run's units are found again."""
    values = (run.uid, node.case.settings.name, str(node.round), str(node.rank), role)
    return dict(zip(LABELS, values, strict=True))
