"""From ReCoRD to the data set: tokens, candidates, cuts, determinism, the manifest, the demo."""

from __future__ import annotations

import json
import lzma
import re
from pathlib import Path

import numpy as np
import pytest

from benchmarks.common import wordpiece
from benchmarks.glm import shards
from benchmarks.glm.clozes import Clozes
from benchmarks.glm.prepare import demo
from benchmarks.glm.prepare.parameters import Parameters
from benchmarks.glm.prepare.questions import QuestionMaker, as_clozes, vocabulary_of
from benchmarks.glm.prepare.record import Passage, parse
from tests.benchmarks.common.preparation.prepared_cases import contents
from tests.benchmarks.glm.prepare_data import (
    passage,
    prepare,
    write_record,
    zipped,
)
from utils import manifest


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_record(tmp_path_factory.mktemp("record") / "ReCoRD")


@pytest.fixture(scope="module")
def made(record: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("made") / "out"
    assert prepare(record, out) == 0
    return out


@pytest.fixture(scope="module")
def pieces(made: Path) -> wordpiece.Vocabulary:
    return wordpiece.read(made / "vocab.txt")


def parsed(number: int = 0) -> Passage:
    return parse(json.dumps(passage(number)).encode(), "here")


def words(pieces: wordpiece.Vocabulary, tokens: np.ndarray) -> str:
    return " ".join(pieces.tokens[token] for token in tokens).replace(" ##", "")


def test_a_passage_is_read_with_its_entities_and_answers() -> None:
    read = parsed()
    assert read.text == "Ann Lee lives in Paris. Bob went from Paris to Lima.\n- Bob likes Lima"
    assert read.mentions == {"Ann Lee": 1, "Paris": 2, "Bob": 2, "Lima": 2}
    assert [(query.before, query.after, query.answers) for query in read.queries] == [
        ("The home of ", " is Paris", ("Ann Lee", "Bob")),
        ("Bob left for ", ".", ("Lima",)),
    ]


def test_quotation_marks_become_plain_and_spans_stay_right() -> None:
    line = passage(0)
    line["passage"]["text"] = "\u201cAnn\u2019s\u201d \u2013 Bob"
    line["passage"]["entities"] = [{"start": 1, "end": 5}, {"start": 10, "end": 12}]
    line["qas"] = [{"idx": 1, "query": "\u2018@placeholder\u2019", "answers": [{"text": "Ann\u2019s"}]}]
    read = parse(json.dumps(line).encode(), "here")
    assert (read.text, list(read.mentions)) == ('"Ann\'s" - Bob', ["Ann's", "Bob"])
    assert (read.queries[0].before, read.queries[0].answers) == ("'", ("Ann's",))


def test_a_question_is_laid_out_as_in_glm(pieces: wordpiece.Vocabulary) -> None:
    maker = QuestionMaker(pieces, Parameters(), is_training=False)
    (_, question) = maker.of([parsed()])
    assert words(pieces, np.array(question.source)) == (
        "[CLS] ann lee lives in paris . bob went from paris to lima . - bob likes lima "
        "bob left for [MASK] . [PAD]"
    )
    assert pieces.tokens[question.source[question.blank]] == "[MASK]"
    assert [words(pieces, np.array(tokens)) for tokens in question.tokens] == [
        "ann lee",
        "paris",
        "bob",
        "lima",
    ]


def test_in_evaluation_all_candidates_stand_and_every_right_answer_counts(
    pieces: wordpiece.Vocabulary,
) -> None:
    maker = QuestionMaker(pieces, Parameters(), is_training=False)
    clozes = as_clozes(list(maker.of([parsed()])))
    assert clozes.candidate_counts.tolist() == [4, 4]
    assert clozes.exact_match.tolist() == [1, 0, 1, 0, 0, 0, 0, 1]
    assert clozes.mentions.tolist() == [1, 2, 2, 2] * 2
    assert clozes.in_query.tolist() == [0, 1, 0, 0, 0, 0, 1, 0]


def test_in_training_each_right_answer_is_a_question_with_wrong_candidates(
    pieces: wordpiece.Vocabulary,
) -> None:
    maker = QuestionMaker(pieces, Parameters(), is_training=True)
    questions = list(maker.of([parsed()]))
    assert [question.candidates for question in questions] == [
        ("Ann Lee", "Paris", "Lima"),
        ("Paris", "Bob", "Lima"),
        ("Ann Lee", "Paris", "Bob", "Lima"),
    ]
    clozes = as_clozes(questions)
    assert np.add.reduceat(clozes.exact_match, [0, 3, 6]).tolist() == [1, 1, 1]


def test_in_training_no_more_than_so_many_candidates_are_kept(pieces: wordpiece.Vocabulary) -> None:
    maker = QuestionMaker(pieces, Parameters(max_candidates=2), is_training=True)
    again = QuestionMaker(pieces, Parameters(max_candidates=2), is_training=True)
    passages = [parsed(number) for number in range(8)]
    questions = list(maker.of(passages))
    assert {len(question.candidates) for question in questions} == {2}
    assert all(set(question.answers) <= set(question.candidates) for question in questions)
    assert [question.candidates for question in again.of(passages[5:])] == [
        question.candidates for question in questions[-9:]
    ]


def test_a_passage_that_is_too_long_is_cut_at_its_end(pieces: wordpiece.Vocabulary) -> None:
    whole, cut = (
        next(QuestionMaker(pieces, Parameters(seq_length=length), is_training=False).of([parsed()]))
        for length in (512, 26)
    )
    longest = max(map(len, cut.tokens))
    assert len(cut.source) + longest + 1 == 26
    passage_tokens = cut.blank - 1 - 3  # less [CLS] and "bob left for" or "the home of"
    assert cut.source[: 1 + passage_tokens] == whole.source[: 1 + passage_tokens]
    assert cut.source[cut.blank :] == whole.source[whole.blank :]


def everything(out: Path, folder: str) -> Clozes:
    return shards.read_folder(out, folder).clozes


def test_the_files_hold_every_question(made: Path) -> None:
    assert len(everything(made, "train")) == 20 * 3
    assert len(everything(made, "val")) == 6 * 2
    assert sorted(contents(made)) == [
        "manifest.json",
        *(f"train/part_{number:05d}_of_00004.hdf5" for number in range(4)),
        "val/part_00000_of_00001.hdf5",
        "vocab.txt",
    ]


def test_start_and_end_of_a_piece_follow_berts_tokens(made: Path, pieces: wordpiece.Vocabulary) -> None:
    read = shards.read_folder(made, "train")
    assert read.vocabulary == vocabulary_of(pieces)
    assert (read.vocabulary.start, read.vocabulary.end) == (pieces.size, pieces.size + 1)
    assert max(read.clozes.sources.max(), read.clozes.candidates.max()) < pieces.size


@pytest.mark.parametrize("workers", [1, 2])
def test_the_archive_and_the_number_of_workers_change_nothing(
    record: Path, made: Path, tmp_path: Path, workers: int
) -> None:
    assert prepare(zipped(record, tmp_path / "ReCoRD.zip"), tmp_path / "out", workers=workers) == 0
    differing = {name for name, data in contents(tmp_path / "out").items() if contents(made)[name] != data}
    assert differing == {"manifest.json"}  # it names what was read


def test_more_parts_than_passages_leave_files_without_questions(record: Path, tmp_path: Path) -> None:
    assert prepare(record, tmp_path / "out", "--parts", "40") == 0
    assert len(everything(tmp_path / "out", "train")) == 60
    assert len(everything(tmp_path / "out", "val")) == 12


def test_a_given_vocabulary_is_used(record: Path, made: Path, tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_bytes((made / "vocab.txt").read_bytes() + b"zebra\n")
    assert prepare(record, tmp_path / "out", "--vocab", str(tmp_path / "vocab.txt")) == 0
    assert (tmp_path / "out" / "vocab.txt").read_bytes() == (tmp_path / "vocab.txt").read_bytes()
    listed = manifest.read(tmp_path / "out")
    assert "vocab_size" not in listed.parameters
    assert listed.parameters["vocab"][0].startswith("vocab.txt sha256:")


def test_the_manifest_says_what_was_made_and_what_trivial_answers_get(made: Path, record: Path) -> None:
    listed = manifest.read(made)
    facts = listed.facts
    assert listed.dataset == "glm"
    assert (
        listed.parameters["record"][0] == f"train.jsonl sha256:{manifest.sha256_of(record / 'train.jsonl')}"
    )
    assert (facts["train_passages"], facts["train_queries"], facts["train_questions"]) == (20, 40, 60)
    assert (facts["val_passages"], facts["val_questions"], facts["val_answerable_questions"]) == (6, 12, 12)
    assert facts["val_exact_match_chance"] == pytest.approx((2 / 4 + 1 / 4) / 2)
    assert manifest.verify(made) == []


def test_the_demos_texts_are_those_that_their_notes_describe_and_clean() -> None:
    texts = []
    for path in demo.DEMO_TEXTS:
        note = path.with_name("PROVENANCE.md").read_text(encoding="utf-8")
        assert manifest.sha256_of(path) in note
        assert f"{path.stat().st_size:,} bytes" in note
        texts.append(lzma.decompress(path.read_bytes()).decode())
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f0-9%<>&@]", texts[-1]), "no terminal codes, no markup"
    first, second = ([chapter.count("\n") for chapter in text.split("\n\n")] for text in texts)
    assert first == second, "verse for verse"


def test_a_demos_query_tells_in_the_other_words_what_its_passage_tells() -> None:
    verses = ["And Noah the son of Lamech went into the ark of gopher wood with his three sons."]
    retold = ["Noah, son of Lamech, entered the ark made of gopher wood with his three boys."]
    (made_passage,) = demo.passages(verses, retold, demo.random.Random(1))
    text = made_passage["passage"]["text"]
    assert text == verses[0]
    names = [text[span["start"] : span["end"] + 1] for span in made_passage["passage"]["entities"]]
    assert len({name.lower() for name in names}) == demo.CANDIDATES
    for query in made_passage["qas"]:
        (answer,) = query["answers"]
        assert text[answer["start"] : answer["end"] + 1] == answer["text"]
        assert answer["text"] in names
        assert query["query"].replace("@placeholder", answer["text"]) in retold[0]
