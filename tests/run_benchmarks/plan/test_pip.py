"""Which pip settings reach an image's build."""

from __future__ import annotations

import ast
import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

from run_benchmarks.plan.host_pip import host_pip_options, read_pip_conf
from run_benchmarks.plan.pip_record import PipSettings
from tests.run_benchmarks.plan.test_bad_input import edit
from tests.run_benchmarks.plan.tree import Tree
from utils.errors import FlagPerfError

MIRROR = "https://bob:hunter2@mirror.example.org/simple"


def settings(tree: Tree, *lines: str) -> PipSettings:
    edit(tree, "test_conf.py", "", "\n".join(lines) + "\n")
    return tree.load().run.pip


@pytest.fixture
def bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """No pip settings but those that a test makes: neither of this machine's files nor of its variables."""
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"):
        monkeypatch.delenv(name, raising=False)
    for name in host_variables():
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path / "xdg"))
    # os.devnull tells pip to read no file at all
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return monkeypatch


def host_variables() -> list[str]:
    return [name for name in os.environ if name.startswith("PIP_")]


def test_a_user_without_a_name_and_a_home_has_no_files_of_his_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that is started with a number for its user; `getpwuid` is a fake that knows nobody."""

    def unknown(uid: int) -> None:
        raise KeyError(uid)

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert host_pip_options({"XDG_CONFIG_DIRS": "/nowhere", "PIP_INDEX_URL": MIRROR})["index-url"] == MIRROR


def test_nothing_is_set(tree: Tree) -> None:
    assert tree.load().run.pip == PipSettings()


def test_source_ca_and_wheels(tree: Tree, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("")
    (tree.training / "wheels").mkdir()
    pip = settings(
        tree,
        'PIP_SOURCE = "https://mirror.example.org/simple"',
        f'PIP_CA_FILE = "{tmp_path / "ca.pem"}"',
        f'PIP_WHEEL_DIRS = ["wheels", "{tmp_path}"]',
    )
    assert pip.options == {"index-url": "https://mirror.example.org/simple"}
    assert pip.ca_file == tmp_path / "ca.pem"
    assert pip.wheel_dirs == (tree.training / "wheels", tmp_path), "a relative path is below training/"


def test_config_file_is_taken_apart(tree: Tree, tmp_path: Path) -> None:
    """What names this machine's files is handed over by itself; the rest stays as pip knows it."""
    (tmp_path / "ca.pem").write_text("")
    (tmp_path / "wheels").mkdir()
    conf = tmp_path / "pip.conf"
    conf.write_text(
        f"[global]\nindex-url = {MIRROR}\ncert = {tmp_path}/ca.pem\ntarget = /somewhere\ndefault-timeout = 60\n"
        f"extra-index-url =\n    https://two.example.org/simple\n    file:///no/such/index\n    file://{tmp_path}\n"
        f"[install]\nfind-links = {tmp_path}/wheels file://{tmp_path}/wheels /no/wheels https://l.example.org/\n"
    )
    pip = settings(tree, f'PIP_CONFIG_FILE = "{conf}"')
    assert pip.options == {
        "index-url": MIRROR,
        "extra-index-url": f"https://two.example.org/simple file://{tmp_path}",
        "find-links": "https://l.example.org/",
        "timeout": "60",
    }
    assert pip.ca_file == tmp_path / "ca.pem"
    assert pip.wheel_dirs == (tmp_path / "wheels",)
    assert "hunter2" not in repr(pip)


def test_later_settings_win(tree: Tree, tmp_path: Path, bare_environment: pytest.MonkeyPatch) -> None:
    bare_environment.setenv("PIP_INDEX_URL", "https://host.example.org/simple")
    bare_environment.setenv("PIP_TIMEOUT", "11")
    (tmp_path / "pip.conf").write_text("[global]\nindex-url = https://file.example.org/simple\nretries = 9\n")
    pip = settings(tree, "PIP_FROM_HOST = True", f'PIP_CONFIG_FILE = "{tmp_path}/pip.conf"')
    assert pip.options == {"index-url": "https://file.example.org/simple", "timeout": "11", "retries": "9"}
    pip = settings(tree, 'PIP_SOURCE = "https://source.example.org/simple"')
    assert pip.options["index-url"] == "https://source.example.org/simple"


def test_the_hosts_own_configuration(
    tree: Tree, tmp_path: Path, bare_environment: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.conf").write_text(f"[global]\nindex-url = {MIRROR}\n[install]\nno-index = true\n")
    bare_environment.setenv("PIP_CONFIG_FILE", str(tmp_path / "mine.conf"))
    bare_environment.setenv("PIP_FIND_LINKS", str(tmp_path))
    pip = settings(tree, "PIP_FROM_HOST = True")
    assert (pip.options, pip.wheel_dirs) == ({"index-url": MIRROR, "no-index": "true"}, (tmp_path,))


def test_the_hosts_configuration_is_left_alone_without_the_setting(
    tree: Tree, bare_environment: pytest.MonkeyPatch
) -> None:
    bare_environment.setenv("PIP_INDEX_URL", MIRROR)
    assert tree.load().run.pip == PipSettings()


def test_ca_of_the_environment(tree: Tree, tmp_path: Path, bare_environment: pytest.MonkeyPatch) -> None:
    (tmp_path / "bundle.pem").write_text("")
    bare_environment.setenv("REQUESTS_CA_BUNDLE", "/no/bundle.pem")
    bare_environment.setenv("SSL_CERT_FILE", str(tmp_path / "bundle.pem"))
    assert settings(tree, "PIP_FROM_HOST = True").ca_file == tmp_path / "bundle.pem"


def test_cert_that_is_not_there(tree: Tree, bare_environment: pytest.MonkeyPatch) -> None:
    bare_environment.setenv("PIP_CERT", "/no/ca.pem")
    edit(tree, "test_conf.py", "", "PIP_FROM_HOST = True\n")
    exit_code, problems = tree.problems()
    assert (exit_code, problems[0].name, problems[0].value) == (2, "cert", "'/no/ca.pem'")
    assert "PIP_CA_FILE" in problems[0].remedy


def test_malformed_config_file(tree: Tree, tmp_path: Path) -> None:
    (tmp_path / "pip.conf").write_text("index-url = https://x/\n")
    edit(tree, "test_conf.py", "", f'PIP_CONFIG_FILE = "{tmp_path}/pip.conf"\n')
    _, problems = tree.problems()
    assert problems[0].name == "PIP_CONFIG_FILE"
    assert "is not a pip.conf" in problems[0].message
    assert "[global]" in problems[0].remedy


def test_malformed_configuration_of_the_host(
    tree: Tree, tmp_path: Path, bare_environment: pytest.MonkeyPatch
) -> None:
    """pip itself refuses such a file."""
    (tmp_path / "mine.conf").write_text("index-url = https://x/\n")
    bare_environment.setenv("PIP_CONFIG_FILE", str(tmp_path / "mine.conf"))
    edit(tree, "test_conf.py", "", "PIP_FROM_HOST = True\nSHM_SIZE = 1\n")
    exit_code, problems = tree.problems()
    assert exit_code == 2
    assert {problem.name for problem in problems} == {"mine.conf", "SHM_SIZE"}


def test_pips_order_of_precedence(tmp_path: Path) -> None:
    """Variables win over the section [install] of any file, and that over [global]."""
    (tmp_path / "pip").mkdir()
    (tmp_path / "pip" / "pip.conf").write_text(
        "[install]\nindex-url = https://install/\nno-index = false\n[freeze]\nproxy = p:1\n"
    )
    (tmp_path / "own.conf").write_text(
        "[global]\nindex-url = https://global/\nno-index = true\nretries = 3\n"
    )
    own = str(tmp_path / "own.conf")
    environ = {"HOME": str(tmp_path), "XDG_CONFIG_DIRS": str(tmp_path), "PIP_CONFIG_FILE": own}
    environ |= {"PIP_INDEX_URL": "https://env/", "PIP_DEFAULT_TIMEOUT": "5"}
    options = host_pip_options(environ)
    expected = {"index-url": "https://env/", "no-index": "false", "retries": "3", "timeout": "5"}
    assert {name: options.get(name) for name in expected} == expected
    assert options.get("proxy") != "p:1"


def test_every_place_where_pip_looks(tmp_path: Path) -> None:
    (tmp_path / ".pip").mkdir()
    (tmp_path / ".pip" / "pip.conf").write_text("[global]\nindex_url = https://legacy/\nretries = 1\n")
    (tmp_path / "xdg" / "pip").mkdir(parents=True)
    (tmp_path / "xdg" / "pip" / "pip.conf").write_text("[global]\nindex-url = https://site/\nproxy = p:1\n")
    environ = {"HOME": str(tmp_path), "XDG_CONFIG_DIRS": str(tmp_path / "xdg"), "PIP_RETRIES": "2"}
    options = host_pip_options(environ)
    expected = {"index-url": "https://legacy/", "proxy": "p:1", "retries": "2"}
    assert {name: options.get(name) for name in expected} == expected


@pytest.mark.parametrize("own", ["own.conf", "none.conf"])
def test_pip_itself_sees_the_same(tmp_path: Path, own: str) -> None:
    """In each of its places: what it lists for [global] is what is taken over."""
    for number, place in enumerate(["xdg/pip", ".pip", ".config/pip", "."]):
        (tmp_path / place).mkdir(parents=True, exist_ok=True)
        text = f"[global]\nretries = {number}\nproxy{number} = p:{number}\nindex_url =\n  a\n  b{number}\n"
        (tmp_path / place / ("own.conf" if place == "." else "pip.conf")).write_text(text)
    environ = {"HOME": str(tmp_path), "XDG_CONFIG_DIRS": str(tmp_path / "xdg")}
    environ["PIP_CONFIG_FILE"] = str(tmp_path / own)
    command = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stdout
    lines = [line.removeprefix("global.").partition("=") for line in listed.splitlines() if "global." in line]
    expected = {name: ast.literal_eval(value) for name, _, value in lines}
    options = host_pip_options(environ)
    ours = {name: options[name] for name in options if name in expected or name.startswith("proxy")}
    assert ours == expected
    assert "proxy0" in ours


def test_pip_conf_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(FlagPerfError, match=r"is not a pip\.conf"):
        read_pip_conf(tmp_path / "pip.conf")
