"""Runs MLPerf's reference BERT (TensorFlow) on the model and samples of `golden_data.py`, and writes
`golden_mlperf.json`.

    git clone https://github.com/mlcommons/training CHECKOUT
    python3.11 -m venv VENV && VENV/bin/pip install tensorflow-cpu==2.15.1
    VENV/bin/python -m tests.benchmarks.bert.make_golden_mlperf CHECKOUT

No line of theirs stands here: the graph (model, losses, metrics, LAMB with clipping, schedule) is built by their own
`model_fn`, imported from its checkout. What they import and do not use for that, a logger and the sharding over TPUs,
is stood in for. Embeddings are looked up by one-hot products, as the reference does on TPUs: otherwise a word's
gradients count row by row in the norm that is clipped, and not as their sum.
"""

from __future__ import annotations

import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow.compat.v1 as tf

from tests.benchmarks.bert import golden_data as data
from tests.benchmarks.common.originals import head_of, stand_in_for, write

FOLDER = "retired_benchmarks/bert"
FILES = ("modeling.py", "run_pretraining.py", "optimization.py", "lamb_optimizer_v1.py")
UNUSED = ("mlp_logging", "mlperf_logging", "tensorflow.compiler.xla.experimental")
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
    provenance = {
        "code": f"github.com/mlcommons/training {FOLDER}: {', '.join(FILES)}",
        "commit": head_of(checkout),
        "made by": "tests/benchmarks/bert/make_golden_mlperf.py, fp32 on a CPU, without dropout, one-hot embeddings",
        "versions": {
            "python": sys.version.split()[0],
            **{name: version(name) for name in ("tensorflow-cpu", "numpy")},
        },
    }
    write(Path(__file__).with_name("golden_mlperf.json"), provenance, data.rounded(values))


def import_originals(checkout: Path) -> tuple[Any, Any]:
    """Their modules `modeling` and `run_pretraining`."""
    sys.path.insert(0, str(checkout / FOLDER))
    stand_in_for(UNUSED)
    import modeling
    import run_pretraining

    run_pretraining.FLAGS(["make_mlperf"], known_only=True)
    tf.disable_eager_execution()
    tf.logging.set_verbosity(tf.logging.ERROR)
    return modeling, run_pretraining


class Original:
    """Their graph in `mode`, with the weights of `golden_data.py`."""

    def __init__(self, modeling: Any, run_pretraining: Any, mode: str, samples: int = data.SAMPLES) -> None:
        tf.reset_default_graph()
        first = features(0, samples)
        self.keys = {key: tf.placeholder(value.dtype, value.shape) for key, value in first.items()}
        model_fn = run_pretraining.model_fn_builder(
            modeling.BertConfig(**data.MODEL, hidden_act="gelu"),
            None,
            data.RATE,
            data.DECAY_STEPS,
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

    def run(self, what: Any, first: int, samples: int = data.SAMPLES) -> Any:
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
    evaluation = Original(modeling, run_pretraining, tf.estimator.ModeKeys.EVAL, data.EVALUATED)
    log_probabilities = [
        tf.get_default_graph().get_tensor_by_name(f"cls/{part}/LogSoftmax:0")
        for part in ("predictions", "seq_relationship")
    ]
    tokens, pairs = evaluation.run(log_probabilities, 0, data.EVALUATED)
    is_label = data.rows(0, data.EVALUATED)["masked_lm_positions"].reshape(-1) > 0
    evaluation.run([update for _, update in evaluation.spec.eval_metric_ops.values()], 0, data.EVALUATED)
    metrics = evaluation.session.run({n: value for n, (value, _) in evaluation.spec.eval_metric_ops.items()})
    return {
        **values,
        "token_log_probabilities": tokens[is_label][:20, data.COLUMNS],
        "next_sentence_log_probabilities": pairs[:20],
        **{f"evaluation_{name}": float(value) for name, value in metrics.items()},
    }


def training(modeling: Any, run_pretraining: Any) -> dict[str, Any]:
    """Loss and gradient norm at each step of LAMB with clipping, and what the weights are after the last."""
    original = Original(modeling, run_pretraining, tf.estimator.ModeKeys.TRAIN)
    variables = tf.trainable_variables()
    norm = tf.linalg.global_norm(tf.gradients(original.spec.loss, variables))
    losses, norms = [], []
    for step in range(data.STEPS):
        loss, gradient_norm = original.run([original.spec.loss, norm], step * data.SAMPLES)
        original.run(original.spec.train_op, step * data.SAMPLES)
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
        return data.weight(name, shape[::-1]).T
    return data.weight(name, shape)


def features(first: int, samples: int) -> dict[str, Any]:
    """The samples as their input pipeline gives them."""
    rows = data.rows(first, samples)
    weights = (rows["masked_lm_positions"] > 0).astype(np.float32)
    return {key: value.astype(np.int32) for key, value in rows.items()} | {"masked_lm_weights": weights}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
