"""Makes the TensorFlow checkpoint in `data/`, as TensorFlow 1 programs write theirs (tensor bundles).

    python -m venv .venv-tensorflow && .venv-tensorflow/bin/pip install tensorflow-cpu==2.21.0
    .venv-tensorflow/bin/python tests/benchmarks/bert/make_tf_checkpoint.py

Names and forms are those of google-research/bert's `BertForPreTraining` graph with its Adam optimizer, the shapes
those of the tests' tiny model (2 layers, 16 hidden).
"""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent / "data"
STEP = 28
VOCABULARY, HIDDEN, WIDE, POSITIONS, LAYERS = 60, 16, 32, 16, 2


def shapes() -> dict[str, tuple[int, ...]]:
    """Every weight's name and shape; a dense layer's kernel is (inputs, outputs)."""
    found: dict[str, tuple[int, ...]] = {}

    def dense(name: str, inputs: int, outputs: int) -> None:
        found.update({f"{name}/kernel": (inputs, outputs), f"{name}/bias": (outputs,)})

    def norm(name: str) -> None:
        found.update({f"{name}/LayerNorm/gamma": (HIDDEN,), f"{name}/LayerNorm/beta": (HIDDEN,)})

    tables = {"word": VOCABULARY, "position": POSITIONS, "token_type": 2}
    found.update({f"bert/embeddings/{name}_embeddings": (rows, HIDDEN) for name, rows in tables.items()})
    norm("bert/embeddings")
    for number in range(LAYERS):
        layer = f"bert/encoder/layer_{number}"
        for part in ("query", "key", "value"):
            dense(f"{layer}/attention/self/{part}", HIDDEN, HIDDEN)
        dense(f"{layer}/attention/output/dense", HIDDEN, HIDDEN)
        norm(f"{layer}/attention/output")
        dense(f"{layer}/intermediate/dense", HIDDEN, WIDE)
        dense(f"{layer}/output/dense", WIDE, HIDDEN)
        norm(f"{layer}/output")
    dense("bert/pooler/dense", HIDDEN, HIDDEN)
    dense("cls/predictions/transform/dense", HIDDEN, HIDDEN)
    norm("cls/predictions/transform")
    found["cls/predictions/output_bias"] = (VOCABULARY,)
    found["cls/seq_relationship/output_weights"] = (2, HIDDEN)
    found["cls/seq_relationship/output_bias"] = (2,)
    return found


def weights() -> dict[str, Any]:
    """Every weight's value: random, and so different from all others that none can be taken for another."""
    return {
        name: np.random.default_rng(zlib.crc32(name.encode()))
        .normal(scale=0.3, size=shape)
        .astype(np.float32)
        for name, shape in shapes().items()
    }


def _write_bert(tf: Any) -> None:
    """Weights, and what a training run leaves beside them: the step, and Adam's moments of two weights."""
    step = tf.compat.v1.get_variable("global_step", initializer=np.int64(STEP))
    for number, (name, value) in enumerate(weights().items()):
        tf.compat.v1.get_variable(name, initializer=value)
        if number < 2:
            for slot in ("adam_m", "adam_v"):
                tf.compat.v1.get_variable(f"{name}/{slot}", initializer=np.ones_like(value))
    _save(tf, "model.ckpt", global_step=step)


def _save(tf: Any, name: str, global_step: Any) -> None:
    saver = tf.compat.v1.train.Saver()
    with tf.compat.v1.Session() as session:
        session.run(tf.compat.v1.global_variables_initializer())
        path = str(FOLDER / name)
        saver.save(session, path, global_step=global_step, write_meta_graph=False, write_state=False)


def main() -> None:
    """Write it."""
    import tensorflow as tf

    FOLDER.mkdir(exist_ok=True)
    with tf.Graph().as_default():
        _write_bert(tf)


if __name__ == "__main__":
    main()
