"""Runs FlagPerf's own BERT (PyTorch) on the model and samples of `golden_data.py`, and writes `golden_flagperf.json`.

    git clone https://github.com/FlagOpen/FlagPerf CHECKOUT
    .venv/bin/python -m tests.benchmarks.bert.make_golden_flagperf CHECKOUT

No line of theirs stands here: the model is imported from its checkout. Stood in for is only their `utils`, which needs
the whole benchmark and of which the model asks the number of its rank, for messages.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from tests.benchmarks.bert import golden_data as data
from tests.benchmarks.common.originals import head_of, stand_in_for, write

FOLDER = "training/benchmarks/bert/pytorch"
# Their parts stand in two segments; the rest of a name is transformers'.
SEGMENTS = ("bert_model_segment.", "heads_only_segment.")


def main(checkout: Path) -> None:
    modeling, activations = import_originals(checkout)
    values: dict[str, Any] = {}
    # `fast_gelu` is their tanh form; "gelu" is the exact one
    for form, activation in (("tanh", activations.fast_gelu), ("erf", "gelu")):
        values |= {
            f"{form}_{name}": value for name, value in outputs(modeling, hidden_act=activation).items()
        }
    # as the A100 configurations set it: tanh in the layers, the exact form in the head
    shipped = outputs(modeling, hidden_act="gelu", fused_gelu_bias=True)
    values["shipped_loss"] = shipped["loss"]
    provenance = {
        "code": f"github.com/FlagOpen/FlagPerf {FOLDER}: model/models/modeling.py, model/layers",
        "commit": head_of(checkout),
        "made by": "tests/benchmarks/bert/make_golden_flagperf.py, fp32 on a CPU, without dropout",
        "versions": {
            "python": sys.version.split()[0],
            **{name: version(name) for name in ("torch", "numpy")},
        },
    }
    write(Path(__file__).with_name("golden_flagperf.json"), provenance, data.rounded(values))


def import_originals(checkout: Path) -> tuple[Any, Any]:
    """Their modules `modeling` and `activations`."""
    sys.path.insert(0, str(checkout / FOLDER))
    stand_in_for(("utils",))
    from model.layers import activations
    from model.models import modeling

    return modeling, activations


def outputs(modeling: Any, *, hidden_act: Any, fused_gelu_bias: bool = False) -> dict[str, Any]:
    """What their model says of the first samples, its gradients, and of the evaluation set."""
    model = original_model(modeling, hidden_act, fused_gelu_bias)
    tensors = as_tensors(data.rows(0))
    loss, _, _ = model(*tensors)
    loss.backward()
    gradients = {
        name.removeprefix(SEGMENTS[0]).removeprefix(SEGMENTS[1]): parameter.grad.norm().item()
        for name, parameter in model.named_parameters()
    }
    with torch.no_grad():
        scores, next_sentence = model(*tensors[:3])
        evaluated = [model(*as_tensors(data.rows(first))) for first in range(0, data.EVALUATED, data.SAMPLES)]
        # as their Evaluator adds them up
        labels = float(sum(count for _, _, count in evaluated))
        accuracy = float(sum(accuracy * count for _, accuracy, count in evaluated)) / labels
    return {
        "token_logits": scores[tensors[3] > 0][:, data.COLUMNS].tolist(),
        "next_sentence_logits": next_sentence.tolist(),
        "loss": loss.item(),
        "gradient_norms": gradients,
        "evaluation_accuracy": accuracy,
    }


def original_model(modeling: Any, hidden_act: Any, fused_gelu_bias: bool) -> Any:
    """Their model with the weights of `golden_data.py`."""
    config = modeling.BertConfig.from_dict(
        {**data.MODEL, "hidden_act": hidden_act, "initializer_range": 0.02}
    )
    config.fused_gelu_bias = fused_gelu_bias
    config.fused_dropout_add = config.dense_seq_output = config.fuse_dropout = False
    model = modeling.BertForPreTraining(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            plain = name.removeprefix(SEGMENTS[0]).removeprefix(SEGMENTS[1])
            parameter.copy_(torch.from_numpy(data.weight(plain, tuple(parameter.shape))))
    return model.eval()


def as_tensors(rows: dict[str, Any]) -> list[torch.Tensor]:
    """Ids, segments, mask, labels at their places and 0 elsewhere, next sentence labels: as their data loader."""
    labels = torch.zeros(rows["input_ids"].shape, dtype=torch.long)
    for sample, (places, ids) in enumerate(
        zip(rows["masked_lm_positions"], rows["masked_lm_ids"], strict=True)
    ):
        labels[sample, places[places > 0]] = torch.from_numpy(ids[places > 0]).long()
    ids, segments, mask, pairs = (
        torch.from_numpy(rows[key]).long()
        for key in ("input_ids", "segment_ids", "input_mask", "next_sentence_labels")
    )
    return [ids, segments, mask, labels, pairs]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
