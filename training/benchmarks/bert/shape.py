"""The shape of a BERT model, whatever the framework."""

from __future__ import annotations

from dataclasses import dataclass

from utils.errors import FlagPerfError

GELU_FORMS = ("tanh", "erf")


@dataclass(frozen=True)
class BertConfig:
    """The shape of a model; names and values of `bert_config.json`.

    `pre_layer_norm` puts normalisation before each part of a layer and at the end (Xiong et al. 2020,
    arXiv:2002.04745) where BERT has it after each part: a small model then trains at high rates. `gelu` is how
    the Gaussian error linear unit (Hendrycks and Gimpel 2016, arXiv:1606.08415) is computed: `tanh`, the paper's
    approximation, as in BERT's own code, or `erf`, exactly.
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
    gelu: str = "tanh"

    def __post_init__(self) -> None:
        if self.gelu not in GELU_FORMS:
            raise FlagPerfError(
                f"gelu = {self.gelu!r} is no form of GELU", remedy=f"set one of {', '.join(GELU_FORMS)}"
            )
