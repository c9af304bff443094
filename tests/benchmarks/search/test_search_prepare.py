"""Folders of images become shards: every image once under its class, the same by any number of processes."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from benchmarks.common.arrays import Array
from benchmarks.driver.sampling import all_samples
from benchmarks.search.images import read_facts, shard_files
from benchmarks.search.prepare.command import main
from utils.errors import FlagPerfError

# A class a colour; each image has a shade of its own, by which it is known again.
COLOURS = {"n01_red": 0, "n02_green": 1, "n03_blue": 2}
SMALL = ("--size", "8", "--shard-images", "4", "--workers", "1")


def write_images(folder: Path, each: int) -> None:
    """`each` images a class, in sizes, modes and formats as they are met."""
    for name, channel in COLOURS.items():
        (folder / name).mkdir(parents=True)
        for number in range(each):
            pixels = np.zeros((20 + number, 31, 3), np.uint8)
            pixels[..., channel] = 100 + 20 * number
            image = Image.fromarray(pixels)
            ending = ("png", "JPEG")[number % 2]
            (image.convert("RGBA") if ending == "png" else image).save(
                folder / name / f"image_{number}.{ending}", **({} if ending == "png" else {"quality": 95})
            )


@pytest.fixture
def images(tmp_path: Path) -> Path:
    folder = tmp_path / "images"
    write_images(folder / "train", 3)
    write_images(folder / "val", 2)
    (folder / "train" / "n01_red" / ".hidden").write_text("no image")
    return folder


def prepare(images: Path, out: Path, *more: str) -> int:
    return main(["--images", str(images), "--out", str(out), *SMALL, *more])


def load(folder: Path) -> tuple[Array, Array]:
    files = shard_files(folder, keep=4)
    columns = files.read(all_samples([files.rows(number) for number in range(len(files.files))]))
    return columns["images"], columns["labels"]


def seen(images: Array, labels: Sequence[int]) -> list[tuple[int, int]]:
    """(label, number) of each image, from its colour and shade alone."""
    means = images.reshape(len(images), -1, 3).mean(axis=1)
    found = [(int(mean.argmax()), round((float(mean.max()) - 100) / 20)) for mean in means]
    assert [channel for channel, _ in found] == list(labels)
    return found


def test_every_image_is_there_once_under_its_class(images: Path, tmp_path: Path) -> None:
    assert prepare(images, tmp_path / "data") == 0
    pixels, labels = load(tmp_path / "data" / "training")
    assert (pixels.shape, pixels.dtype) == ((9, 8, 8, 3), np.uint8)
    assert sorted(seen(pixels, labels)) == [(label, number) for label in range(3) for number in range(3)]
    assert list(labels) != sorted(labels), "training images are shuffled"
    validation, validation_labels = load(tmp_path / "data" / "validation")
    assert seen(validation, validation_labels) == [
        (label, number) for label in range(3) for number in range(2)
    ]
    facts = read_facts(tmp_path / "data")
    assert (facts.classes, facts.height, facts.width, facts.channels) == (3, 8, 8, 3)
    assert (facts.training_samples, facts.validation_samples) == (9, 6)


def test_the_number_of_processes_changes_nothing(images: Path, tmp_path: Path) -> None:
    assert prepare(images, tmp_path / "one") == prepare(images, tmp_path / "two", "--workers", "2") == 0
    assert read_facts(tmp_path / "one") == read_facts(tmp_path / "two")


def test_the_middle_of_an_image_is_kept(tmp_path: Path) -> None:
    """Left and right of the square middle is another colour."""
    for name in ("train/one", "train/other", "val/one", "val/other"):
        (tmp_path / name).mkdir(parents=True)
        pixels = np.zeros((16, 48, 3), np.uint8)
        pixels[:, 16:32] = (0, 200, 0)
        Image.fromarray(pixels).save(tmp_path / name / "wide.png")
    assert prepare(tmp_path, tmp_path / "data") == 0
    pixels, _ = load(tmp_path / "data" / "training")
    assert (pixels[0, :, 2:-2] == np.array([0, 200, 0])).all()
    assert pixels[..., 1].min() > 150, "at its edges the filter mixes what is beside"


def test_the_demo_has_the_digits(tmp_path: Path) -> None:
    assert main(["--demo", "--out", str(tmp_path / "data")]) == 0
    pixels, labels = load(tmp_path / "data" / "training")
    assert (pixels.shape, pixels.max(), set(labels)) == ((1437, 8, 8, 1), 240, set(range(10)))
    assert load(tmp_path / "data" / "validation")[0].shape == (360, 8, 8, 1)
    assert read_facts(tmp_path / "data").classes == 10


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_file_that_is_no_image_is_named_and_leaves_nothing(
    images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], workers: str
) -> None:
    bad = images / "val" / "n02_green" / "image_1.JPEG"
    bad.write_bytes(bad.read_bytes()[:-400])
    assert prepare(images, tmp_path / "data", "--workers", workers) == 1
    printed = capsys.readouterr().err
    assert f"{bad}: no image can be read: " in printed
    assert [path.name for path in tmp_path.iterdir()] == ["images"]


@pytest.mark.parametrize(
    ("folder", "why"),
    [("val/n04_more", "differ in 1 classes: n04_more"), ("train/n01_red", "n01_red: holds no image")],
)
def test_sets_that_do_not_match_are_refused(
    images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], folder: str, why: str
) -> None:
    target = images / folder
    target.mkdir(exist_ok=True)
    for path in target.glob("image*"):
        path.unlink()
    assert prepare(images, tmp_path / "data") == 1
    assert why in capsys.readouterr().err


def test_one_class_alone_is_refused(images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder in [*images.glob("*/n0*")]:
        if folder.name != "n01_red":
            shutil.rmtree(folder)
    assert prepare(images, tmp_path / "data") == 1
    assert "train/ has 1 folders, one a class; 2 to " in capsys.readouterr().err


def test_what_is_not_as_made_is_named(
    images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert prepare(images, tmp_path / "data") == 0
    shard = tmp_path / "data" / "validation" / "labels_00001_of_00002.npy"
    content = bytearray(shard.read_bytes())
    content[-1] ^= 1
    shard.write_bytes(content)
    assert main(["--verify", str(tmp_path / "data")]) == 1
    assert "validation/labels_00001_of_00002.npy" in capsys.readouterr().err


def test_other_data_are_refused(images: Path, tmp_path: Path) -> None:
    assert prepare(images, tmp_path / "data") == 0
    manifest = tmp_path / "data" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"classes": 3', '"classes": "many"'))
    with pytest.raises(FlagPerfError, match=r"without classes(.|\n)*benchmarks.search.prepare"):
        read_facts(tmp_path / "data")
    for name in ("images", "labels"):
        shard = tmp_path / "data" / "training" / f"{name}_00000_of_00003.npy"
        whole = shard.read_bytes()
        shard.write_bytes(whole[:-3])
        with pytest.raises(FlagPerfError, match="cannot read these samples") as raised:
            load(tmp_path / "data" / "training")
        assert raised.value.where == str(shard)
        shard.write_bytes(whole)
