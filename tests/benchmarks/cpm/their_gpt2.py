"""A transformers GPT2LMHeadModel's weights as those of the case's model."""

from __future__ import annotations

import re
from collections.abc import Mapping

from torch import Tensor

_NAMES = {
    r"transformer\.h\.": "transformer.layers.",
    r"\.ln_1\.": ".input_layernorm.",
    r"\.ln_2\.": ".post_attention_layernorm.",
    r"\.ln_f\.": ".final_layernorm.",
    r"\.attn\.c_attn\.": ".attention.query_key_value.",
    r"\.attn\.c_proj\.": ".attention.dense.",
    r"\.mlp\.c_fc\.": ".mlp.dense_h_to_4h.",
    r"\.mlp\.c_proj\.": ".mlp.dense_4h_to_h.",
    r"transformer\.wte\.": "word_embeddings.",
    r"transformer\.wpe\.": "position_embeddings.",
}
_MATRICES = ("c_attn.weight", "c_proj.weight", "c_fc.weight")  # of `Conv1D`, whose weight is (in, out)


def from_transformers(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """By our names, matrices turned as ours, and without the tied output matrix."""
    return {
        _our_name(name): tensor.T if name.endswith(_MATRICES) else tensor
        for name, tensor in weights.items()
        if name != "lm_head.weight"
    }


def _our_name(name: str) -> str:
    for theirs, ours in _NAMES.items():
        name = re.sub(theirs, ours, name)
    return name
