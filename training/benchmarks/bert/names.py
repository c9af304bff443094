"""What the parameters of this BERT are called in checkpoints: by transformers, NVIDIA and TensorFlow.

Transformers' names (BertForPreTraining) are the common ground. Both frameworks' models name their parts alike, so
that one table serves both.
"""

from __future__ import annotations

import re

# Beginning of our name -> beginning of theirs; the first that fits is taken.
_NAMES = {
    "embeddings.word.": "bert.embeddings.word_embeddings.",
    "embeddings.position.": "bert.embeddings.position_embeddings.",
    "embeddings.segment.": "bert.embeddings.token_type_embeddings.",
    "embeddings.norm.": "bert.embeddings.LayerNorm.",
    "pooler.": "bert.pooler.dense.",
    "next_sentence.": "cls.seq_relationship.",
    "masked_token.transform.": "cls.predictions.transform.dense.",
    "masked_token.norm.": "cls.predictions.transform.LayerNorm.",
    "masked_token.bias": "cls.predictions.bias",
}
_LAYER_NAMES = {
    "attention.query.": "attention.self.query.",
    "attention.key.": "attention.self.key.",
    "attention.value.": "attention.self.value.",
    "attention.output.": "attention.output.dense.",
    "attention_norm.": "attention.output.LayerNorm.",
    "feed_forward.wide.": "intermediate.dense.",
    "feed_forward.narrow.": "output.dense.",
    "feed_forward_norm.": "output.LayerNorm.",
}
# Last part of a TensorFlow name -> of theirs. A kernel is (inputs, outputs), their weight (outputs, inputs).
KERNEL = "kernel"
_TENSORFLOW_ENDS = {
    KERNEL: "weight",
    "gamma": "weight",
    "beta": "bias",
    "output_weights": "weight",
    "output_bias": "bias",
    "word_embeddings": "word_embeddings.weight",
    "position_embeddings": "position_embeddings.weight",
    "token_type_embeddings": "token_type_embeddings.weight",
}
# What a training run leaves in a TensorFlow checkpoint beside the weights: an optimizer's moments, counters.
_TRAINING_STATE = re.compile(
    r"adam_[mv]|lamb_[mv]|AdamWeightDecayOptimizer(_\d+)?|global_step|loss_scale|\w+_steps"
)


def transformers_name(name: str) -> str:
    """What the parameter `name` of this model is called in transformers.

    Raises:
        KeyError: transformers' BERT has none such (the final norm of a pre-LN model).
    """
    if name.startswith("layers."):
        _, number, rest = name.split(".", 2)
        return f"bert.encoder.layer.{number}." + _renamed(rest, _LAYER_NAMES)
    return _renamed(name, _NAMES)


def from_tensorflow(name: str) -> str | None:
    """Transformers' name of the tensor `name` of google-research/bert; None: it is no weight of the model."""
    *parts, last = name.split("/")
    if _TRAINING_STATE.fullmatch(last):
        return None
    parts = [re.sub(r"layer_(\d+)", r"layer.\1", part) for part in parts]
    return ".".join([*parts, _TENSORFLOW_ENDS.get(last, last)])


def from_pytorch(name: str) -> str:
    """Transformers' present name of a tensor in a PyTorch file.

    Wrapped modules leave `module.`; NVIDIA's scripts name a linear map with its activation `dense_act`; the first
    converted checkpoints, bert-large-uncased among them, have TensorFlow's names of normalisation weights.
    """
    name = name.removeprefix("module.").replace(".dense_act.", ".dense.")
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")


def _renamed(name: str, names: dict[str, str]) -> str:
    for ours, theirs in names.items():
        if name.startswith(ours):
            return theirs + name[len(ours) :]
    raise KeyError(name)
