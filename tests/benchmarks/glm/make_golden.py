"""Make golden.json: what the originals' GLM code computes on a CPU for the data of `golden_data.py`.

    git clone https://github.com/FlagOpen/FlagPerf; git clone https://github.com/THUDM/GLM
    PYTHONPATH=training:. python3 tests/benchmarks/glm/make_golden.py FLAGPERF GLM

No line of theirs stands here: both are imported from their checkouts. The model and its collation are FlagPerf's, the
reading of ReCoRD, the pattern, the tokenizer and the layout of a sequence GLM's.
"""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
from argparse import Namespace
from pathlib import Path
from typing import Any

import torch

from tests.benchmarks.common.formulas import gradient_figures, set_by_formula
from tests.benchmarks.common.originals import head_of, stand_in_for, write
from tests.benchmarks.glm import golden_data as data
from tests.benchmarks.glm.plain import END, MASK, START

STAND_INS = (
    "apex",
    "deepspeed",
    "mpu",
    "fp16",
    "tensorboardX",
    "nltk",
    "pandas",
    "boto3",
    "botocore",
    "requests",
)
ARGUMENTS = Namespace(
    sentinel_token=False, no_block_position=False, masked_lm=False, task_mask=False,
    continuous_prompt=False, prefix_prompt=0,
)  # fmt: skip


def main() -> None:
    flagperf, glm = (Path(argument).resolve() for argument in sys.argv[1:])
    stand_in_for((*STAND_INS, "h5sparse", "driver"))
    sys.path[:0] = [str(flagperf / "training/benchmarks/glm/pytorch"), str(glm)]
    os.chdir(glm)
    provenance = {
        "model and collation": "github.com/FlagOpen/FlagPerf training/benchmarks/glm/pytorch",
        "data": "github.com/THUDM/GLM tasks/superglue, tasks/data_utils.py, data_utils",
        "commits": {"FlagPerf": head_of(flagperf), "GLM": head_of(glm)},
        "made by": "tests/benchmarks/glm/make_golden.py, fp32 on a CPU, without dropout or activation checkpointing",
        "versions": {"python": sys.version.split()[0], "torch": torch.__version__},
    }
    target = Path(__file__).with_name("golden.json")
    write(target, provenance, {"model": model_figures(), "record": record_figures()})


def model_figures() -> dict[str, Any]:
    """Scores, loss and gradients of the tiny model on the tiny questions."""
    model_module = importlib.import_module("model")
    shape = Namespace(
        **data.SHAPE,
        hidden_dropout=0.0,
        attention_dropout=0.0,
        max_memory_length=0,
        checkpoint_activations=False,
    )
    model = model_module.create_model(shape)
    set_by_formula(model)
    batch = collated()
    logits, *_ = model(*(batch[name] for name in ("text", "position", "mask", "target", "logit_mask")))
    real = batch["loss_mask"]
    loss = torch.nn.functional.cross_entropy(logits * real - 10000.0 * (1.0 - real), batch["label"])
    loss.backward()
    scores = [row[kept.bool()].tolist() for row, kept in zip(logits, real, strict=True)]
    return {"scores": scores, "loss": loss.item(), "gradients": gradient_figures(model)}


def collated() -> dict[str, Any]:
    """The questions as GLM lays out each candidate and FlagPerf's loader puts them together."""
    lay_out = importlib.import_module("tasks.data_utils").build_input_from_ids
    commands = {"MASK": MASK, "eos": 0, "ENC": 2, "sep": 3, "sop": START}
    tokenizer = Namespace(get_command=lambda name: Namespace(Id=commands[name]))
    samples = []
    for question in data.questions():
        # their function adds an end of sequence to a text; ours brings its last token itself
        rows = [
            lay_out(
                question.source, None, [*candidate, END], data.SHAPE["max_position_embeddings"], tokenizer,
                args=ARGUMENTS, add_cls=False, add_piece=True, add_eos=False, mask_id=MASK,
            )
            for candidate in question.candidates
        ]  # fmt: skip
        ids, _, _, positions, separators, targets, is_target = zip(*rows, strict=True)
        named = {
            "text": ids,
            "position": positions,
            "mask": separators,
            "target": targets,
            "logit_mask": is_target,
        }
        samples.append({name: torch.tensor(values).numpy() for name, values in named.items()})
    batch: dict[str, Any] = importlib.import_module("dataloaders.dataloader").my_collate(samples)
    return batch


def record_figures() -> dict[str, list[dict[str, Any]]]:
    """Every question of the lines, in training and in evaluation: each candidate's sequence, without padding."""
    dataset = importlib.import_module("tasks.superglue.dataset")
    pattern = importlib.import_module("tasks.superglue.pvp").RecordPVP
    with tempfile.TemporaryDirectory() as folder:
        lines, vocabulary = Path(folder, "lines.jsonl"), Path(folder, "vocab.txt")
        lines.write_text("".join(f"{line}\n" for line in data.record_lines()), encoding="utf-8")
        vocabulary.write_text("".join(f"{token}\n" for token in data.VOCABULARY), encoding="utf-8")
        importlib.import_module("data_utils.wordpiece").PRETRAINED_VOCAB_ARCHIVE_MAP["bert-large-uncased"] = (
            str(vocabulary)
        )
        tokenizer = importlib.import_module("data_utils.tokenization").BertWordPieceTokenizer(
            add_block_symbols=True
        )
        encoder = pattern(ARGUMENTS, tokenizer, ["0", "1"], data.LONGEST_RECORD)
        read = dataset.RecordProcessor._create_examples
        return {
            name: [encoded(encoder, example) for example in read(str(lines), name)]
            for name in ("train", "dev")
        }


def encoded(encoder: Any, example: Any) -> dict[str, Any]:
    """Rows of numbers as text, by candidate."""
    sample = encoder.encode(example)
    candidates = {}
    for number, text in enumerate(example.meta["candidates"]):
        source = int(sample["mask"][number])
        length = source + int(sample["logit_mask"][number].sum())
        position, block = sample["position"][number]
        rows = {
            "ids": sample["text"][number],
            "positions": position,
            "blocks": block,
            "targets": sample["target"][number],
        }
        candidates[text] = {
            "source": source,
            **{name: " ".join(map(str, values[:length])) for name, values in rows.items()},
        }
    return {
        "passage": example.meta["passage_idx"],
        "question": example.meta["question_idx"],
        "answers": sorted(example.meta["answers"]),
        "right": example.meta["candidates"][sample["label"]] if example.label == "0" else None,
        "candidates": candidates,
    }


if __name__ == "__main__":
    main()
