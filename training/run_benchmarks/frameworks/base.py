"""What a framework is: how a node's ranks are started, and how their last words are read."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass

from utils.node import read_rank_ends

NODE_LAUNCHER, ROLES_LAUNCHER = "utils.node", "utils.roles"
TRACEBACK = "Traceback (most recent call last):"
# Not the `C++ Traceback` that Paddle prints when a signal ends it: what was thrown stands above that.
_PYTHON_TRACEBACK = re.compile(rf"(?<!C\+\+ ){re.escape(TRACEBACK)}")
LAST_LINES = 20
ENDED_BY_LAUNCHER = (0, -signal.SIGTERM, -signal.SIGKILL)
# Words, one of each tuple, that stand behind each other in a line.
Phrase = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Contract:
    """What a case's script is told of where things are, as the unit sees them."""

    vendor: str = ""
    data_dir: str = ""
    config_dir: str = ""
    config_file: str = ""


@dataclass(frozen=True)
class LaunchJob:
    """One training job over `nnodes` nodes with `nproc` ranks each.

    master_addr, master_port: node 0, as every node reaches it. log_dir: where a node's rank logs go.
    script: the training script and its arguments. python: the interpreter's command. Paths are as the
    unit sees them. hosts: the nodes' hosts in the order of their ranks, as the nodes know each other. contract: for
    scripts with a contract of their own, in place of the script's arguments. launcher: the module that
    starts the ranks, and options of its own.
    """

    nnodes: int
    nproc: int
    master_addr: str
    master_port: int
    log_dir: str
    script: tuple[str, ...]
    python: str = "python3"
    hosts: tuple[str, ...] = ()
    contract: Contract = Contract()
    launcher: tuple[str, ...] = (NODE_LAUNCHER,)


class Framework:
    """A training framework, whose ranks FlagPerf's own launcher (utils.node) starts, without restarts.

    name: as in a case's key, without a version (`pytorch`). required_modules: the Python modules that its ranks
    import, looked for where there is no image. lost_peer: what a rank prints whose peer has failed or was cut off:
    in a line of it stands one of the words of each tuple, in this order, for one of these phrases.
    device_types, backends: a vendor's DEVICE_TYPE and COLLECTIVE_BACKEND that need no plug-in; a backend with the
    types of devices that it is for, or none where nobody here knows. appendix: a line that it prints below what a rank
    raised, and that tells nothing of the cause. without_finished: of a framework whose scripts report no FINISHED, what
    is to be known of that.
    """

    name: str
    required_modules: tuple[str, ...]
    lost_peer: tuple[Phrase, ...]
    device_types: tuple[str, ...]
    backends: Mapping[str, tuple[str, ...]]
    appendix: re.Pattern[str] | None = None
    without_finished: str = ""

    def rank_variables(self, job: LaunchJob, node_rank: int) -> Mapping[str, str]:
        """What a rank needs in its environment beside the launch contract; see utils.node for `{rank}` in a value."""
        return {}

    def unit_variables(self, log_dir: str) -> Mapping[str, str]:
        """What a task has in its environment where the user says nothing else; `log_dir` is as the unit sees it."""
        return {}

    def launch_argv(self, job: LaunchJob, node_rank: int) -> tuple[str, ...]:
        """The command that starts the ranks of a node and ends when they have ended, with 0 only if all did."""
        options = {
            "--nnodes": job.nnodes,
            "--node-rank": node_rank,
            "--nproc": self.ranks_of_node(job.nproc),
            "--master-addr": job.master_addr,
            "--master-port": job.master_port,
            "--log-dir": job.log_dir,
        }
        variables = self.rank_variables(job, node_rank)
        words = [word for name, value in options.items() for word in (name, str(value))]
        words += [word for name, value in variables.items() for word in ("--set", f"{name}={value}")]
        return (job.python, "-m", *job.launcher, *words, "--", *self.script_argv(job, node_rank))

    def ranks_of_node(self, nproc: int) -> int:
        """How many processes the launcher starts on a node with `nproc` devices."""
        return nproc

    def script_argv(self, job: LaunchJob, node_rank: int) -> tuple[str, ...]:
        """The command of each of them."""
        return (job.python, "-u", *job.script)

    def failed_ranks(self, start_log: str) -> tuple[tuple[int, int], ...]:
        """All ranks that failed by themselves: (global rank, exit code; negative for a signal), the blamed one first.

        Those that failed before the launcher stopped any, then those that it stopped but that ended otherwise. Two
        ranks that fail at nearly the same time end in any order: where the blamed one is only a secondary failure,
        look at the others.
        """
        ends = read_rank_ends(start_log)
        first = [end for end in ends if not end.stopped and end.exit_code]
        then = [end for end in ends if end.stopped and end.exit_code not in ENDED_BY_LAUNCHER]
        return tuple((end.rank, end.exit_code) for end in (*first, *then))

    def is_secondary_failure(self, log_tail: str) -> bool:
        """Whether a rank, by the end of its log, failed only because a peer had failed or was cut off.

        Every exception in it is then one of a lost peer; without any exception, the last lines tell of one.
        """
        blocks = _PYTHON_TRACEBACK.split(log_tail)[1:]
        if not blocks:
            blocks = ["\n".join(log_tail.strip().splitlines()[-LAST_LINES:])]
        return all(self._tells_of_a_lost_peer(block) for block in blocks)

    def _tells_of_a_lost_peer(self, block: str) -> bool:
        return any(_holds(line, phrase) for line in block.splitlines() for phrase in self.lost_peer)

    def aborted_at_exit(self, log_tail: str) -> bool:
        """Whether a rank, by the end of its log, was done and fell only over the interpreter's own exit.

        Rank 0's FINISHED event must be known besides: other ranks do not write one.
        """
        return False


def _holds(line: str, phrase: Phrase) -> bool:
    """Whether the words stand in the line; in time that grows with its length alone, for a rank may print any line."""
    at = 0
    for words in phrase:
        ends = [begin + len(word) for word in words if (begin := line.find(word, at)) >= 0]
        if not ends:
            return False
        at = min(ends)
    return True
