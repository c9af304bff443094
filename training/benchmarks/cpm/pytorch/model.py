"""CPM-1: the GPT-2 form (Radford et al. 2019) for Chinese (Zhang et al. 2020, arXiv:2012.00413), to be read.

The same code is CPM-1-medium and the small demo. Hidden states are (tokens, hidden) without padding, see
`layout.py`; the output matrix is the word embedding, and its logits are never held for a whole batch, see
`loss.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from benchmarks.common.pytorch.transformer import Layer, initialise
from benchmarks.common.shape import TransformerConfig

from .layout import Layout
from .loss import TiedCrossEntropy, predict


@dataclass(frozen=True)
class CpmInputs:
    """A batch of B samples with T inputs, and as many labels.

    Attributes:
        input_ids, position_ids: (T,) int32.
        layout: which tokens belong together.
        labels: (T,) int64, the token that follows each input.
    """

    input_ids: Tensor
    position_ids: Tensor
    layout: Layout
    labels: Tensor


class CpmModel(nn.Module):
    """A causal language model."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(config.vocab_size, config.hidden_size)
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, config.hidden_size)
        self.dropout = nn.Dropout(config.hidden_dropout)
        self.transformer = nn.ModuleDict(
            {
                "layers": nn.ModuleList(Layer(config) for _ in range(config.num_layers)),
                "final_layernorm": nn.LayerNorm(config.hidden_size, config.layernorm_epsilon),
            }
        )
        initialise(self, config)

    def forward(self, inputs: CpmInputs) -> Tensor:
        """() float32: cross entropy summed over the labels, in nats."""
        loss: Tensor = TiedCrossEntropy.apply(  # type: ignore[no-untyped-call]
            self.hidden(inputs), self.word_embeddings.weight, inputs.labels
        )
        return loss

    def predict(self, inputs: CpmInputs) -> tuple[Tensor, Tensor]:
        """The likeliest next tokens (T,) int64, and `forward`'s sum."""
        return predict(self.hidden(inputs), self.word_embeddings.weight, inputs.labels)

    def hidden(self, inputs: CpmInputs) -> Tensor:
        """The last hidden states (T, hidden); times the word embedding they are the logits."""
        positions = self.position_embeddings(inputs.position_ids)
        hidden = self.dropout(self.word_embeddings(inputs.input_ids) + positions)
        for layer in self.transformer["layers"].children():
            hidden = layer(hidden, inputs.layout)
        normalised: Tensor = self.transformer["final_layernorm"](hidden)
        return normalised
