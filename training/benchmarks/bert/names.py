"""What the parameters of this BERT are called in checkpoints: by transformers' names (BertForPreTraining).

Both frameworks' models name their parts alike, so that one table serves both.
"""

from __future__ import annotations

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


def transformers_name(name: str) -> str:
    """What the parameter `name` of this model is called in transformers.

    Raises:
        KeyError: transformers' BERT has none such (the final norm of a pre-LN model).
    """
    if name.startswith("layers."):
        _, number, rest = name.split(".", 2)
        return f"bert.encoder.layer.{number}." + _renamed(rest, _LAYER_NAMES)
    return _renamed(name, _NAMES)


def _renamed(name: str, names: dict[str, str]) -> str:
    for ours, theirs in names.items():
        if name.startswith(ours):
            return theirs + name[len(ours) :]
    raise KeyError(name)
