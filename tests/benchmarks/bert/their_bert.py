"""transformers' BERT at the tests' shape."""

from __future__ import annotations

import torch
from transformers import BertConfig, BertForPreTraining

from tests.benchmarks.bert.shard_files import TINY_MODEL

GELU = "gelu_pytorch_tanh"  # transformers' name of BERT's own form


def their_model() -> BertForPreTraining:
    """With weights that let no part of the model go unseen: biases and normalisation would start at 0 and 1."""
    torch.manual_seed(3)
    model = BertForPreTraining(BertConfig(**TINY_MODEL, hidden_act=GELU, initializer_range=0.3))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.1 * torch.randn_like(parameter))
    return model
