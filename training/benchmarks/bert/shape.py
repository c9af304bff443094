"""The shape of a BERT model, whatever the framework."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BertConfig:
    """The shape of a model; names and values of `bert_config.json`.

    `pre_layer_norm` puts normalisation before each part of a layer and at the end (Xiong et al. 2020,
    arXiv:2002.04745) where BERT has it after each part: a small model then trains at high rates.
    """

    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    max_position_embeddings: int
    type_vocab_size: int = 2
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    layer_norm_eps: float = 1e-12
    initializer_range: float = 0.02
    pre_layer_norm: bool = False
