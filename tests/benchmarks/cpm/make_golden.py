"""Make golden.json: what FlagPerf's CPM code computes on a CPU for the data of `golden_data.py`.

    git clone https://github.com/FlagOpen/FlagPerf
    PYTHONPATH=training:. python3 tests/benchmarks/cpm/make_golden.py FLAGPERF

No line of theirs stands here: it is imported from its checkout.
"""

from __future__ import annotations

import importlib
import sys
from argparse import Namespace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from tests.benchmarks.common.formulas import gradient_figures, set_by_formula
from tests.benchmarks.common.originals import head_of, stand_in_for, write
from tests.benchmarks.cpm import golden_data as data


def main() -> None:
    flagperf = Path(sys.argv[1]).resolve()
    case = flagperf / "training/benchmarks/cpm/pytorch"
    stand_in_for(("apex", "driver"))
    sys.path.insert(0, str(case))
    provenance = {
        "code": "github.com/FlagOpen/FlagPerf training/benchmarks/cpm/pytorch: model, dataloaders, train/metrics.py",
        "commit": head_of(flagperf),
        "made by": "tests/benchmarks/cpm/make_golden.py, fp32 on a CPU, without dropout or activation checkpointing",
        "versions": {
            "python": sys.version.split()[0],
            **{name: version(name) for name in ("torch", "numpy", "jieba", "sentencepiece")},
        },
    }
    dataset = chunked()
    figures = {
        "chunks": [joined(sample) for sample in dataset.samples],
        "words": words(case),
        "model": model_figures(dataset),
        "metric": {
            "small": metric_figures(4, 12, 50, 16),
            "large": metric_figures(8, 200, 30_000, 256),
        },
    }
    write(Path(__file__).with_name("golden.json"), provenance, figures)


def chunked() -> Any:
    """Their data set of the documents, whose tokens it is handed."""
    loader = importlib.import_module("dataloaders.dataloader")
    tokenizer = Namespace(encoder={"<pad>": data.PAD, "<eod>": data.END}, encode=list)
    dataset = loader.GenDataset.__new__(loader.GenDataset)
    given = {
        "args": Namespace(fp16=False), "tokenizer": tokenizer, "ratio": 1, "seq_length": data.INPUTS,
        "pad_id": data.PAD, "eod_token": data.END,
    }  # fmt: skip
    vars(dataset).update(given)
    dataset.samples = dataset.process(data.documents())
    return dataset


def words(case: Path) -> list[str]:
    """What their tokenizer hands to SentencePiece."""
    folder = case / "dataloaders/bpe_3w_new"
    module = importlib.import_module("dataloaders.tokenization_gpt2")
    tokenizer = module.GPT2Tokenizer(folder / "vocab.json", str(folder / "chinese_vocab.model"))
    tokenizer.sp = Namespace(encode=lambda text: text)
    return [tokenizer.encode(text) for text in data.TEXTS]


def model_figures(dataset: Any) -> dict[str, Any]:
    """Logits where there are labels, loss and gradients of the tiny model on all chunks."""
    shape = Namespace(
        **data.SHAPE,
        hidden_dropout=0.0,
        attention_dropout=0.0,
        checkpoint_activations=False,
        checkpoint_num_layers=1,
    )
    _, model = importlib.import_module("model").create_model(shape)
    set_by_formula(model)
    batch, beside = dataset.collate(dataset.samples)
    logits = model(**batch)
    losses = importlib.import_module("model.losses.cross_entropy").cross_entropy(logits, beside["labels"])
    mask = beside["loss_mask"]
    loss = (losses * mask).sum() / mask.sum()
    loss.backward()
    kept = logits[mask.bool()]
    return {
        "label_logits": kept.gather(1, beside["labels"][mask.bool()][:, None])[:, 0].tolist(),
        "largest": joined(kept.argmax(dim=1).tolist()),
        "loss": loss.item(),
        "gradients": gradient_figures(model),
    }


def joined(numbers: list[int]) -> str:
    return " ".join(map(str, numbers))


def metric_figures(samples: int, length: int, vocabulary: int, hidden: int) -> dict[str, Any]:
    """Their metric of the same predictions with the embedding in three types."""
    average = importlib.import_module("train.metrics").average_corpus_level
    predicted, right, embedding = data.metric_data(samples, length, vocabulary, hidden)
    mask = torch.ones(samples, length)
    mask[0, length // 2 :] = 0
    means = {
        name: float(average(predicted, right, embedding.to(getattr(torch, name)), mask).mean)
        for name in ("float16", "float32", "float64")
    }
    return {"shape": [samples, length, vocabulary, hidden], **means}


if __name__ == "__main__":
    main()
