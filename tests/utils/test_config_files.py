"""Config files are Python; their plain data is what they set."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from utils.config_files import config_name, load_constants, parts_of_config
from utils.errors import FlagPerfError


def write(folder: Path, text: str, name: str = "conf.py") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_plain_data_in_order(tmp_path: Path) -> None:
    path = write(tmp_path, 'B = [1, ("x", None)]\nA = {"k": {2: 0.5}}\nC: int = 3\nB = True\n')
    constants = load_constants(path)
    assert list(constants.items()) == [("B", True), ("A", {"k": {2: 0.5}}), ("C", 3)]


@pytest.mark.parametrize("chip", ["A100", "Max1550", "x", "BI-V150", "1x1", "K100_AI"])
def test_a_configurations_name_is_taken_apart_from_its_end(chip: str) -> None:
    assert parts_of_config(config_name(chip, 2, 8)) == (chip, 2, 8)


@pytest.mark.parametrize(
    "name", ["config_common", "config_maxwell", "config_x1x8", "A100x1x8", "config_A100x1xx"]
)
def test_a_name_of_another_form_has_no_such_parts(name: str) -> None:
    assert parts_of_config(name) is None


def test_what_is_not_plain_is_left_out(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "import os\nfrom pathlib import Path\n_own = 1\nHERE = Path('.')\ndef f(): ...\nL = [Path]\n",
    )
    assert load_constants(path) == {}


def test_values_may_be_computed_and_shared(tmp_path: Path) -> None:
    write(tmp_path, "batch = 4\nsteps = 10\n", "config_common.py")
    path = write(tmp_path, "from config_common import *\nbatch = 2 * batch\n")
    assert load_constants(path) == {"batch": 8, "steps": 10}


def test_a_file_that_is_written_twice_within_a_second_is_read_as_it_stands(tmp_path: Path) -> None:
    for batch in (4, 8):
        common = write(tmp_path, f"batch = {batch}\n", "config_common.py")
        path = write(tmp_path, f"from config_common import *\nsteps = {batch}\n")
        for file in (common, path):
            os.utime(file, (1_700_000_000, 1_700_000_000))
        assert load_constants(path) == {"batch": batch, "steps": batch}


def test_two_folders_have_their_own_siblings(tmp_path: Path) -> None:
    paths = []
    for name in ("a", "b"):
        folder = tmp_path / name
        folder.mkdir()
        write(folder, f"who = {name!r}\n", "config_common.py")
        paths.append(write(folder, "from config_common import *\n"))
    assert [load_constants(path)["who"] for path in paths] == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("A = 1\nB = = 2\n", 2, "syntax error: invalid syntax: B = = 2"),
        ("A = 1\n\nB = C\n", 3, "NameError: name 'C' is not defined: B = C"),
        ("def f():\n    return 1 / 0\n\nA = f()\n", 2, "ZeroDivisionError: division by zero: return 1 / 0"),
        ("import sys\nsys.exit()\n", 2, "SystemExit: sys.exit()"),
        (
            "import no_such_module\n",
            1,
            "ModuleNotFoundError: No module named 'no_such_module': import no_such_module",
        ),
    ],
)
def test_failure_names_its_line(tmp_path: Path, text: str, line: int, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(FlagPerfError) as caught:
        load_constants(path)
    assert (caught.value.where, caught.value.message) == (f"{path}:{line}", message)
    assert caught.value.remedy


@pytest.mark.parametrize("text", ["A = 1\nB = C\n", "A = 1\nB = = 2\n"])
@pytest.mark.parametrize("folder", [".", "../config"])
def test_a_failure_names_its_line_whatever_the_way_to_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, text: str
) -> None:
    place = tmp_path / "config"
    place.mkdir()
    write(place, text)
    monkeypatch.chdir(place)
    path = Path(folder, "conf.py")
    with pytest.raises(FlagPerfError) as caught:
        load_constants(path)
    assert caught.value.where == f"{path}:2"


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FlagPerfError, match="no such file") as caught:
        load_constants(tmp_path / "none.py")
    assert caught.value.where == str(tmp_path / "none.py")


def test_a_file_that_ends_the_program_is_an_error_like_others(tmp_path: Path) -> None:
    path = write(tmp_path, "import sys\nsys.exit(7)\n")
    with pytest.raises(FlagPerfError, match="SystemExit: 7: ") as caught:
        load_constants(path)
    assert caught.value.where == f"{path}:2"


def test_a_binary_file_has_no_line(tmp_path: Path) -> None:
    path = tmp_path / "conf.py"
    path.write_bytes(b"A = 1\0\xff\n")
    with pytest.raises(FlagPerfError) as caught:
        load_constants(path)
    assert "None" not in caught.value.where and caught.value.where.startswith(str(path))
