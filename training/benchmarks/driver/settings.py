"""The driver's own settings: every case has them, and the configuration's layers may set them.

Their names are FlagPerf's. A case's `config/_base.py` sets what is the task's, a vendor's file what makes
its chip fast.
"""

from __future__ import annotations

from dataclasses import dataclass

PRECISIONS = ("fp32", "bf16", "fp16")
OPTIMIZERS = ("adamw", "lamb")
SCHEDULES = ("linear", "constant")


@dataclass(frozen=True)
class DriverSettings:
    """Settings of the training loop; times in seconds, batch sizes in samples."""

    # -- what is trained on each rank --
    train_batch_size: int = 1  # a micro-batch of one rank
    gradient_accumulation_steps: int = 1  # micro-batches a step; the global batch is their product with ranks
    eval_batch_size: int = 1  # of one rank
    seed: int = 42  # initial weights, sample order and dropout follow from it

    # -- when it ends --
    target: float = 1.0  # of the case's metric, larger is better; `target_<metric>` sets it
    max_steps: int | None = None
    max_samples_termination: int | None = None  # counted over all ranks

    # -- when it is evaluated and logged --
    eval_interval_steps: int | None = None
    eval_interval_samples: int | None = None  # counted over all ranks; set this or eval_interval_steps
    eval_iter_start_samples: int = 0  # no evaluation before so many samples
    init_evaluation: bool = True  # evaluate before training: the starting point is what it should be
    log_freq: int = 20  # steps between two STEP_END events; for each the device must finish
    save_steps: int | None = None  # steps between two checkpoints, from which a run can go on; None: none

    # -- optimizer --
    optimizer: str = "adamw"
    learning_rate: float = 1e-3
    weight_decay_rate: float = 0.0  # not of biases and normalisation weights
    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-6
    max_grad_norm: float | None = 1.0  # clip the global gradient norm; None: do not clip
    lr_schedule: str = "linear"
    warmup_steps: int = 0
    decay_steps: int | None = None  # the step at which the decay ends; None: max_steps
    end_learning_rate_factor: float = 0.0  # of learning_rate, at and after the end of the decay

    # -- how it is computed --
    precision: str = "bf16"  # bf16 and fp16 are mixed precision: weights and optimizer stay fp32
    torch_compile: bool = False
    cpu_threads: int | None = None  # of one rank; None: the cores that are ours / ranks of this host
    prefetch_batches: int = 4  # micro-batches made ready ahead, by a thread of its own
    dist_timeout_seconds: float = 600.0  # a rank that waits longer for its peers fails
