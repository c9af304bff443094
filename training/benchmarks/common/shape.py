"""The shape of a model, whatever the framework, and whether the data fit it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Protocol, TypeVar

from utils.errors import FlagPerfError

ConfigT = TypeVar("ConfigT")


class Limits(Protocol):
    """What a model can take."""

    @property
    def vocab_size(self) -> int: ...
    @property
    def max_position_embeddings(self) -> int: ...


@dataclass(frozen=True)
class TransformerConfig:
    """The shape of a model that was trained with Megatron; FlagPerf's names.

    `hidden_dropout` follows the embedding and each part of a layer, `attention_dropout` the attention probabilities.
    """

    vocab_size: int
    hidden_size: int
    num_layers: int
    num_attention_heads: int
    max_position_embeddings: int
    hidden_dropout: float = 0.1
    attention_dropout: float = 0.1
    layernorm_epsilon: float = 1e-5
    initializer_range: float = 0.02


def configured(kind: type[ConfigT], settings: Mapping[str, Any]) -> ConfigT:
    """The shape, a dataclass `kind`, that a case's settings name."""
    names = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: value for name, value in settings.items() if name in names})


def check_fits(config: Limits, *, longest: int, largest_id: int, data_dir: Path) -> None:
    """The data are of this model's vocabulary and length: a device would only say that an index is wrong.

    Raises:
        FlagPerfError: they are not.
    """
    if largest_id >= config.vocab_size or longest > config.max_position_embeddings:
        raise FlagPerfError(
            f"a sample has {longest} tokens and token id {largest_id}; the model takes "
            f"{config.max_position_embeddings} tokens and ids below {config.vocab_size}",
            where=str(data_dir),
            remedy="set vocab_size and max_position_embeddings as the data were prepared",
        )
