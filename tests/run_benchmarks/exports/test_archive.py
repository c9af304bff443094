"""The archive of a run: whole, checksummed, the same each time, and without a secret that was planted anywhere."""

from __future__ import annotations

import base64
import io
import json
import os
import subprocess
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from run_benchmarks.exports import redaction as redaction_module
from run_benchmarks.exports import secrets_in_run, unpacking
from run_benchmarks.exports.archive import export_archive
from run_benchmarks.exports.redaction import Redaction, Searched, secrets_here, values_in
from run_benchmarks.exports.unpacking import unpack
from run_benchmarks.plan.secrets import NO_SECRETS, Secrets, by_name_alone
from run_benchmarks.results.load import load_run
from run_benchmarks.results.rescore import rescore
from run_benchmarks.results.round_result import RoundResult
from run_benchmarks.stages.tree import pack_tree
from tests.run_benchmarks.exports.demo_run import CASE, change_json, copied, rank_log
from utils.errors import FlagPerfError

TRAINING = Path(__file__).resolve().parents[3] / "training"
SCRIPT = "environment_variables.sh"
# Each is told in one place alone, and stands everywhere: by what it is told it must be hidden in all.
SECRETS = {
    "setting": "st4ndard-setting-7f",  # of test_conf.py, by SECRETS
    "environment": "env/ironment+9a",  # of this process, by its variable's name
    "options": "opt10ns-of-the-engine",  # of the container's options
    "pip": "p1p-password",  # the user of a URL in PIP_SOURCE
    "log": "sh0wn-in-a-log",  # what a rank printed: HF_TOKEN=...
    "build": "bu1ld-argument-55",  # what a build printed
    "script": "set-by-the-scr1pt",  # of the case's environment script, in the checkout
    "json": "j5on value, with \"quotes\" and 'more'",  # a parameter's, in plan.json
    "key": base64.b64encode(b"a line of a private key, forty of it").decode(),
}


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Today's configuration; the case's vendor need not be there."""
    folder = tmp_path / "config"
    folder.mkdir()
    (folder / "cluster_conf.py").write_text('HOSTS = ["localhost"]\n')
    (folder / "test_conf.py").write_text(
        f"VENDOR = 'acme'\nSECRETS = ['SITE']\nIMAGE_BUILD_ARGS = {{'SITE': {SECRETS['setting']!r}}}\n"
        f"ACCE_CONTAINER_OPT = '-e DB_PASS={SECRETS['options']}'\n"
        f"PIP_SOURCE = 'https://me:{SECRETS['pip']}@mirror.example.org/simple'\nCASES = {{}}\n"
    )
    monkeypatch.setenv("SITE_API_KEY", SECRETS["environment"])
    return folder


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A run in which every secret stands in every kind of file, in a file's name, and in the code that ran."""
    run = copied(tmp_path)
    everything = " ".join(SECRETS.values())
    node = rank_log(run).parent
    texts = {
        rank_log(run): f"export HF_TOKEN={SECRETS['log']}\nlogged in with {everything}\n",
        node / "start_pytorch_task.log": f"{everything}\n",
        node / "monitor.log": f"cannot log in: {everything}\n",
        node / "telemetry.jsonl": json.dumps({"kind": "source", "reason": everything}) + "\n",
        run / "flagperf_run.log": f"{everything}\n",
        run / "summary.md": f"| {everything} |\n",
        run
        / CASE
        / "image_build_localhost.log": f"RUN REPO_PASSWORD={SECRETS['build']} make\n{everything}\n",
        run / "journal.jsonl": json.dumps({"event": "note", "text": everything}) + "\n",
        node
        / "key.log": f"-----BEGIN RSA PRIVATE KEY-----\n{SECRETS['key']}\n-----END RSA PRIVATE KEY-----\n",
        node / f"core.{SECRETS['log']}.txt": f"\udcff{everything}\n",
    }
    for path, text in texts.items():
        with path.open("a", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
    change_json(
        run / "plan.json",
        lambda plan: plan["cases"][0]["parameters"].update(my_password=SECRETS["json"], note=everything),
    )
    change_json(run / "plan.json", lambda plan: plan["cases"][0]["files"].update(environment_script=SCRIPT))
    change_json(run / "plan.json", lambda plan: plan["cases"][0].update(container_options=[everything]))
    change_json(run / CASE / "round1" / "round.json", lambda seen: seen.update(notes=[everything]))
    return run


def contents(archive: Path) -> dict[str, bytes]:
    with tarfile.open(archive) as tar:
        files = {member.name: tar.extractfile(member) for member in tar}
        return {name: file.read() for name, file in files.items() if file}


def shown(secret: str, text: str) -> bool:
    return secret in text or secret in text.replace("\\", "")


def test_no_secret_that_was_planted_comes_out_of_it(planted: Path, config: Path, tmp_path: Path) -> None:
    output, code = tmp_path / "run.tar.gz", tmp_path / "code"
    code.mkdir()
    (code / SCRIPT).write_text(f"export CASE_API_KEY={SECRETS['script']}\n")
    notes = export_archive(planted, output, secrets_here(config, TRAINING), code)
    files = contents(output)
    leaks = {
        (name, what)
        for name, content in files.items()
        for what, secret in SECRETS.items()
        if shown(secret, content.decode(errors="replace")) or shown(secret, name)
    }
    assert leaks == set()
    about = json.loads(files["archive.json"])
    assert {Path(name).name for name in about["hidden"]} >= {
        "rank0.out.log", "start_pytorch_task.log", "monitor.log", "telemetry.jsonl", "flagperf_run.log", "summary.md",
        "image_build_localhost.log", "journal.jsonl", "key.log", "core.***.txt", "plan.json", "round.json",
    }  # fmt: skip
    assert any("secrets were hidden in" in note for note in notes)
    for name, content in files.items():
        if name.endswith(".json"):
            json.loads(content)
    assert b"HF_TOKEN=***\n" in files[f"run/{CASE}/round1/localhost_noderank0/rank0.out.log"]


def test_what_is_no_secret_stays_to_the_last_byte_and_is_judged_the_same(tmp_path: Path) -> None:
    run, output = copied(tmp_path), tmp_path / "run.tar.gz"
    assert [note for note in export_archive(run, output, NO_SECRETS, TRAINING) if "code/" not in note] == []
    files = contents(output)
    here = {f"run/{path.relative_to(run)}": path.read_bytes() for path in run.rglob("*") if path.is_file()}
    assert {name: files[name] for name in here} == here
    (tmp_path / "out").mkdir()
    assert unpack(output, tmp_path / "out")["run"] == run.name
    then, now = load_run(run, by_name_alone), load_run(tmp_path / "out" / "run", by_name_alone)
    assert [_values(each) for each in now.results] == [_values(each) for each in then.results]
    assert not any(each.reason for each in rescore(tmp_path / "out" / "run", by_name_alone))
    checked = ["sha256sum", "--check", "--quiet", "SHA256SUMS"]
    assert subprocess.run(checked, cwd=tmp_path / "out", check=False).returncode == 0


def test_a_line_of_a_rank_hides_nothing_that_the_run_is_read_by(tmp_path: Path) -> None:
    run = copied(tmp_path)
    names = ["rank0.out.log", "round1", "noderank0", "[PerfLog]", "e2e_time", "beta_1", run.name, CASE]
    with rank_log(run).open("a") as log:
        log.writelines(f"my_token={name}\n" for name in [*names, "2026-11-22T08:20:28+00:00"])
        log.write("my_token=a-s3cret\nit is a-s3cret\n")
    rank_log(run).with_name("telemetry.jsonl").touch()
    # of the controller's own values each counts, but for such names
    secrets = Secrets(held=frozenset({"telemetry.jsonl", "rank0.out.log"}))
    export_archive(run, tmp_path / "run.tar.gz", secrets, TRAINING)
    (tmp_path / "out").mkdir()
    unpack(tmp_path / "run.tar.gz", tmp_path / "out")
    judged = [rescore(folder, by_name_alone)[0].after for folder in (run, tmp_path / "out" / "run")]
    assert judged[0].verdict and judged[0].verdict == judged[1].verdict
    assert _values(judged[0]) == _values(judged[1])
    assert rank_log(tmp_path / "out" / "run").read_text().endswith("my_token=***\nit is ***\n")
    assert (rank_log(tmp_path / "out" / "run").parent / "telemetry.jsonl").is_file()


def test_a_file_that_tells_too_many_values_is_left_out_and_the_rest_are_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secrets_in_run, "MOST_OF_A_FILE", 300)
    run = copied(tmp_path)
    flood = rank_log(run).with_name("a_flood.log")
    flood.write_text("".join(f"x_token=va1ue-of-{number:04}\n" for number in range(50)))
    rank_log(run).with_name("later.log").write_text("my_token=a-s3cret\nit is a-s3cret and va1ue-of-0003\n")
    notes = export_archive(run, tmp_path / "run.tar.gz", NO_SECRETS, TRAINING)
    path = f"run/{flood.relative_to(run).as_posix()}"
    assert any(note.startswith(f"left out: {path}: it gives names of secrets more than") for note in notes)
    files = contents(tmp_path / "run.tar.gz")
    assert path not in files
    assert files[path.replace("a_flood", "later")] == b"my_token=***\nit is *** and ***\n"


@pytest.mark.parametrize(
    ("line", "hidden"),
    [
        ("export SITE=h8Kd_92*xQz7\n", "export SITE=***\n"),
        ('{"SITE": "h8Kd_92*xQz7", "lr": 1}\n', '{"SITE": "***", "lr": 1}\n'),
        ('{"environment": {"SITE": ["h8Kd_92*xQz7"]}}\n', '{"environment": {"SITE": ["***"]}}\n'),
    ],
)
def test_a_marked_name_is_one_of_a_secret_also_where_a_node_names_no_other(
    line: str, hidden: str, tmp_path: Path
) -> None:
    """As in a run, where what it is given is hidden wherever it stands."""
    run = copied(tmp_path)
    for name in ("marked.log", "nothing.log"):
        rank_log(run).with_name(name).write_text("it is h8Kd_92*xQz7\n")
    rank_log(run).with_name("marked.log").write_text(line)
    export_archive(run, tmp_path / "run.tar.gz", Secrets(marked=frozenset({"SITE"})), TRAINING)
    files, node = contents(tmp_path / "run.tar.gz"), f"run/{CASE}/round1/localhost_noderank0"
    assert files[f"{node}/marked.log"].decode() == hidden
    assert files[f"{node}/nothing.log"] == b"it is ***\n"


def test_the_names_of_packages_are_no_names_of_secrets(tmp_path: Path) -> None:
    run = copied(tmp_path)
    packages = {"base-passwd": "3.6.1-long", "passwd": "1:4.13+dfsg1-1", "libsubid4": "1:4.13+dfsg1-1"}
    text = json.dumps({"software": {"system_packages": packages}}, indent=2)
    (rank_log(run).parent / "inventory.json").write_text(text)
    notes = export_archive(run, tmp_path / "run.tar.gz", NO_SECRETS, TRAINING)
    assert not any("hidden" in note for note in notes)
    name = f"run/{CASE}/round1/localhost_noderank0/inventory.json"
    assert contents(tmp_path / "run.tar.gz")[name].decode() == text


def test_the_same_run_gives_the_same_bytes(tmp_path: Path) -> None:
    run = copied(tmp_path)
    for name in ("a", "b"):
        export_archive(run, tmp_path / f"{name}.tar.gz", NO_SECRETS, TRAINING)
        os.utime(run / "plan.json", (1, 1))
    assert (tmp_path / "a.tar.gz").read_bytes() == (tmp_path / "b.tar.gz").read_bytes()


def test_links_pipes_and_what_is_no_text_are_named_and_left_out(tmp_path: Path) -> None:
    run, node = copied(tmp_path), rank_log(tmp_path / "run20261122082028").parent
    (tmp_path / "elsewhere").write_text("mine")
    (node / "link.log").symlink_to(tmp_path / "elsewhere")
    (node / "folder").symlink_to(tmp_path)
    os.mkfifo(node / "pipe.log")
    (node / "core").write_bytes(b"\x7fELF\0\0")
    (node / "two\nlines").write_text("x")
    export_archive(run, tmp_path / "run.tar.gz", NO_SECRETS, TRAINING)
    files = contents(tmp_path / "run.tar.gz")
    left_out = json.loads(files["archive.json"])["left_out"]
    names = {Path(name).name: reason for name, reason in left_out.items()}
    assert names["link.log"] == names["folder"] == "it is a link"
    assert names["pipe.log"] == "it is no plain file" and "no text" in names["core"]
    assert names["two\\nlines"] == "its name is no text of one line"
    assert not any(content == b"mine" for content in files.values())


def test_a_path_that_the_plainest_archive_has_no_room_for_is_named_and_left_out(tmp_path: Path) -> None:
    run = copied(tmp_path)
    long = [rank_log(run).with_name("n" * length) for length in (100, 101)]
    for path in long:
        path.write_text("text\n")
    notes = export_archive(run, tmp_path / "run.tar.gz", NO_SECRETS, TRAINING)
    names = [f"run/{path.relative_to(run).as_posix()}" for path in long]
    assert f"left out: {names[1]}: its path is too long for an archive" in notes
    (tmp_path / "out").mkdir()
    unpack(tmp_path / "run.tar.gz", tmp_path / "out")
    assert [(tmp_path / "out" / name).is_file() for name in names] == [True, False]


def test_the_code_that_ran_is_in_it_where_the_checkout_still_has_it(tmp_path: Path) -> None:
    code = tmp_path / "training"
    files = {
        "cpu/vendor.py": "DEVICE_TYPE = 'cpu'\n",
        "cpu/docker_image/pytorch/Dockerfile": "FROM scratch\n",
        "cpu/bert-pytorch/config/environment_variables.sh": "export HF_TOKEN=t0ken-of-the-case\n",
        "benchmarks/bert/pytorch/case.py": "token = tokens[next_token]\n",
        "benchmarks/glm/pytorch/case.py": "",
        "benchmarks/driver/session.py": "",
        "utils/events.py": "",
    }
    for name, text in files.items():
        (code / name).parent.mkdir(parents=True, exist_ok=True)
        (code / name).write_text(text)
    run = copied(tmp_path)
    digest = pack_tree(code).digest
    _say_which_tree(run, digest)
    export_archive(run, tmp_path / "then.tar.gz", NO_SECRETS, code)
    archived = contents(tmp_path / "then.tar.gz")
    kept = {name.removeprefix("code/") for name in archived if name.startswith("code/")}
    assert kept == files.keys() - {"benchmarks/glm/pytorch/case.py"}
    assert archived["code/cpu/bert-pytorch/config/environment_variables.sh"] == b"export HF_TOKEN=***\n"
    assert archived["code/benchmarks/bert/pytorch/case.py"] == b"token = tokens[next_token]\n"
    (code / "utils" / "events.py").write_text("changed")
    export_archive(run, tmp_path / "now.tar.gz", NO_SECRETS, code)
    about = json.loads(contents(tmp_path / "now.tar.gz")["archive.json"])
    assert about["tree"] == digest and "not what ran any more" in about["left_out"]["code/"]


PEM = f"-----BEGIN OPENSSH PRIVATE KEY-----\n{SECRETS['key']}\nshort=\n-----END OPENSSH PRIVATE KEY-----\n"
CODE_WITH_SECRETS = {
    "cpu/docker_image/pytorch/Dockerfile": (
        "FROM x\nENV HF_TOKEN=s3cret-1\nARG INDEX=https://u:s3cret-2@h/simple\nENV GH_TOKEN s3cret-3\n",
        "FROM x\nENV HF_TOKEN=***\nARG INDEX=https://***@h/simple\nENV GH_TOKEN ***\n",
    ),
    "cpu/requirements.txt": (
        "--index-url https://bob:s3cret@h/simple\n",
        "--index-url https://***@h/simple\n",
    ),
    "cpu/pip.conf": ("[global]\nindex-url=https://u:s3cret@h/s\n", "[global]\nindex-url=https://***@h/s\n"),
    "cpu/settings.json": ('{"password": "a s3cret"}', '{\n  "password": "***"\n}\n'),
    "cpu/id_rsa": (PEM, "-----BEGIN OPENSSH PRIVATE KEY-----***\n-----END OPENSSH PRIVATE KEY-----\n"),
    "cpu/x.py": (
        f"os.environ['WANDB_API_KEY']='s3cret-1'\nlogin(token=\"hf_s3cret\")\nclone('https://u:s3cret@h/x')\n{PEM}",
        "os.environ['WANDB_API_KEY']='***'\nlogin(token=\"***\")\nclone('https://***@h/x')\n"
        "-----BEGIN OPENSSH PRIVATE KEY-----***\n-----END OPENSSH PRIVATE KEY-----\n",
    ),
}
PROGRAM = """\
token = tokens[next_token]  # token: w1ord1
mask_token, pad_token = "[gMASK]", '<pad_0>'
url = f"https://{user}:{password}@{host}:8080/x"
parser.add_argument("--auth_token", type=str, default=None, help="see https://example.org/a@2")
def forward(self, key: Tensor2, x: "int") -> "b:c@d": return self.key_1[a:b@c]
"""


@pytest.mark.parametrize("name", CODE_WITH_SECRETS)
def test_secrets_in_code_are_hidden(name: str) -> None:
    before, after = CODE_WITH_SECRETS[name]
    assert Redaction(NO_SECRETS).code(name, before) == after


def test_a_programs_own_words_stay() -> None:
    assert Redaction(NO_SECRETS).code("cpu/x.py", PROGRAM) == PROGRAM


def test_a_value_is_hidden_in_markdown_however_it_is_escaped() -> None:
    redaction = Redaction(Secrets(held=frozenset({"h8Kd_92*xQz7"})))
    for line in ("| `x` | used h8Kd\\_92\\*xQz7 |", "used h8Kd_92\\*xQz7", "used h8Kd_92*xQz7"):
        assert "Kd" not in redaction.markdown(line) and "used ***" in redaction.markdown(line)
    assert redaction.markdown("a\\_b \\| c") == "a\\_b \\| c"


def test_a_document_is_looked_through_as_what_it_holds() -> None:
    text = json.dumps({"evidence": "machine h\n  password hunterhunter\nend"})
    shown = json.loads(Redaction(NO_SECRETS).document(text))
    assert shown == {"evidence": "machine h\n  password ***\nend"}
    assert Redaction(NO_SECRETS).document('{"a":  1}') == '{"a":  1}'


@pytest.mark.parametrize("depth", [300, 900])
def test_json_that_is_too_deep_to_be_looked_through_is_a_text(depth: int) -> None:
    line = f'{{"HF_TOKEN": "s3cret9", "a": {"[" * depth}{"]" * depth}}}'
    assert list(values_in([line], Searched())) == ["s3cret9"]
    assert Redaction(NO_SECRETS).line(line) == line.replace("s3cret9", "***")


LINES = st.sampled_from(
    [
        "",
        "step 1: loss 2.5",
        "HF_TOKEN=s3cret9",
        "HF_TOKEN=",
        "s3cret9",
        '{"HF_TOKEN": "s3cret9", "lr": 1}',
        "password: 'two words",
        "end of them'",
        "the value h8Kd_92*xQz7 in a line",
        "https://me:pw12345@host/simple",
        "docker login -u me -p hunter22",
        "password hunter22",
        "***",
    ]
)


@given(st.lists(LINES, max_size=60))
def test_lines_are_searched_together_and_hidden_as_if_each_stood_alone(lines: list[str]) -> None:
    redaction = Redaction(Secrets(held=frozenset({"h8Kd_92*xQz7"})))
    text = "".join(f"{line}\n" for line in lines)
    parts = Searched().parts(text, lambda part: redaction.line(part) == part)
    hidden = "".join(part if is_clean else redaction.line(part) for part, is_clean in parts)
    assert hidden == "".join(redaction.line(f"{line}\n") for line in lines)
    alone = [value for line in lines for value in values_in([f"{line}\n"], Searched())]
    assert list(values_in([text], Searched())) == alone


def test_lines_without_a_secret_cost_no_more_than_to_read_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three MB of empty lines took 43 s, each being searched by itself."""
    searched: list[int] = []
    monkeypatch.setattr(redaction_module, "redact_text", lambda text, _: searched.append(len(text)) or text)
    run = copied(tmp_path)
    log = rank_log(run)
    log.write_bytes(log.read_bytes() + b"\n" * 10**6)
    export_archive(run, tmp_path / "run.tar.gz", NO_SECRETS, tmp_path)
    assert len(searched) < 10_000


def test_a_flood_of_secrets_costs_the_files_of_its_own_node_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a million lines of one rank took other hosts' logs out of the archive, with a false reason."""
    monkeypatch.setattr(redaction_module, "MOST_LINES", 100)
    run = copied(tmp_path)
    log = rank_log(run)
    other = log.parents[1] / "other_noderank1" / "rank1.out.log"
    other.parent.mkdir()
    other.write_text("password=hunter2hunter2\n")
    (log.parent / "a.log").write_bytes(b"HF_TOKEN=s3cret9\n" * 200)
    notes = export_archive(run, tmp_path / "run.tar.gz", NO_SECRETS, tmp_path)
    left = [note for note in notes if note.startswith("left out") and "/a.log" in note]
    assert len(left) == 1 and "its node's files name secrets in more than" in left[0]
    name = f"run/{CASE}/round1/other_noderank1/rank1.out.log"
    assert b"hunter2" not in contents(tmp_path / "run.tar.gz")[name]


def test_a_flood_of_values_costs_the_node_that_has_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One rank's values used up what there was for all: another host's log was left out for two lines."""
    monkeypatch.setattr(secrets_in_run, "MOST_OF_A_RUN", 2_000)
    run = copied(tmp_path)
    log = rank_log(run)
    for number in range(4):
        lines = (f"token=value-{number}-{line:04}\n" for line in range(100))
        (log.parent / f"x{number}.log").write_text("".join(lines))
    other = log.parents[1] / "other_noderank1" / "rank1.out.log"
    other.parent.mkdir()
    other.write_text("password=hunter2hunter2\n")
    notes = export_archive(run, tmp_path / "run.tar.gz", NO_SECRETS, tmp_path)
    packed = contents(tmp_path / "run.tar.gz")
    assert packed[f"run/{other.relative_to(run)}"] == b"password=***\n"
    assert sum("/x" in note and note.startswith("left out") for note in notes) == 4
    assert f"run/{log.relative_to(run)}" in packed, "what names nothing stays"


def test_of_a_file_that_names_no_secret_the_values_of_others_are_hidden(tmp_path: Path) -> None:
    run = copied(tmp_path)
    log = rank_log(run)
    (log.parent / "a.log").write_text("HF_TOKEN=s3cret9\n")
    (log.parent / "b.log").write_text("it said s3cret9\n" + "a line\n" * 10_000)
    export_archive(run, tmp_path / "run.tar.gz", NO_SECRETS, tmp_path)
    packed = contents(tmp_path / "run.tar.gz")
    assert packed[f"run/{log.parent.relative_to(run)}/b.log"].startswith(b"it said ***\na line\n")


def test_of_a_key_with_headers_every_line_is_had() -> None:
    key = SECRETS["key"]
    for head in ("RSA PRIVATE KEY", "PGP PRIVATE KEY BLOCK"):
        text = (
            f"-----BEGIN {head}-----\nDEK-Info: AES-128-CBC,00\n\n{key}\n-----END {head}-----\n{'a' * 64}\n"
        )
        assert list(values_in(text.splitlines(keepends=True), Searched())) == [key]


def _say_which_tree(run: Path, digest: str) -> None:
    result = load_run(run, by_name_alone).results[0].as_dict()
    result["provenance"] = {"harness": {"tree": digest}}
    (run / CASE / "round1" / "result.json").write_text(json.dumps(result))


def _values(result: RoundResult) -> dict[str, float | None]:
    return {name: figure.value for name, figure in result.figures.items()}


# Headers that announce a name, other headers, or holes: of 1 GiB, of which nothing need be there.
HEADERS = {
    "pax": tarfile.XHDTYPE,
    "global": tarfile.XGLTYPE,
    "name": tarfile.GNUTYPE_LONGNAME,
    "target": tarfile.GNUTYPE_LONGLINK,
    "sparse": tarfile.GNUTYPE_SPARSE,
}


def _altered(archive: Path, change: str) -> None:
    """Write `archive` anew with something wrong in it."""
    files = contents(archive)
    first = "run/plan.json"
    members = [(tarfile.TarInfo(name), content) for name, content in files.items()]
    extra = tarfile.TarInfo("run/more")
    if change == "content":
        members = [(each, content + b" " if each.name == first else content) for each, content in members]
    elif change == "missing":
        members = [member for member in members if member[0].name != first]
    elif change == "more":
        members.append((extra, b"x"))
    elif change == "twice":
        members.append(next(member for member in members if member[0].name == first))
    elif change == "link":
        extra.type, extra.linkname = tarfile.SYMTYPE, "/etc/passwd"
        members.append((extra, b""))
    elif change == "above":
        extra.name = "../more"
        members.append((extra, b"x"))
    elif change == "absolute":
        extra.name = "/etc/hostname"
        members.append((extra, b"x"))
    elif change == "large":
        extra.size = 2**31
    elif change in HEADERS:
        extra.type, extra.size = HEADERS[change], 2**30
    elif change == "lines":
        members = [
            (each, b"\n" * 2**20 if each.name == "SHA256SUMS" else content) for each, content in members
        ]
    elif change == "sums":
        members = [member for member in members if member[0].name != "SHA256SUMS"]
    with tarfile.open(archive, "w:gz") as tar:
        for member, content in members:
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        if change in ("large", *HEADERS):
            tar.fileobj.write(extra.tobuf(tarfile.GNU_FORMAT))  # type: ignore[union-attr]
    if change == "cut":
        archive.write_bytes(archive.read_bytes()[:2000])


def test_a_small_archive_fills_no_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two megabytes of zeros, packed, were 2 GiB."""
    monkeypatch.setattr(unpacking, "SMALL", 2**20)
    archive = tmp_path / "run.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        member = tarfile.TarInfo("run/zeros.log")
        member.size = 8 * 2**20
        tar.addfile(member, io.BytesIO(bytes(member.size)))
    (tmp_path / "out").mkdir()
    with pytest.raises(FlagPerfError, match="larger than any archive of a run, from 'run/zeros"):
        unpack(archive, tmp_path / "out")
    assert not (tmp_path / "out" / "run").exists()


def test_a_number_under_a_secrets_name_is_hidden() -> None:
    before = {
        "door_pin": 1,
        "bmc_password": 483920,
        "api_token": True,
        "max_tokens": 512,
        "db_pass": [0.25, 7],
    }
    hidden = {"bmc_password": "***", "db_pass": ["***", "***"]}
    assert Redaction(NO_SECRETS).plain(before) == {**before, **hidden}


def test_a_pipe_is_no_archive_and_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "run.tar.gz")
    with pytest.raises(FlagPerfError, match="is no file"):
        unpack(tmp_path / "run.tar.gz", tmp_path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("content", "altered: SHA256SUMS does not fit 'run/plan.json'"),
        ("missing", "does not fit 'run/plan.json'"),
        ("more", "does not fit 'run/more'"),
        ("twice", "stands in it twice"),
        ("link", "something else than a file: 'run/more'"),
        ("above", "'../more' is no path below a folder"),
        ("absolute", "'/etc/hostname' is no path below a folder"),
        ("large", "larger than any archive"),
        ("sums", "it has no SHA256SUMS"),
        ("lines", "SHA256SUMS does not fit its form"),
        *((header, "something else than a file: 'run/more'") for header in HEADERS),
        ("cut", "cannot be unpacked"),
    ],
)
def test_an_archive_that_was_altered_or_is_hostile_is_refused(change: str, said: str, tmp_path: Path) -> None:
    archive = tmp_path / "run.tar.gz"
    export_archive(copied(tmp_path), archive, NO_SECRETS, TRAINING)
    _altered(archive, change)
    (tmp_path / "inner" / "out").mkdir(parents=True)
    with pytest.raises(FlagPerfError, match=said):
        unpack(archive, tmp_path / "inner" / "out")
    assert [path.name for path in (tmp_path / "inner").iterdir()] == ["out"]
