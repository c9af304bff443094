"""The state of a run: saved, and gone on from with the same loss curve as a run that was never cut off.

A checkpoint holds the model, the optimizer, the gradients' scaler, the counters, the training time until
then, and of every rank the state of its random generators. The learning rate and the order of the samples
are functions of the step: the step is their state. It is the last one trained, wherever the thread that
loads ahead has got to.

Global rank 0 writes and reads; the others get what they need from it, for they may be on other hosts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.driver.arguments import LaunchArguments
from benchmarks.driver.checkpoint_files import NotWrittenError, has_checkpoints, read_newest, write_checkpoint
from benchmarks.driver.configuration import Configuration
from benchmarks.driver.counters import TrainingCounters, is_at_cap
from benchmarks.driver.engine import TrainingEngine
from benchmarks.driver.free_memory import free_memory
from benchmarks.driver.parts import Parts
from benchmarks.driver.random_states import host_random_state, set_host_random_state
from utils.checkpoints import CHECKPOINT_DIR, CONTINUE_FROM, MAY_BEGIN_ANEW
from utils.errors import FlagPerfError
from utils.manifest import MANIFEST_NAME
from utils.parameters import TrainingSettings

# What may differ between the parts of a run: nothing here moves a weight.
FREE = {
    "save_steps", "log_freq", "init_evaluation", "prefetch_batches", "cpu_threads", "dist_timeout_seconds",
    "target", "max_steps", "max_samples_termination",
    "eval_batch_size", "eval_interval_steps", "eval_interval_samples", "eval_iter_start_samples",
    "seed_step",  # the seed that it gave is among the rest
}  # fmt: skip


@dataclass(frozen=True)
class Continued:
    """Where an earlier part of the run ended, as far as it was saved.

    Attributes:
        file: the checkpoint.
        step, samples: trained until then, over all ranks.
        train_time: seconds since the first part's TRAIN_START, without the time between parts.
        skipped: newer checkpoints that were not whole or did not fit into memory, and why.
        other_hooks: whether a part was trained with other code of the vendor's hooks than this one. What that made of
            weights and optimizer came with the checkpoint, where no check of this part's hooks sees it.
        other_code, other_data: likewise of the code of case and driver, and of the data; also where a checkpoint does
            not tell.
        changed: the parameters that were changed, in a part before this one, beyond what the case allows.
    """

    file: str
    step: int
    samples: int
    train_time: float
    skipped: tuple[str, ...] = ()
    other_hooks: bool = False
    other_code: bool = False
    other_data: bool = False
    changed: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """As it stands in the events."""
        return {**asdict(self), "skipped": list(self.skipped), "changed": list(self.changed)}


@dataclass(frozen=True)
class Start:
    """Where this part of the run begins; `random` is this rank's state of the random generators.

    begun_anew: why it begins anew though it was to go on; empty otherwise.
    parts: what all parts up to this one were trained with.
    """

    counters: TrainingCounters = field(default_factory=TrainingCounters)
    continued: Continued | None = None
    random: Any = None
    begun_anew: str = ""
    parts: Parts = field(default_factory=Parts)

    def as_dict(self) -> dict[str, Any]:
        """As it stands in the events; nothing where nothing was to be continued."""
        if self.continued:
            return {"continued": self.continued.as_dict()}
        return {"begun_anew": self.begun_anew} if self.begun_anew else {}

    @property
    def earlier_time(self) -> float:
        """Seconds of training before this part."""
        return self.continued.train_time if self.continued else 0.0


class Saver:
    """Saves a checkpoint every `save_steps` steps."""

    def __init__(
        self,
        engine: TrainingEngine[Any],
        folder: Path,
        task: Mapping[str, Any],
        save_steps: int,
        parts: Parts | None = None,
    ) -> None:
        self.engine, self.folder, self.task, self.save_steps = engine, folder, task, save_steps
        self.parts = parts or Parts()
        self.failures = 0

    def is_due(self, counters: TrainingCounters) -> bool:
        """Has the last step been one to save after?"""
        return counters.steps % self.save_steps == 0

    def save(self, counters: TrainingCounters, train_time: float) -> None:
        """Save after the last step of `counters`. Every rank calls this, and all wait until the file is there.

        A file that cannot be written (the disk is full) does not end hours of training: rank 0's log says so, and
        `failures` counts it. A state that no checkpoint can hold does: it will not be another at the next save.

        Raises:
            FlagPerfError: the vendor's optimizer or scaler keeps its state in something else than plain data.
        """
        ranks = self.engine.group.gather(self._of_this_rank(counters))
        if self.engine.rank == 0:
            state = {
                "task": dict(self.task),
                **self.parts.as_state(),
                "counters": {"steps": counters.steps, "samples": counters.samples, "train_time": train_time},
                "engine": self.engine.state(),
                "ranks": ranks,
            }
            self._write(counters.steps, state)
        self.engine.group.barrier()

    def _of_this_rank(self, counters: TrainingCounters) -> dict[str, Any]:
        return {
            "tokens": counters.tokens,
            "flops": counters.flops,
            "host": host_random_state(),
            "engine": self.engine.random_state(),
        }

    def _write(self, step: int, state: Mapping[str, Any]) -> None:
        try:
            path = write_checkpoint(self.folder, step, lambda partial: self.engine.save(state, partial))
            print(f"checkpoint of step {step}: {path}", flush=True)
        except NotWrittenError as error:
            self.failures += 1
            print(f"training goes on without it: {error}", flush=True)


def make_saver(
    engine: TrainingEngine[Any],
    settings: TrainingSettings,
    task: Mapping[str, Any],
    environment: Mapping[str, str],
    parts: Parts,
) -> Saver | None:
    """What saves checkpoints, with what all `parts` were trained with; None where the configuration wants none.

    Raises:
        FlagPerfError: it wants some, and nobody says where.
    """
    if settings.save_steps is None:
        return None
    folder = environment.get(CHECKPOINT_DIR)
    if not folder:
        raise FlagPerfError(
            f"save_steps = {settings.save_steps}, but {CHECKPOINT_DIR} is not set",
            where="environment",
            remedy="set CHECKPOINT_PATH in test_conf.py (or this variable, by hand), or save_steps = None",
        )
    return Saver(engine, Path(folder), task, settings.save_steps, parts)


def restore(
    engine: TrainingEngine[Any],
    settings: TrainingSettings,
    task: Mapping[str, Any],
    environment: Mapping[str, str],
    part: Parts,
) -> Start:
    """Load what the environment says to go on from; the beginning where it says nothing. Every rank calls this.

    `part` is this one alone (see `part_of`).

    Raises:
        FlagPerfError: there is no whole checkpoint, it is of another task, or training had ended there.
    """
    folder = environment.get(CONTINUE_FROM)
    if not folder:
        return Start(parts=part)
    anew_allowed = environment.get(MAY_BEGIN_ANEW) == "1"
    file, data, skipped = _read_by_rank_0(engine, Path(folder), anew_allowed)
    content = engine.group.broadcast(data)
    if not content.read(1):
        return Start(begun_anew=f"{folder} has no checkpoint", parts=part)
    content.seek(0)
    state = engine.load(content)
    # else a rank has them beside the state and what is moved of it: three copies, not COPIES
    del data, content
    refuse_other_task(state["task"], task, Path(folder))
    saved, own = state["counters"], state["ranks"][engine.rank]
    counters = TrainingCounters(saved["steps"], saved["samples"], own["tokens"], own["flops"])
    if is_at_cap(settings, counters):
        raise FlagPerfError(
            f"the checkpoint of step {counters.steps} ({counters.samples} samples) is at the cap already",
            where=str(folder),
            remedy="raise max_steps or max_samples_termination, or start anew",
        )
    engine.load_state(state["engine"])
    earlier, parts = Parts().after(state), part.after(state)
    continued = Continued(
        file,
        counters.steps,
        counters.samples,
        saved["train_time"],
        skipped,
        other_hooks=len(parts.hooks) > 1,
        other_code=len(parts.code) > 1,
        other_data=len(parts.data) > 1,
        changed=tuple(sorted(earlier.changed)),
    )
    return Start(counters, continued, own, parts=parts)


def refuse_other_task(then: Mapping[str, Any], now: Mapping[str, Any], file: Path) -> None:
    """A checkpoint goes on only as what it was: the loss curve must be that of one run.

    Raises:
        FlagPerfError: what was trained then differs from what is to be trained now; every name is listed.
    """
    names = sorted({*then, *now})
    different = [
        f"{name} = {then.get(name)!r} (now {now.get(name)!r})"
        for name in names
        if then.get(name) != now.get(name)
    ]
    if different:
        raise FlagPerfError(
            f"the checkpoint is of another task: {', '.join(different)}",
            where=str(file),
            remedy="set these as they were, or start anew",
        )


def restore_random(engine: TrainingEngine[Any], start: Start) -> None:
    """Set this rank's random generators as they were; the last thing before training goes on."""
    if start.random is not None:
        set_host_random_state(start.random["host"])
        engine.load_random_state(start.random["engine"])


def task_of(
    arguments: LaunchArguments, config: Configuration, world_size: int, data_dir: Path
) -> dict[str, Any]:
    """What must be the same in all parts of a run, by name."""
    settings = config.driver
    parameters = replace(config, settings=replace(settings, decay_steps=settings.decay_end)).as_dict()
    return {
        **{name: value for name, value in parameters.items() if name not in FREE},
        "case": "/".join(arguments.case_dir.parts[-2:]),
        "vendor": arguments.vendor,
        "world_size": world_size,
        "data": _digest_of(data_dir / MANIFEST_NAME),
    }


def _read_by_rank_0(
    engine: TrainingEngine[Any], folder: Path, anew_allowed: bool
) -> tuple[str, bytes | None, tuple[str, ...]]:
    """On rank 0 the file and its bytes, which are empty where there is none and that is allowed."""
    # every rank loads it, at the same time: where memory is scarcest decides
    share = min(engine.group.gather(free_memory() / engine.group.local_world_size))
    if engine.rank != 0:
        return "", None, ()
    if anew_allowed and not has_checkpoints(folder):
        print(f"begins anew: {folder} has no checkpoint", flush=True)
        return "", b"", ()
    path, data, skipped = read_newest(folder, share)
    for reason in skipped:
        print(f"checkpoint passed over: {folder}/{reason}", flush=True)
    print(f"goes on from {path}", flush=True)
    return str(path), data, skipped


def _digest_of(manifest: Path) -> str | None:
    """SHA-256 of the data's manifest; None where they have none."""
    return hashlib.sha256(manifest.read_bytes()).hexdigest() if manifest.is_file() else None
