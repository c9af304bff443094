"""Where a container engine tells why a container ended: the commands to type, on which host."""

from __future__ import annotations

from run_benchmarks.runtimes.engine import Engine, Podman
from utils.records import FailureClass

# {engine}: its command. An event stream has no end by itself: `--until` and `--stream=false` give it one.
OF_DOCKER = {
    FailureClass.TASK_REMOVED: "see on {host} when, and what else: `{engine} events --since 1h --until 0s "
    "--filter type=container --filter event=kill --filter event=destroy`; who asked is not kept by the engine: "
    "`last`, cron's or a batch system's log",
    FailureClass.ENGINE_FAILED: "see on {host} why: `journalctl -u docker --since -1h`, and `systemctl status docker`",
}
# It has no daemon: what fails is a command of its own, or conmon, which keeps a container.
OF_PODMAN = {
    FailureClass.TASK_REMOVED: "see on {host} when, and what else: `{engine} events --since 1h --stream=false "
    "--filter type=container --filter event=remove`; who asked is not kept by the engine: "
    "`last`, cron's or a batch system's log",
    FailureClass.ENGINE_FAILED: "see on {host} whether `{engine} info` answers, and what "
    "`journalctl --since -1h _COMM=conmon` says",
}


def told_by(engine: Engine, kind: FailureClass | None) -> str:
    """Where that is told of a container whose end is of this kind; empty where the engine knows no more."""
    texts = OF_PODMAN if isinstance(engine, Podman) else OF_DOCKER
    return texts.get(kind, "") if kind else ""
