"""What a case's `environment_variables.sh` assigns to a secret's name, in each form that the documentation promises."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from run_benchmarks.plan.secrets import secrets_of
from run_benchmarks.plan.shell_file import LARGEST

FORMS = [
    "A_TOKEN=va1ue-of-it",
    "export A_TOKEN='va1ue of it' B=2  # it's a comment",
    'declare -x A_TOKEN="va1ue; of it"; true',
    'export A_TOKEN="${A_TOKEN:-va1ue of it}"',
    "A_TOKEN=${OTHER:-va1ue-of-it}",
    "A_TOKEN=${A_TOKEN-va1ue-of-it}",
    ': "${A_TOKEN:=va1ue of it}"',
    "A_TOKEN=$'va1ue of it'",
    "A_TOKEN=va1\"ue of\"' it'",
    "A_TOKEN=va1ue\\ of\\ it",
    "A_TOKEN='it'\"'\"'s va1ue'",
    "A_TOKEN=va1ue#of;: it",
    "A_TOKEN+=va1ue-of-it",
    "(A_TOKEN=va1ue-of-it && true); A_TOKEN=va1ue-of-it",
    'A_TOKEN="va1ue-\\\nof-it"',
    'A_TOKEN="va1ue \\"of\\" \\$5, \\it"',
    "SITE_MARKED='va1ue of it'",
]


@pytest.mark.parametrize("script", FORMS)
def test_a_literal_value_is_hidden_as_bash_takes_it(script: str) -> None:
    print_it = f'{script}\nprintf "%s" "${{A_TOKEN:-$SITE_MARKED}}"'
    ran = subprocess.run(["bash", "-c", print_it], env={}, capture_output=True, text=True, check=True)
    assert "va1ue" in ran.stdout
    secrets = secrets_of(["SITE_MARKED"]).with_those_of({}, (), f"echo don't\n{script}\n")
    assert secrets.hide(f"got {ran.stdout} there") == "got *** there"
    assert secrets.hide("echo then true") == "echo then true"


@pytest.mark.parametrize("operator", [";", "&", "&&", "|", "<", ">", ">>"])
def test_the_end_of_a_value_without_its_quotes_is_hidden(operator: str, tmp_path: Path) -> None:
    script = f"export A_TOKEN=va1ue{operator}of-1tself"
    ran = subprocess.run(["bash", "-c", script], cwd=tmp_path, env={}, capture_output=True, text=True)
    said = ran.stderr or "of-1tself: is a file"  # which it is, behind `>`
    assert "of-1tself" in said
    assert "of-1tself" not in secrets_of([]).with_those_of({}, (), f"{script}\n").hide(said)


@pytest.mark.parametrize(
    "script",
    [
        "export A_TOKEN=va1ue;export PYTHONPATH=/opt/lib64",
        "export A_TOKEN=$(cat /opt/lib64)||return",
        "A_TOKEN=va1ue;source /opt/lib64",
        "A_TOKEN=va1ue && python3",
        "A_TOKEN=va1ue>/opt/lib64",
        'A_TOKEN="va1ue;of-it"',
        "PLAIN=va1ue;python3",
    ],
)
def test_what_follows_a_value_and_is_none_is_shown(script: str) -> None:
    text = "export return source python3 PYTHONPATH=/opt/lib64"
    assert secrets_of([]).with_those_of({}, (), f"{script}\n").hide(text) == text


@pytest.mark.timeout(200)  # it takes seconds; quadratic, many minutes
@pytest.mark.parametrize(
    ("begin", "part"), [("A=", "x"), ("A='", "x"), ('A="', '\\"'), ("", "("), ("A_TOKEN=", "x")]
)
def test_a_line_of_any_length_is_looked_at_once(begin: str, part: str) -> None:
    long = begin + part * ((LARGEST - 100) // len(part))
    text = f"export A_TOKEN=va1ue-of-it SITE_MARKED='another one' && {long}\n"
    secrets = secrets_of(["SITE_MARKED"]).with_those_of({}, (), text)
    assert secrets.hide("got va1ue-of-it, another one") == "got ***, ***"
