"""Runs MLPerf's reference BERT (TensorFlow) on the formulas' model and samples, and writes `mlperf.json`.

    git clone https://github.com/mlcommons/training CHECKOUT
    python3.11 -m venv VENV && VENV/bin/pip install tensorflow-cpu==2.15.1
    VENV/bin/python -m tests.benchmarks.bert.golden.make_mlperf CHECKOUT

Its graph (model, losses, metrics, LAMB with clipping, schedule) is built by its own `model_fn`. What it imports and does
not use for that, its logger and the sharding over TPUs, is stood in for by empty modules. Embeddings are looked up by one-hot products, as the reference does on the TPUs for which its results are
published: otherwise a word's gradients count row by row in the norm that is clipped.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow.compat.v1 as tf

from tests.benchmarks.bert.golden import formulas, record

FOLDER = "retired_benchmarks/bert"
FILES = [
    f"{FOLDER}/{name}.py" for name in ("modeling", "run_pretraining", "optimization", "lamb_optimizer_v1")
]
UNUSED = (
    "mlp_logging",
    "mlperf_logging",
    "mlperf_logging.mllog",
    "mlperf_logging.mllog.constants",
    "tensorflow.compiler.xla.experimental",
    "tensorflow.compiler.xla.experimental.xla_sharding",
    "tensorflow.compiler.xla.experimental.xla_sharding.xla_sharding",
)
RENAMED = {
    "gamma": "weight",
    "beta": "bias",
    "kernel": "weight",
    "output_bias": "bias",
    "output_weights": "weight",
}


def main(checkout: Path) -> None:
    modeling, run_pretraining = import_originals(checkout)
    values = outputs(modeling, run_pretraining) | training(modeling, run_pretraining)
    source = record.provenance(
        checkout, FILES, ["tensorflow-cpu", "numpy"], "python -m tests.benchmarks.bert.golden.make_mlperf"
    )
    repository = {"repository": "https://github.com/mlcommons/training"}
    record.write(Path(__file__).with_name("mlperf.json"), repository | source, values)


def import_originals(checkout: Path) -> tuple[Any, Any]:
    """Their modules `modeling` and `run_pretraining`."""
    sys.path.insert(0, str(checkout / FOLDER))
    for name in UNUSED:
        sys.modules[name] = ModuleType(name)
    for name in UNUSED:
        parent, _, attribute = name.rpartition(".")
        if parent in sys.modules:
            setattr(sys.modules[parent], attribute, sys.modules[name])
    import modeling
    import run_pretraining

    run_pretraining.FLAGS(["make_mlperf"], known_only=True)
    tf.disable_eager_execution()
    tf.logging.set_verbosity(tf.logging.ERROR)
    return modeling, run_pretraining


class Original:
    """Their graph in `mode`, with the formulas' weights."""

    def __init__(
        self, modeling: Any, run_pretraining: Any, mode: str, samples: int = formulas.SAMPLES
    ) -> None:
        tf.reset_default_graph()
        first = features(0, samples)
        self.keys = {key: tf.placeholder(value.dtype, value.shape) for key, value in first.items()}
        model_fn = run_pretraining.model_fn_builder(
            modeling.BertConfig(**formulas.MODEL, hidden_act="gelu"),
            None,
            formulas.RATE,
            formulas.DECAY_STEPS,
            0,
            use_tpu=False,
            use_one_hot_embeddings=True,
            optimizer="lamb",
            poly_power=1.0,
            start_warmup_step=0,
        )
        tf.train.get_or_create_global_step()
        self.spec = model_fn(self.keys, None, mode, None)
        self.session = tf.Session()
        self.session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        for variable in tf.trainable_variables():
            variable.load(initial(variable), self.session)

    def run(self, what: Any, first: int, samples: int = formulas.SAMPLES) -> Any:
        """Evaluate `what` of the samples from number `first` on."""
        feed = {self.keys[key]: value for key, value in features(first, samples).items()}
        return self.session.run(what, feed)


def outputs(modeling: Any, run_pretraining: Any) -> dict[str, Any]:
    """Losses, log probabilities and gradients of the first samples; accuracies and losses of the evaluation set."""
    original = Original(modeling, run_pretraining, tf.estimator.ModeKeys.TRAIN)
    variables = tf.trainable_variables()
    gradients = original.run(tf.gradients(original.spec.loss, variables), 0)
    values = {
        "loss": original.run(original.spec.loss, 0),
        "gradient_norms": {
            transformers_name(variable.name): np.linalg.norm(gradient)
            for variable, gradient in zip(variables, gradients, strict=True)
        },
    }
    evaluation = Original(modeling, run_pretraining, tf.estimator.ModeKeys.EVAL, formulas.EVALUATED)
    log_probabilities = [
        tf.get_default_graph().get_tensor_by_name(f"cls/{part}/LogSoftmax:0")
        for part in ("predictions", "seq_relationship")
    ]
    tokens, pairs = evaluation.run(log_probabilities, 0, formulas.EVALUATED)
    is_label = formulas.rows(0, formulas.EVALUATED)["masked_lm_positions"].reshape(-1) > 0
    evaluation.run([update for _, update in evaluation.spec.eval_metric_ops.values()], 0, formulas.EVALUATED)
    metrics = evaluation.session.run({n: value for n, (value, _) in evaluation.spec.eval_metric_ops.items()})
    return {
        **values,
        "token_log_probabilities": tokens[is_label][:20, formulas.COLUMNS],
        "next_sentence_log_probabilities": pairs[:20],
        **{f"evaluation_{name}": float(value) for name, value in metrics.items()},
    }


def training(modeling: Any, run_pretraining: Any) -> dict[str, Any]:
    """Loss and gradient norm at each step of LAMB with clipping, and what the weights are after the last."""
    original = Original(modeling, run_pretraining, tf.estimator.ModeKeys.TRAIN)
    variables = tf.trainable_variables()
    norm = tf.linalg.global_norm(tf.gradients(original.spec.loss, variables))
    losses, norms = [], []
    for step in range(formulas.STEPS):
        loss, gradient_norm = original.run([original.spec.loss, norm], step * formulas.SAMPLES)
        original.run(original.spec.train_op, step * formulas.SAMPLES)
        losses.append(float(loss))
        norms.append(float(gradient_norm))
    trained = original.session.run(variables)
    return {
        "training_losses": losses,
        "training_gradient_norms": norms,
        "trained_weights": {
            transformers_name(variable.name): summary(array)
            for variable, array in zip(variables, trained, strict=True)
        },
    }


def summary(array: Any) -> list[float]:
    """Of a tensor in any order of its axes: norm, sum, and sum of cubes."""
    wide = np.asarray(array, dtype=np.float64)
    return [float(np.linalg.norm(wide)), float(wide.sum()), float((wide**3).sum())]


def transformers_name(name: str) -> str:
    """Transformers' name of their variable."""
    *parts, last = name.removesuffix(":0").split("/")
    parts = [part.replace("layer_", "layer.") for part in parts]
    if last.endswith("_embeddings"):
        return ".".join([*parts, last, "weight"])
    return ".".join([*parts, RENAMED.get(last, last)])


def initial(variable: Any) -> Any:
    """The formula's weight of their variable; their kernels are (inputs, outputs)."""
    shape, name = tuple(variable.shape.as_list()), transformers_name(variable.name)
    if "kernel" in variable.name:
        return formulas.weight(name, shape[::-1]).T
    return formulas.weight(name, shape)


def features(first: int, samples: int) -> dict[str, Any]:
    """The samples as their input pipeline gives them."""
    rows = formulas.rows(first, samples)
    weights = (rows["masked_lm_positions"] > 0).astype(np.float32)
    return {key: value.astype(np.int32) for key, value in rows.items()} | {"masked_lm_weights": weights}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
