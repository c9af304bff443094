"""From text to the data set: layout, determinism, held-out evaluation, the manifest, the demo."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from benchmarks.bert.prepare.command import DEMO_TEXT, main
from benchmarks.bert.prepare.steps import plan_shards
from tests.benchmarks.bert.prepare_data import (
    HAND_MADE,
    REFERENCE,
    eval_file,
    load,
    prepare,
    training_files,
    whole_words,
    write_text,
)
from tests.benchmarks.common.preparation.prepared_cases import contents
from utils import manifest

DOCUMENTS = range(60)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_text(tmp_path_factory.mktemp("text") / "text.txt", DOCUMENTS)


@pytest.fixture(scope="module")
def vocab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("vocab") / "vocab.txt"
    path.write_text("\n".join(whole_words(DOCUMENTS)) + "\n")
    return path


@pytest.fixture(scope="module")
def made(text: Path, vocab: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set in which every word is a token and every fourth document is held out."""
    out = tmp_path_factory.mktemp("made") / "out"
    assert prepare(text, out, "--vocab", str(vocab), "--parts-per-file", "2") == 0
    return out


def test_files_are_named_as_in_mlperfs_set_and_nothing_else_is_left(made: Path) -> None:
    assert sorted(contents(made)) == [
        "2048_shards_uncompressed/part_00000_of_00003.hdf5",
        "2048_shards_uncompressed/part_00001_of_00003.hdf5",
        "2048_shards_uncompressed/part_00002_of_00003.hdf5",
        "eval_set_uncompressed/part_eval_10k.hdf5",
        "manifest.json",
        "vocab.txt",
    ]
    assert not (made / ".prepare").exists()


@pytest.mark.parametrize("which", ["training", "evaluation"])
def test_keys_types_and_shapes_are_those_of_mlperfs_set(made: Path, which: str) -> None:
    arrays = load(*(training_files(made) if which == "training" else [eval_file(made)]))
    samples = len(arrays["input_ids"])
    assert {key: (array.dtype.str, array.shape) for key, array in arrays.items()} == {
        "input_ids": ("<i4", (samples, 32)),
        "input_mask": ("|i1", (samples, 32)),
        "segment_ids": ("|i1", (samples, 32)),
        "masked_lm_positions": ("<i4", (samples, 5)),
        "masked_lm_ids": ("<i4", (samples, 5)),
        "next_sentence_labels": ("|i1", (samples,)),
    }


def test_padding_is_zero_and_masks_and_segments_agree(made: Path) -> None:
    arrays = load(*training_files(made))
    ids, mask, segments = arrays["input_ids"], arrays["input_mask"], arrays["segment_ids"]
    lengths = mask.sum(axis=1)
    assert (mask == (np.arange(32) < lengths[:, None])).all()
    assert (ids[mask == 0] == 0).all()
    assert (segments[mask == 0] == 0).all()
    for row in range(len(ids)):
        first = int((segments[row, : lengths[row]] == 0).sum())
        assert (segments[row, first : lengths[row]] == 1).all()
        assert ids[row, first - 1] == ids[row, lengths[row] - 1] == 3, "[SEP] ends each segment"
        positions, labels = arrays["masked_lm_positions"][row], arrays["masked_lm_ids"][row]
        predicted = int((positions > 0).sum())
        assert predicted == min(5, max(1, round(int(lengths[row]) * 0.15)))
        assert (labels[:predicted] > 0).all()
        assert (labels[predicted:] == 0).all()
        assert (positions[predicted:] == 0).all()


def test_shards_are_equal_and_hold_every_sample(made: Path) -> None:
    counts = [len(load(path)["input_ids"]) for path in training_files(made)]
    assert max(counts) - min(counts) <= 1
    assert sum(counts) == manifest.read(made).facts["train_samples"]


def test_the_files_hold_the_references_instances_in_the_references_order(tmp_path: Path) -> None:
    """The hand-made text, its tokens written as words: what the reference script's file would hold."""
    text, vocab = tmp_path / "text", tmp_path / "vocab.txt"
    documents = ["\n".join(" ".join(f"t{i}" for i in line) for line in document) for document in HAND_MADE]
    text.write_text("\n\n".join(documents))
    vocab.write_text(
        "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"t{i}" for i in range(5, 60))])
    )
    size = ("--seq-length", "12", "--max-predictions", "2", "--shards", "1", "--eval-samples", "8")
    given = ("--vocab", str(vocab), "--eval-text", str(text), *size)
    assert prepare(text, tmp_path / "out", *given) == 0
    for arrays in (load(*training_files(tmp_path / "out")), load(eval_file(tmp_path / "out"))):
        assert len(arrays["input_ids"]) == len(REFERENCE)
        for row, instance in enumerate(REFERENCE):
            length, predicted = len(instance.ids), len(instance.masked_ids)
            second = length - instance.first_length
            segments = [0] * instance.first_length + [1] * second + [0] * (12 - length)
            assert arrays["input_ids"][row].tolist() == instance.ids + [0] * (12 - length)
            assert arrays["segment_ids"][row].tolist() == segments
            assert arrays["masked_lm_positions"][row, :predicted].tolist() == instance.masked_positions
            assert arrays["masked_lm_ids"][row, :predicted].tolist() == instance.masked_ids
            assert arrays["next_sentence_labels"][row] == instance.is_random_next


def own_words(made: Path, *files: Path) -> set[str]:
    """The words of a document's own (w7x) that stand in the inputs or labels of `files`."""
    tokens = (made / "vocab.txt").read_text().split()
    arrays = load(*files)
    originals = arrays["input_ids"].copy()
    for row, (positions, labels) in enumerate(
        zip(arrays["masked_lm_positions"], arrays["masked_lm_ids"], strict=True)
    ):
        originals[row, positions[positions > 0]] = labels[positions > 0]
    return {tokens[i] for i in np.unique(originals) if tokens[i].startswith("w") and tokens[i].endswith("x")}


def test_held_out_documents_are_not_in_the_training_files(made: Path) -> None:
    held_out = {f"w{number}x" for number in DOCUMENTS if number % 4 == 3}
    others = {f"w{number}x" for number in DOCUMENTS} - held_out
    evaluated, trained = own_words(made, eval_file(made)), own_words(made, *training_files(made))
    assert evaluated
    assert evaluated <= held_out
    assert trained == others


def test_the_vocabulary_is_trained_on_the_training_text_only(tmp_path: Path) -> None:
    lines = [("quuxly quuxly quuxly" if number % 4 == 3 else f"plain words {number}") for number in range(40)]
    text = tmp_path / "text"
    text.write_text("\n\n".join(f"{line}\n{line}" for line in lines))
    assert prepare(text, tmp_path / "out", "--vocab-size", "120", "--eval-samples", "5") == 0
    tokens = (tmp_path / "out" / "vocab.txt").read_text().split()
    assert "plain" in tokens
    assert not [token for token in tokens if "q" in token]


def test_a_given_evaluation_text_is_used_and_all_of_the_text_is_trained_on(
    text: Path, tmp_path: Path
) -> None:
    vocab = tmp_path / "vocab.txt"
    vocab.write_text("\n".join(whole_words(range(90))) + "\n")
    held_out = write_text(tmp_path / "eval.txt", range(60, 90))
    assert prepare(text, tmp_path / "out", "--vocab", str(vocab), "--eval-text", str(held_out)) == 0
    assert own_words(tmp_path / "out", *training_files(tmp_path / "out")) == {f"w{n}x" for n in DOCUMENTS}
    assert own_words(tmp_path / "out", eval_file(tmp_path / "out")) <= {f"w{n}x" for n in range(60, 90)}
    parameters = manifest.read(tmp_path / "out").parameters
    assert "eval_every" not in parameters
    assert parameters["eval_text"][0].startswith("eval.txt sha256:")


def test_the_manifest_says_what_was_made_and_the_baseline(made: Path, text: Path) -> None:
    listed = manifest.read(made)
    assert listed.dataset == "bert"
    assert listed.parameters["tool"] == listed.tool
    assert listed.parameters["seq_length"] == 32
    assert listed.parameters["text"] == [f"text.txt sha256:{manifest.sha256_of(text)}"]
    assert "vocab_size" not in listed.parameters
    assert str(made) not in (made / "manifest.json").read_text()
    facts = listed.facts
    assert (facts["train_documents"], facts["eval_documents"]) == (45, 15)
    assert facts["train_tokens"] == int(load(*training_files(made))["input_mask"].sum())
    labels = load(eval_file(made))["masked_lm_ids"]
    counts = np.bincount(labels[labels > 0])
    assert facts["eval_masked_predictions"] == counts.sum()
    assert facts["eval_mlm_accuracy_of_commonest_token"] == round(counts.max() / counts.sum(), 4)
    assert (made / "vocab.txt").read_text().split()[counts.argmax()] == facts["eval_commonest_masked_token"]
    assert len(listed.files) == 5
    assert manifest.verify(made) == []


def test_evaluation_samples_are_picked_evenly_as_mlperf_picks_them(
    text: Path, vocab: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of all that the held-out text gives, sample int(i * all / asked) is the i-th."""
    given = ("--vocab", str(vocab), "--eval-samples")
    assert prepare(text, tmp_path / "none", *given, "100000") == 1
    match = re.search(r"gives (\d+) samples", capsys.readouterr().err)
    assert match
    available = int(match[1])
    assert prepare(text, tmp_path / "all", *given, match[1]) == 0
    assert prepare(text, tmp_path / "some", *given, "21") == 0
    everything, some = load(eval_file(tmp_path / "all")), load(eval_file(tmp_path / "some"))
    assert available % 21, "an uneven step is the interesting one"
    rows = [int(i * available / 21) for i in range(21)]
    for key, array in some.items():
        assert (array == everything[key][rows]).all()


@pytest.mark.parametrize(
    ("counts", "shards", "expected"),
    [
        ([5], 2, [[("a", 0, 2)], [("a", 2, 5)]]),
        ([3, 3], 2, [[("a", 0, 3)], [("b", 0, 3)]]),
        ([1, 0, 4], 2, [[("a", 0, 1), ("c", 0, 1)], [("c", 1, 4)]]),
        ([2, 2, 2], 1, [[("a", 0, 2), ("b", 0, 2), ("c", 0, 2)]]),
    ],
)
def test_shards_cut_the_parts_one_after_the_other(
    counts: list[int], shards: int, expected: list[list[tuple[str, int, int]]]
) -> None:
    plan = plan_shards("abc"[: len(counts)], counts, shards)
    assert [list(shard.pieces) for shard in plan] == expected
    assert [shard.index for shard in plan] == list(range(shards))


def test_more_parts_than_documents_is_no_harm(tmp_path: Path) -> None:
    text = write_text(tmp_path / "text", range(8))
    arguments = ("--vocab-size", "120", "--parts-per-file", "20", "--eval-samples", "2", "--shards", "1")
    assert prepare(text, tmp_path / "out", *arguments) == 0


def test_the_demo_is_small_full_and_states_its_baseline(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--demo", "--out", str(tmp_path / "demo")]) == 0
    listed = manifest.read(tmp_path / "demo")
    facts = listed.facts
    assert listed.total_bytes < 60e6
    assert facts["vocab_size"] == 2000
    assert facts["eval_samples"] == 1024
    assert facts["train_tokens"] / (facts["train_samples"] * 64) > 0.98
    assert (facts["train_documents"], facts["eval_documents"]) == (1115, 74)
    assert 0.05 < facts["eval_mlm_accuracy_of_commonest_token"] < 0.08
    assert f"MLM accuracy {facts['eval_mlm_accuracy_of_commonest_token']}" in capsys.readouterr().out
    assert manifest.verify(tmp_path / "demo", workers=2) == []


def test_the_demo_corpus_is_the_one_its_note_describes() -> None:
    note = DEMO_TEXT.with_name("PROVENANCE.md").read_text()
    assert manifest.sha256_of(DEMO_TEXT) in note
    assert f"{DEMO_TEXT.stat().st_size:,} bytes" in note


def test_the_manifest_is_plain_json_with_sorted_files(made: Path) -> None:
    content = json.loads((made / "manifest.json").read_text())
    paths = [entry["path"] for entry in content["files"]]
    assert paths == sorted(paths)
    assert content["format"] == manifest.FORMAT
