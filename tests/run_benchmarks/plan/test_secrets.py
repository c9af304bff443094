"""A run's secrets: gathered once from its settings, hidden by value, and refused where they would be seen."""

from __future__ import annotations

import html
import json
import shlex
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from markupsafe import Markup

from run_benchmarks.plan.as_dict import plan_as_dict
from run_benchmarks.plan.redact import HIDDEN, redact_argv, redact_text
from run_benchmarks.plan.secrets import NO_SECRETS, Secrets, secrets_of
from run_benchmarks.stages.watch import Ended, Outcome
from tests.run_benchmarks.plan.test_bad_input import edit
from tests.run_benchmarks.plan.test_redact import SECRET_NAMES
from tests.run_benchmarks.plan.tree import TEST_CONF, Tree
from utils.records import Failure, FailureClass, Stage, Verdict

DOCKERFILE = "acme/docker_image/pytorch/Dockerfile"
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
SECRET = st.text(st.characters(exclude_categories=["Cs"]), min_size=6, max_size=30)
few = settings(
    max_examples=100, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.filter_too_much]
)


@few
@given(SECRET, SECRET, TEXT, TEXT)
@example("**abcd", "SECRET", "", "abcd")
@example("a'b\"c\\d", "123456", "'", '"')
def test_no_value_survives_in_any_spelling(secret: str, other: str, before: str, after: str) -> None:
    secrets = Secrets(held=frozenset({secret, other}))
    assume(secret in secrets.values)
    text = before + secret + after
    spellings = {
        "plain": (text, secret),
        "json": (json.dumps(text), json.dumps(secret)[1:-1]),
        "python": (repr(f"{text}'\""), repr(f"{secret}'\"")[1:-4]),
        "shell": (shlex.quote(text + "$"), secret.replace("'", "'\"'\"'")),
    }
    for shown, spelled in spellings.values():
        hidden = secrets.hide(shown)
        assert spelled not in hidden
        assert secrets.hide(hidden) == hidden


SPELLED = (
    lambda text: quote(text),
    lambda text: quote(text, safe="").lower() if text == text.lower() else quote_plus(text),
    quote_plus,
    html.escape,
    lambda text: str(Markup.escape(text)),
    lambda text: json.dumps(text).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"),
    lambda text: json.dumps(json.dumps(text)),
    lambda text: shlex.quote("sh -c " + shlex.quote(text)),
    lambda text: repr([repr(text)]),
    lambda text: repr(text.encode()),
    lambda text: ascii([text]),
    lambda text: text.encode("ascii", "backslashreplace").decode(),
    lambda text: json.dumps({"url": quote(text)}),
    lambda text: f"+ echo '{text}'" if "'" not in text else "+ echo '" + text.replace("'", "'\\''") + "'",
)


@pytest.mark.parametrize(
    "secret", ["pa\"ss'w\\ord7", "abc<def&ghi>9", "pässwörd-x12", "tok en with  blanks", "a/b+c=d?e%41f"]
)
@pytest.mark.parametrize("spelled", SPELLED)
def test_a_value_is_hidden_as_pages_urls_engines_and_nested_quotes_write_it(
    secret: str, spelled: Callable[[str], str]
) -> None:
    shown = Secrets(held=frozenset({secret})).hide(spelled(secret))
    assert HIDDEN in shown and spelled(secret).strip("'\"") not in shown


def test_names_are_hidden_and_none_is_lost() -> None:
    secrets = Secrets(held=frozenset({"open/sesame"}))
    facts = {"open/sesame": 1, "open%2Fsesame": 2, "*** 2": {"of open/sesame": ["open/sesame"]}, "loss": 3}
    shown = secrets.hide_in({"facts": facts})
    assert shown == {"facts": {"***": 1, "*** 2": 2, "*** 2 2": {"of ***": ["***"]}, "loss": 3}}
    assert secrets.hide_in({3: "open/sesame"}) == {3: "***"}
    assert list(Secrets(held=frozenset({"settings"})).hide_in({"settings": "settings"}, names=False)) == [
        "settings"
    ]


@few
@given(st.sets(st.text("ABC123 '\"", min_size=6), max_size=3), st.text("abc*.\n", max_size=40))
def test_what_holds_no_secret_stays_as_it_is(values: set[str], text: str) -> None:
    secrets = Secrets(held=frozenset(values))
    assert secrets.hide(text) == text
    assert secrets.hide_in({"a": [text, 1], "b": (text,)}) == {"a": [text, 1], "b": (text,)}


VALUE = st.text(st.characters(codec="ascii", categories=["L", "N", "P", "S", "Zs"]), max_size=20)


@few
@given(
    st.sampled_from([name for name in SECRET_NAMES if name.isupper()]), VALUE, st.text("ab, }", max_size=9)
)
def test_an_assigned_value_is_hidden_however_it_is_quoted(name: str, inner: str, after: str) -> None:
    value = f"Q{inner}Q"
    texts = [
        f"export {name}={shlex.quote(value)} {after}",
        f"-e {shlex.quote(f'{name}={value}')} {after}",
        json.dumps({name: value, "after": after}),
    ]
    for text in texts:
        hidden = redact_text(text)
        assert "Q" not in hidden
        assert after in hidden
        assert redact_text(hidden) == hidden
    assert redact_argv(["-e", f"{name}={value}", after]) == ["-e", f"{name}=***", after]


@pytest.mark.parametrize("value", ["abc", "12345", "3.14", "2024-01-01"])
def test_short_values_and_numbers_stay_where_nothing_is_assigned(value: str) -> None:
    secrets = secrets_of((), {"ACCE_CONTAINER_OPT": f"-e DB_PASS={value}"})
    assert secrets.hide(f"step {value}") == f"step {value}"
    assert secrets.hide(f"declare -x DB_PASS='{value}'") == "declare -x DB_PASS='***'"
    assert secrets.split_options(("-e", f"DB_PASS={value}"))[1] == {"DB_PASS": value}


def test_a_value_that_names_a_case_or_host_too_does_not_take_these_away() -> None:
    conf = {"CASES": {"bert:pytorch:X1:1:2:1": "/data"}, "ACCE_CONTAINER_OPT": "-e DB_PASS=pytorch"}
    assert secrets_of((), conf).hide("case bert:pytorch:X1:1:2:1") == "case bert:pytorch:X1:1:2:1"


def test_it_is_gathered_from_wherever_a_user_writes_it() -> None:
    key = "-----BEGIN KEY-----\nline-one\nline-two\n"
    conf = {
        "ACCE_CONTAINER_OPT": f"--env=A_PAT=in-option -eB_PWD='in two words' -e {shlex.quote(f'C_KEY={key}')}",
        "VENDORS": {"acme": {"IMAGE_BUILD_ARGS": {"D_AUTH": "in-vendors", "SITE": "by-mark"}}},
        "PIP_SOURCE": "https://bob:in%20url@host/simple",
        "UNKNOWN_SETTING_TOKEN": "in-setting",
    }
    secrets = secrets_of(["SITE"], conf).with_those_of(
        {"wandb_key": "in-parameter"}, ["--env", "E_TOKEN=in-vendor-py"], "export F_KEY='in the script'\n"
    )
    words = [
        *("in-option", "in two words", "line-one", "line-two", "in-vendors", "by-mark", "in%20url", "in url"),
        *("in-setting", "in-parameter", "in-vendor-py", "in the script"),
    ]
    assert [word for word in words if word in secrets.hide(f"say {word} here")] == []


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\\n"], ids=["newlines", "of Windows", "as one line"])
def test_of_a_secret_of_several_lines_each_is_one(ends: str) -> None:
    secrets = Secrets(
        held=frozenset({f"-----BEGIN KEY-----{ends}  first0line{ends}second+line{ends}end{ends}"})
    )
    assert secrets.hide("first0line\n    second+line, the end") == "***\n    ***, the end"


def test_a_value_that_a_log_wraps_is_one() -> None:
    secrets = Secrets(held=frozenset({"open sesame", "hunter22"}))
    shown = secrets.hide("say open se\n    same, hun\r\nter22 and\nhunter\n\n22")
    assert shown == "say ***, *** and\nhunter\n\n22"


def test_records_keep_their_types() -> None:
    failure = Failure(Verdict.FAILED, Stage.TRAIN, FailureClass.COMMAND_FAILED, "h", "sesame!", "a\nsesame!")
    outcome = Outcome({0: Ended(1, 1.0)}, False, {})
    secrets = Secrets(held=frozenset({"sesame!"}))
    hidden = secrets.hide_in((failure, outcome, 1.5, None))
    assert hidden == (
        Failure(Verdict.FAILED, Stage.TRAIN, FailureClass.COMMAND_FAILED, "h", "***", "a\n***"),
        outcome,
        1.5,
        None,
    )
    assert NO_SECRETS.hide_in(failure) is failure
    assert "sesame" not in repr(secrets)


URLS = [f"postgresql://bob:hunter22{sign}swordfish@h/db" for sign in ("#", "/", "?", "?x:", " ", "'", '"')]


@pytest.mark.parametrize("url", URLS)
def test_a_url_is_secret_whatever_its_password_holds(tree: Tree, url: str) -> None:
    option = shlex.quote(f"DATABASE_URL={url}")
    edit(
        tree,
        "test_conf.py",
        "",
        f"ACCE_CONTAINER_OPT = {f'-e {option} -e OPEN=1'!r}\nIMAGE_BUILD_ARGS = {{'REPO_URL': {url!r}}}\n",
    )
    plan = tree.load()
    (case,) = plan.cases
    kept, variables = plan.secrets.split_options(case.container_options)
    assert (kept, variables) == (("-e", "OPEN=1"), {"DATABASE_URL": url})
    assert plan.secrets.split(case.image_build_args) == ({}, {"REPO_URL": url})
    password = url[len("postgresql://bob:") : -len("@h/db")]
    assert plan.secrets.hide(f"say {password} here") == "say *** here"
    assert "swordfish" not in json.dumps(plan_as_dict(plan))


# ---- what is refused


def test_a_build_argument_that_is_such_a_url_is_refused_where_a_dockerfile_takes_it(tree: Tree) -> None:
    tree.write(DOCKERFILE, "FROM x\nARG REPO_URL\n")
    reports = refused(tree, f"IMAGE_BUILD_ARGS = {{'REPO_URL': {URLS[0]!r}}}\n")
    assert list(reports) == ["IMAGE_BUILD_ARGS['REPO_URL']"]
    assert "swordfish" not in str(reports)


def refused(tree: Tree, conf: str) -> dict[str, str]:
    """The names of the problems -> the reports of them."""
    edit(tree, "test_conf.py", "", conf)
    code, problems = tree.problems()
    assert code == 2
    return {problem.name: str(problem) for problem in problems}


def test_a_secret_in_an_option_that_is_no_variable_is_refused(tree: Tree) -> None:
    reports = refused(
        tree, "ACCE_CONTAINER_OPT = '--label LICENSE_KEY=hunter22 -e DB_PASS=swordfish -l x=swordfish'\n"
    )
    assert list(reports) == ["ACCE_CONTAINER_OPT"]
    assert "list of processes" in reports["ACCE_CONTAINER_OPT"]
    assert "hunter22" not in str(reports)
    assert "swordfish" not in str(reports)


@pytest.mark.parametrize(
    "options",
    [
        ["-e", "VENDOR_LICENSE=two words", "-e", "DB_PASS=swordfish"],
        ["--env=VENDOR_LICENSE=two words", "-e DB_PASS=swordfish"],
        [["VENDOR_LICENSE=two words"], "DB_PASS=swordfish"],
        {"-e": "VENDOR_LICENSE=two words", "--env": "DB_PASS=swordfish"},
    ],
)
def test_options_that_are_no_text_are_refused_without_what_is_secret_in_them(
    tree: Tree, options: object
) -> None:
    reports = refused(tree, f'SECRETS = ["VENDOR_LICENSE"]\nACCE_CONTAINER_OPT = {options!r}\n')
    assert 'write text, e.g. " --gpus all"' in reports["ACCE_CONTAINER_OPT"]
    assert "two words" not in str(reports) and "swordfish" not in str(reports)


@pytest.mark.parametrize(
    "options",
    [
        *("-v /root/hf_token:/run/hf_token:ro", "--volume=/run/secrets/db_password:/x:ro"),
        *("-v /opt/credentials.json:/c.json", "-v /data/token_cache:/data/token_cache -v api-key:/x"),
        *("--add-host=token-server:10.0.0.1", "--add-host=my-auth:10.0.0.1"),
        "--mount type=bind,source=/root/hf_token,target=/run/hf_token,readonly",
        "--label x.token-kind=bpe --label=auth.password-policy=none",
    ],
)
def test_a_file_a_folder_or_a_host_that_is_named_like_a_secret_is_none(tree: Tree, options: str) -> None:
    edit(tree, "test_conf.py", "", f"ACCE_CONTAINER_OPT = '{options} -e DB_PASS=a'\n")
    plan = tree.load()
    assert plan.secrets.held == {"a"}
    shown = plan_as_dict(plan)["cases"][0]["container_options"]
    assert shown[: len(options.split())] == options.split()


@pytest.mark.parametrize(
    "options",
    [
        *("--mount type=volume,volume-opt=o=password=hunter22", "--header='X-Auth-Token: hunter22'"),
        "--mount 'type=volume,\"volume-opt=o=username=u,pass=hunter22\"'",
        """--annotation='{"api_key":"hunter22"}'""",
    ],
)
def test_a_secret_within_an_option_is_refused(tree: Tree, options: str) -> None:
    reports = refused(tree, f"ACCE_CONTAINER_OPT = {options!r}\n")
    assert "list of processes" in reports["ACCE_CONTAINER_OPT"]
    assert "hunter22" not in str(reports)


def test_a_secret_variable_has_a_name_that_a_shell_can_set(tree: Tree) -> None:
    reports = refused(tree, "ACCE_CONTAINER_OPT = '-e MY-TOKEN=hunter22 -e MY-MODE=fast'\n")
    assert "MY-TOKEN is secret" in reports["ACCE_CONTAINER_OPT"]
    assert "hunter22" not in str(reports)


def test_a_secret_that_a_dockerfile_takes_as_an_argument_is_refused(tree: Tree) -> None:
    tree.write(DOCKERFILE, "FROM x\nARG A=1 REPO_TOKEN\n  arg \\\n http_proxy\nRUN true\n")
    reports = refused(
        tree, "IMAGE_BUILD_ARGS = {'REPO_TOKEN': 'hunter2', 'http_proxy': 'http://u:hunter2@p', 'A': 'b'}\n"
    )
    assert "--mount=type=secret,id=REPO_TOKEN" in reports["IMAGE_BUILD_ARGS['REPO_TOKEN']"]
    assert "remove that line" in reports["IMAGE_BUILD_ARGS['http_proxy']"]
    assert len(reports) == 2
    assert "hunter2" not in str(reports)


def test_a_mark_that_marks_nothing_is_refused(tree: Tree) -> None:
    reports = refused(tree, "SECRETS = ['SIET']\nIMAGE_BUILD_ARGS = {'SITE': 'x'}\n")
    assert "did you mean SITE?" in reports["SECRETS[0]"]


@pytest.mark.parametrize("marks", ["'SITE'", "['a b']", "['']", "[1]"])
def test_marks_are_names(tree: Tree, marks: str) -> None:
    assert next(iter(refused(tree, f"SECRETS = {marks}\n"))).startswith("SECRETS")


@pytest.mark.parametrize(
    "line",
    [
        'ACCE_CONTAINER_OPT = "-e X_API_KEY=\'hunter22 and more"\n',
        "ACCE_CONTAINER_OPT = ['-e', 'LICENSE_KEY=hunter22 and more']\n",
        "IMAGE_BUILD_ARGS = {'LICENSE_KEY': ['hunter22 and more']}\n",
        "IMAGE_BUILD_ARGS = {'SITE': 5, 'OTHER': 'hunter22 and more\\n'}\nSECRETS = ['OTHER']\n",
        "LICENSE_KEY = 'hunter22 and more'\n",
        "ACCE_CONTAINER_OPT = \"-e X_API_KEY='hunter22 and more\n",  # a syntax error shows its line
        "LICENSE_KEY = 'hunter22 and more' + 1\n",  # and so does what is raised
        "IMAGE_BUILD_ARGS = {'LICENSE_KEY': 'hunter22 and more', 'N': int('x')}\n",
        "IMAGE_BUILD_ARGS = [('LICENSE_KEY', 'hunter22 and more')]\n",
        "IMAGE_BUILD_ARGS = [{'LICENSE_KEY': 'hunter22 and more'}]\n",
        "ACCE_CONTAINER_OPT = [['LICENSE_KEY', 'hunter22 and more']]\n",
        "LICENSE_KEY = 'hunter22 and more'\nraise ValueError('it is ' + LICENSE_KEY)\n",
        "SECRETS = ['SITE']\nSITE = 'hunter22 and more'\nassert not SITE, SITE\n",
    ],
)
def test_a_wrong_setting_is_reported_without_its_secret(tree: Tree, line: str) -> None:
    tree.configure(test_conf=TEST_CONF + line)
    _, problems = tree.problems()
    text = "\n".join(map(str, problems))
    assert "hunter22" not in text
    assert "more" not in text
