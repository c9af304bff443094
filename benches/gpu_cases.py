"""What benches/gpu.py runs: the cases, what it changes of their configurations, and how much data each gets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from made_data import Amount

# No checkpoint and no target: a fixed number of steps from random weights, and one evaluation at their end. The
# rate is low so that no loss leaves the numbers; what a step costs does not depend on it.
WORK_ONLY: Mapping[str, Any] = {
    "init_checkpoint": "",
    "init_evaluation": False,
    "eval_interval_steps": None,
    "eval_interval_samples": None,
    "max_samples_termination": None,
    "learning_rate": 1e-6,
    "lr_schedule": "constant",
    "warmup_steps": 0,
    "max_grad_norm": 1.0,
}
_SMALL_TRANSFORMER = {"vocab_size": 512, "hidden_size": 64, "num_layers": 2, "num_attention_heads": 2}


@dataclass(frozen=True)
class TrainingCase:
    """A case that trains.

    Attributes:
        name: its folder below `benchmarks`, of the framework `pytorch`.
        title: what it is in full size.
        metric: whose target is set so that nothing reaches it.
        micro_batches: that are trained on in full size: forward and backward passes.
        data: in full size.
        small: settings of the model in small size, and its data.
        dropouts: names of its dropout rates.
        compared: samples of the step whose numbers are compared with the CPU's, in full size.
    """

    name: str
    title: str
    metric: str
    micro_batches: int
    data: Amount
    small: Mapping[str, Any]
    small_data: Amount
    dropouts: tuple[str, ...] = ("hidden_dropout", "attention_dropout")
    compared: int = 4

    def settings(self, small: bool, accumulation: int) -> dict[str, Any]:
        """What is changed of the vendor's configuration, which accumulates so many micro-batches a step."""
        steps = 4 if small else max(1, round(self.micro_batches / accumulation))
        shown = {"max_steps": steps, "log_freq": 1 if small else max(1, steps // 20)}
        sized = {**self.small, "train_batch_size": 4, "eval_batch_size": 4} if small else {}
        return {**WORK_ONLY, f"target_{self.metric}": 1.0, **shown, **sized}

    def amount(self, small: bool) -> Amount:
        """The data."""
        return self.small_data if small else self.data


BERT = TrainingCase(
    "bert",
    "BERT-large, sequences of 512",
    "mlm_accuracy",
    micro_batches=320,
    data=Amount(training=2048, evaluation=64, tokens=512, vocabulary=30522),
    small={
        "vocab_size": 512, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2,
        "intermediate_size": 256, "max_position_embeddings": 64,
    },
    small_data=Amount(training=64, evaluation=8, tokens=64, vocabulary=512),
    dropouts=("hidden_dropout_prob", "attention_probs_dropout_prob"),
)  # fmt: skip
GLM = TrainingCase(
    "glm",
    "GLM-large, questions of ReCoRD's lengths",
    "exact_match",
    micro_batches=200,
    data=Amount(training=2048, evaluation=64, tokens=512, vocabulary=30592),
    small={**_SMALL_TRANSFORMER, "max_position_embeddings": 64, "mimetic_initialization": False},
    small_data=Amount(training=64, evaluation=8, tokens=56, vocabulary=512),
)
CPM = TrainingCase(
    "cpm",
    "CPM-1-medium, chunks of 201",
    "embedding_average",
    micro_batches=200,
    data=Amount(training=4096, evaluation=64, tokens=200, vocabulary=30000),
    small={**_SMALL_TRANSFORMER, "max_position_embeddings": 32},
    small_data=Amount(training=64, evaluation=8, tokens=32, vocabulary=512),
)
TRAINING = {case.name: case for case in (BERT, GLM, CPM)}

GEMM = "gemm"
# The rate of a chip is steady after some windows or, where its power is held down, never.
GEMM_SETTINGS: Mapping[str, Any] = {"max_warmup_windows": 25}
GEMM_SMALL: Mapping[str, Any] = {
    "sizes": dict.fromkeys(("fp64", "fp32", "tf32", "bf16", "fp16", "int8", "fp8"), (128, 128, 128)),
    "window_seconds": 0.005,
    "max_warmup_windows": 3,
}
