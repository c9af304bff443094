"""The driver's own settings: every case of a kind has them, and the configuration's layers may set them.

Their names are FlagPerf's. A case's `config/_base.py` sets what is the task's, a vendor's file what makes
its chip fast. A setting is one field here: its name, type, default and what it may be.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import Field, dataclass, field
from functools import partial
from typing import Any, ClassVar

# (the settings that it is between, what is wrong with the first, what to do)
Conflict = tuple[tuple[str, ...], str, str]

# The fastest that every rank's processor computes natively; the driver settles it when the ranks have met.
AUTO = "auto"
PRECISIONS = ("fp32", "bf16", "fp16", AUTO)
_ACCELERATORS_PRECISIONS = ("fp32", "bf16", "fp16")
# What a framework computes in on a CPU, where that is not all; AUTO is one of them.
_ON_CPU: Mapping[str, tuple[str, ...]] = {"paddle": ("fp32", AUTO)}
OPTIMIZERS = ("adamw", "lamb", "sgd")
# What a framework's engine does not do: framework -> setting -> the values that it has.
ONLY_IN_FRAMEWORK: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "paddle": {"optimizer": ("adamw",), "torch_compile": (False,)}
}
# The frameworks' generators hold a seed in 64 bits, and every rank adds its number to it.
MAX_SEED = 2**63 - 1
# Sizes, threads and counts of what stands in memory: the frameworks' own numbers have 32 bits.
MOST = 2**31 - 1
# Steps and samples are counted in 64 bits, and stand in JSON, whose numbers are exact up to here.
MOST_COUNTED = 2**53
A_DAY = 86_400
# The variable that tells a rank which round of its case it is, from 1.
ROUND = "FLAGPERF_ROUND"
SCHEDULES = ("linear", "constant")
EVAL_INTERVALS = ("eval_interval_steps", "eval_interval_samples")


def precisions_of(framework: str, device_type: str) -> tuple[str, ...]:
    """What `precision` may be there; of a device that is not known (empty) nothing is ruled out.

    An accelerator's is named: its peak, and so MFU, is that of a dtype, and a comparison is of equals.
    """
    if device_type == "cpu":
        return _ON_CPU.get(framework, PRECISIONS)
    return _ACCELERATORS_PRECISIONS if device_type else PRECISIONS


def setting(
    default: Any,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    above: float | None = None,
    below: float | None = None,
    choices: tuple[str, ...] = (),
) -> Any:
    """A field with bounds, or with the values that it may have."""
    bounds = {"at_least": at_least, "at_most": at_most, "above": above, "below": below, "choices": choices}
    return field(default=default, metadata=bounds)


def _wrong_member(values: Sequence[Any], setting: Field[Any]) -> str:
    """What would be right for the whole numbers of a setting that has several; empty where all are."""
    if not values or not all(type(each) is int for each in values):
        return "write one whole number or more in parentheses, with a comma behind each: (1,)"
    return next(filter(None, (out_of_bounds(each, setting) for each in values)), "")


def out_of_bounds(value: Any, setting: Field[Any] | None) -> str:
    """What would be right for a value that its setting does not allow; empty for one that it does."""
    if setting is None or value is None or not setting.metadata:
        return ""
    if isinstance(value, (list, tuple)):
        return _wrong_member(value, setting)
    bounds = setting.metadata
    or_none = ", or None" if str(setting.type).endswith("| None") else ""
    if bounds["choices"] and value not in bounds["choices"]:
        return f"choose one of {', '.join(bounds['choices'])}"
    if bounds["at_least"] is not None and not value >= bounds["at_least"]:
        return f"write a number of at least {bounds['at_least']:g}{or_none}"
    if bounds["at_most"] is not None and not value <= bounds["at_most"]:
        return f"write a number of at most {bounds['at_most']}{or_none}"
    if bounds["below"] is not None and not value < bounds["below"]:
        return f"write a number below {bounds['below']:g}{or_none}"
    if bounds["above"] is not None and not value > bounds["above"]:
        return f"write a number above {bounds['above']:g}{or_none}"
    return ""


size = partial(setting, at_least=1, at_most=MOST)
count = partial(setting, at_least=1, at_most=MOST_COUNTED)


@dataclass(frozen=True)
class TrainingSettings:
    """Settings of the training loop; times in seconds, batch sizes in samples."""

    kind: ClassVar[str] = "converge"

    # -- what is trained on each rank --
    train_batch_size: int = size(1)  # a micro-batch of one rank
    # micro-batches a step; the global batch is their product with ranks
    gradient_accumulation_steps: int = size(1)
    eval_batch_size: int = size(1)  # of one rank
    # initial weights, sample order and dropout follow from it
    seed: int = setting(42, at_least=0, at_most=MAX_SEED)
    seed_step: int = count(0, at_least=0)  # from one round of the case to the next the seed grows by it

    # -- when it ends --
    target: float = 1.0  # of the case's metric, larger is better; `target_<metric>` sets it
    max_steps: int | None = count(None)
    max_samples_termination: int | None = count(None)  # counted over all ranks

    # -- when it is evaluated and logged --
    eval_interval_steps: int | None = count(None)
    # counted over all ranks; set this or eval_interval_steps
    eval_interval_samples: int | None = count(None)
    eval_iter_start_samples: int = count(0, at_least=0)  # no evaluation before so many samples
    init_evaluation: bool = True  # evaluate before training: the starting point is what it should be
    # steps between two STEP_END events; for each the device must finish
    log_freq: int = count(20)
    # steps between two checkpoints, from which a run can go on; None: none
    save_steps: int | None = count(None)

    # -- optimizer --
    optimizer: str = setting("adamw", choices=OPTIMIZERS)
    learning_rate: float = setting(1e-3, at_least=0)
    weight_decay_rate: float = setting(0.0, at_least=0)  # not of biases and normalisation weights
    beta_1: float = setting(0.9, at_least=0, below=1)  # at 1 the average never moves; of sgd the momentum
    beta_2: float = setting(0.999, at_least=0, below=1)
    epsilon: float = setting(1e-6, at_least=0)
    max_grad_norm: float | None = setting(1.0, above=0)  # clip the global gradient norm; None: do not clip
    lr_schedule: str = setting("linear", choices=SCHEDULES)
    warmup_steps: int = count(0, at_least=0)
    decay_steps: int | None = count(None)  # the step at which the decay ends; None: max_steps
    # of learning_rate, at and after the end of the decay
    end_learning_rate_factor: float = setting(0.0, at_least=0, at_most=1)

    # -- how it is computed --
    # bf16 and fp16 are mixed precision: weights and optimizer stay fp32; auto: on processors, what is native
    precision: str = setting("bf16", choices=PRECISIONS)
    torch_compile: bool = False
    # of one rank; None: the cores that are ours / ranks of this host
    cpu_threads: int | None = size(None)
    prefetch_batches: int = size(4)  # micro-batches made ready ahead, by a thread of its own
    dist_timeout_seconds: float = setting(
        600.0, above=0, at_most=A_DAY
    )  # a rank that waits longer for its peers fails

    @property
    def decay_end(self) -> int | None:
        """The step at which the learning rate's decay ends; None where it has none."""
        if self.lr_schedule != "linear":
            return None
        return self.max_steps if self.decay_steps is None else self.decay_steps

    @staticmethod
    def conflicts(values: Mapping[str, Any]) -> Iterator[Conflict]:
        """Settings that are right each by itself, and that no training can have together."""
        ends = ("max_steps", "max_samples_termination")
        if all(values[name] is None for name in ends):
            yield ends, "nothing ends the run", "set it, or max_samples_termination"
        decay_ends = ("decay_steps", "max_steps")
        if values["lr_schedule"] == "linear" and all(values[name] is None for name in decay_ends):
            yield (*decay_ends, "lr_schedule"), "the decay has no end", "set it, or max_steps"
        if all(values[name] is not None for name in EVAL_INTERVALS):
            yield EVAL_INTERVALS, "eval_interval_samples is set too", "set one of the two to None"


@dataclass(frozen=True)
class MeasurementSettings:
    """Settings of the measurement loop: warm up until the rate is steady, then measure windows of equal length.

    Times in seconds. A window is as many repetitions of the work as take about `window_seconds`.
    """

    kind: ClassVar[str] = "measure"

    seed: int = setting(42, at_least=0, at_most=MAX_SEED)  # what is computed on follows from it
    windows: int = setting(
        20, at_least=20, at_most=MOST
    )  # that are measured; median and spread are taken over them
    window_seconds: float = setting(0.1, above=0, at_most=A_DAY)
    # warm-up is over when the rates of the last `warmup_windows` windows differ by at most this part
    warmup_agreement: float = setting(0.02, above=0, below=1)
    warmup_windows: int = setting(3, at_least=2, at_most=MOST)
    max_warmup_windows: int = size(100)  # a rate that is not steady by then is said to be so
    cpu_threads: int | None = size(None)  # as in training
    dist_timeout_seconds: float = setting(600.0, above=0, at_most=A_DAY)

    @staticmethod
    def conflicts(values: Mapping[str, Any]) -> Iterator[Conflict]:
        """Settings that no measurement can have together."""
        if values["max_warmup_windows"] < values["warmup_windows"]:
            yield ("max_warmup_windows", "warmup_windows"), "is less than warmup_windows", "raise it"


def seed_of_round(seed: int, seed_step: int, number: int) -> int:
    """The seed of a round, which are counted from 1."""
    return seed + seed_step * (number - 1)


KINDS: Mapping[str, type[TrainingSettings] | type[MeasurementSettings]] = {
    TrainingSettings.kind: TrainingSettings,
    MeasurementSettings.kind: MeasurementSettings,
}
