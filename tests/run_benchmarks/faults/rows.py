"""The rows of the fault matrix: each fault that tests make for real, and what a run must say of it.

One row is one record. A test names its row with `fault(key)` (seen.py); what was seen stands in docs/fault-matrix.md,
which `scripts/fault_matrix.py` writes.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """A fault and what must come of it.

    Args:
        key: by which its test names it; also the name of its record.
        fault: what happens, and how the test makes it.
        where: at which host, in which stage.
        expected: the verdict, and the class and the host of the failure, as `text_of` in seen.py puts them.
        is_quick: whether the ordinary suite runs it too.
    """

    key: str
    fault: str
    where: str
    expected: str
    is_quick: bool = False

    def agrees(self, seen: str) -> bool:
        """Whether `seen` is what is expected; where that names no host, any will do."""
        return f"{seen}, ".startswith(f"{self.expected}, ")


def quick(key: str, fault: str, where: str, expected: str) -> Row:
    """A row for which the ordinary suite has time."""
    return Row(key, fault, where, expected, is_quick=True)


TRAIN0, TRAIN1, CONTROLLER = "node 0, training", "node 1, training", "controller"
BEFORE0, BEFORE1, BEFORE = "node 0, before", "node 1, before", "both nodes, before"
HERE = "controller, all on one machine"
WHOLE, INTERRUPTED = "CONVERGED", "INTERRUPTED, interrupted"
LOST = "UNREACHABLE, host_unreachable, h2"
SEARCH1, MEASURED = "node 1, a search", "MEASURED"
NO_POWER = "the host loses its power"

CONTACT = (
    Row("cut-short", "the cable is out for 20 s", TRAIN1, WHOLE),
    Row("cut-short-first", "the cable is out for 20 s", TRAIN0, WHOLE),
    quick("sessions", "sshd's sessions are killed with signal 9", TRAIN1, "NOT_CONVERGED"),
    Row("sshd", "sshd and its sessions are killed with signal 9, and sshd is back after 8 s", TRAIN1, WHOLE),
)
LINKS = (
    Row("slow", "the link has 1 Mbit/s", "node 1, always", WHOLE),
    Row("long", "ssh takes 300 ms there and back (a proxy keeps every byte)", "node 1, always", WHOLE),
)
ENGINES = (
    Row(
        "engine",
        "the engine is killed with signal 9 and back after 3 s; it ends its containers",
        TRAIN1,
        "FAILED, engine_failed, h2",
    ),
    quick(
        "engine-retried",
        "the engine is killed with signal 9 and back at once; RETRIES is 1, and an attempt takes 12 s",
        TRAIN1,
        WHOLE,
    ),
    quick("removed", "the task's container is removed by hand", TRAIN1, "FAILED, task_removed, h2"),
)
LOST_HOSTS = (
    quick("kill", NO_POWER, TRAIN1, LOST),
    quick("spare", "the host loses its power; there is one in SPARE_HOSTS", TRAIN1, WHOLE),
    quick("cut", "the cable is out for good", TRAIN1, LOST),
    quick("freeze", "the host takes connections and does nothing", TRAIN1, LOST),
    Row("dead-in-build", NO_POWER, "node 0, build", "UNREACHABLE, host_unreachable, h1"),
    Row(
        "dead-in-passing",
        NO_POWER,
        "node 8 of 9, while hosts pass the image on",
        "UNREACHABLE, host_unreachable, h9",
    ),
    Row("dead-in-collect", NO_POWER, "node 1, collection", WHOLE),
    quick("dead-in-collect-first", NO_POWER, "node 0, collection", WHOLE),
)
RANKS = (
    quick("rank-killed", "a rank is killed with signal 9", TRAIN1, "FAILED, rank_killed, h2"),
    Row("raises", "a rank of two raises an exception", TRAIN1, "FAILED, rank_failed, h2"),
    quick("leaves", "a rank of two ends with 0 too early", TRAIN1, "FAILED, rank_failed, h2"),
    Row("leaves-first", "a rank of two ends with 0 too early", TRAIN0, "FAILED, rank_failed, h1"),
    Row(
        "memory",
        "a rank takes more memory than its container may have (200 MB)",
        TRAIN1,
        "FAILED, container_out_of_memory, h2",
    ),
    Row(
        "nan",
        "a learning rate of 1e30: the loss is no number any more",
        "both nodes, training",
        "FAILED, diverged",
    ),
    quick(
        "stopped",
        "a rank of two is stopped (SIGSTOP); HANG_TIMEOUT is 3 s",
        "one machine, training",
        "FAILED, collective_hang, localhost",
    ),
    quick("deadline", "training does not end; the deadline is 8 s", "both nodes", "TIMED_OUT, deadline, h1"),
)
REFUSED = (
    quick("down", "the host has no power", BEFORE1, "exit 3: host_unreachable, h2"),
    quick("key-unknown", "known_hosts is empty", BEFORE, "exit 3: host_key_not_trusted, h1"),
    Row(
        "changed-key", "known_hosts has another key of the host", BEFORE1, "exit 3: host_key_not_trusted, h2"
    ),
    quick("wrong-key", "no host takes the user's key", BEFORE, "exit 3: authentication_failed, h1"),
    Row("wrong-user", "SSH_USER may not log in", BEFORE, "exit 3: authentication_failed, h1"),
    Row("clock", "its `date` is an hour late (a wrapper: all have one clock)", BEFORE1, "exit 3: clock, h2"),
    Row("port", "another program listens on MASTER_PORT", BEFORE0, "exit 3: master port, h1"),
    quick("data-missing", "the data folder is not there", BEFORE1, "exit 3: data, h2"),
    Row("data-longer", "a file of the manifest has two bytes more", BEFORE1, "exit 3: data_altered, h2"),
    Row("data-lost", "a file of the manifest is not there", BEFORE1, "exit 3: data_altered, h2"),
    quick(
        "data-other",
        "a file of the manifest has another byte, at equal size",
        BEFORE1,
        "exit 3: data_altered, h2",
    ),
    Row("image", "another image by the same name", "node 1, image", "FAILED, images_differ, h1, h2"),
    quick("two-runs", "another run trains on the same hosts", "both nodes", WHOLE),
)
DISKS = (
    Row("full-deploy", "the disk has no room for the code", "node 1, deployment", "FAILED, disk_full, h2"),
    quick("full-training", "a rank's log fills the disk", TRAIN1, "FAILED, disk_full, h2"),
    Row("full-collect", "the disk has no room for rank 0's log", "controller, collection", WHOLE),
    Row("full-controller", "the disk fills up; once it has room, `resume`", "controller, training", WHOLE),
)
SEARCHES = (
    quick("search-rank", "a worker's rank is killed with signal 9; it starts anew", SEARCH1, MEASURED),
    Row("search-stopped", "a worker's rank is stopped (SIGSTOP); another has its trial", SEARCH1, MEASURED),
    Row("search-host", "the host loses its power; another has its trial", SEARCH1, MEASURED),
    Row(
        "search-controller",
        "the search's controller is killed with signal 9",
        "node 0, a search",
        "FAILED, rank_killed, h1",
    ),
    Row("search-dead", "kill -9 while a search goes on, then `resume`", CONTROLLER, MEASURED),
    Row(
        "search-full",
        "the disk with the search's state fills up",
        "node 0, a search",
        "FAILED, disk_full, h1",
    ),
)
LOGS = (
    Row("log-huge", "a log of 1 GB", TRAIN0, WHOLE),
    Row("log-bytes", "bytes that are no UTF-8", TRAIN0, WHOLE),
    Row("log-line", "a PerfLog line of 10 MB", TRAIN0, WHOLE),
    Row("log-both", "two events on one line", TRAIN0, WHOLE),
    Row("log-escapes", "a rank dies with escape sequences for terminals", TRAIN0, "FAILED, rank_failed, h1"),
)
STAGES = ("acquire", "deploy", "image", "launch", "train", "collect", "clean_up")
JOURNAL_LINES = (
    "checked",
    "round_started",
    "launch",
    "started",
    "train",
    "collect",
    "clean_up",
    "round_ended",
)
ENDED = (
    *(
        Row(
            f"dead-{stage}",
            f"kill -9 at the stage {stage}, then `resume`",
            CONTROLLER,
            WHOLE,
            stage == "train",
        )
        for stage in STAGES
    ),
    *(
        quick(f"died-{line}", f"kill -9 after `{line}` in the journal, then `resume`", HERE, WHOLE)
        for line in JOURNAL_LINES
    ),
    *(
        Row(f"ctrl-c-{stage}", f"Ctrl-C (SIGINT) at the stage {stage}", CONTROLLER, verdict)
        for stages, verdict in ((STAGES[:5], INTERRUPTED), (STAGES[5:], WHOLE))
        for stage in stages
    ),
    quick("sigterm-hosts", "SIGTERM in training", CONTROLLER, INTERRUPTED),
    Row("sigterm-twice", "SIGTERM twice in training", CONTROLLER, INTERRUPTED),
    Row("sighup-hosts", "SIGHUP in training", CONTROLLER, INTERRUPTED),
    *(
        quick(f"sig{name}", f"SIG{name.upper()} in training", HERE, INTERRUPTED)
        for name in ("int", "term", "hup")
    ),
)
ROWS = (*CONTACT, *LINKS, *ENGINES, *LOST_HOSTS, *RANKS, *REFUSED, *DISKS, *SEARCHES, *LOGS, *ENDED)
