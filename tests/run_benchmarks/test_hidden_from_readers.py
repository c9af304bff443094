"""What a run hid of its logs is hidden, too, by what shows it afterwards, from the logs that name the secrets."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from run_benchmarks.exports.redaction import shown_here
from run_benchmarks.history.index import Index
from run_benchmarks.history.query import Query, select
from run_benchmarks.history.site import make_site
from run_benchmarks.plan.secrets import Secrets, by_name_alone
from tests.ports import reserved_port
from tests.run_benchmarks.whole_run import SCRIPT, WholeRun, make_whole_run
from tests.run_benchmarks.written_run import write_run

SECRET = "plain77words"
NAMED = "other88words"  # which no configuration has, and which the task assigns to the name of a secret
TELLING = f"""
import json, os
node = Path(os.readlink("/proc/self/fd/1")).parent
word = os.environ["SITE_TOKEN"]
about = dict(time_ms=int(time.time() * 1000), source="source " + word)
with (node / "telemetry.jsonl").open("a") as file:
    print(json.dumps(dict(kind="source", scope="node", interval_s=1.0, note=word, reason=word, **about)), file=file)
    reading = dict(devices=["device " + word], readings=dict(power_w=[5.0]))
    print(json.dumps(dict(kind="tick", error=[None], **reading, **about)), file=file)
raise ValueError("cannot log in with " + word + ", PGPASSWORD={NAMED}")
"""


@pytest.fixture
def whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WholeRun]:
    """A run that failed, and whose controller died before it had written how."""
    with reserved_port() as port:
        made = make_whole_run(tmp_path, port, monkeypatch)
        head, behaviour, _ = SCRIPT.partition('"behaviour").read_text()\n')
        made.tree.write("benchmarks/toy/pytorch/run_pretraining.py", head + behaviour + TELLING)
        exports = f"export SITE_TOKEN={shlex.quote(SECRET)}\n"
        made.tree.write("acme/toy-pytorch/config/environment_variables.sh", exports)
        assert made.main() == 1
        yield made


def lose_results(folder: Path) -> None:
    for path in (*folder.glob("*/round1/result.json"), *folder.glob("summary.*"), folder / "report.html"):
        path.unlink(missing_ok=True)


@pytest.mark.parametrize("is_torn", [False, True])
def test_what_is_shown_of_a_run_has_no_secret_of_its_configuration(
    whole: WholeRun, is_torn: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    if is_torn:
        lose_results(whole.result)
    for verb in (["show"], ["show", "--json"], ["show", "--rescore"], ["status"], ["report"]):
        assert whole.main(*verb) == 0
    said = capsys.readouterr().out
    assert "cannot log in with ***" in said
    assert SECRET not in said
    assert SECRET not in (whole.result / "report.html").read_text()
    index = Index(whole.result.parent, lambda: shown_here(whole.tree.config, whole.tree.training))
    index.refresh()
    assert SECRET not in str(select(index, Query()))
    client = TestClient(make_site(index, None, 8640), base_url="http://127.0.0.1:8640")
    page = client.get(f"/run/{select(index, Query())[0].key}").text
    assert "cannot log in with" in page
    assert SECRET not in page


def test_a_short_secret_beside_no_other_is_hidden_where_it_is_assigned(
    whole: WholeRun, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(whole.result)
    telling = 'raise ValueError("SITE_PASSWORD=ab12, SITE: 12345, ab12")'
    script = whole.tree.training / "benchmarks/toy/pytorch/run_pretraining.py"
    script.write_text(script.read_text().replace(TELLING, telling))
    whole.tree.write("acme/toy-pytorch/config/environment_variables.sh", "")
    whole.configure('IMAGE_BUILD_ARGS = {"SITE_PASSWORD": "ab12", "SITE": "12345"}\nSECRETS = ["SITE"]\n')
    assert whole.main() == 1
    capsys.readouterr()
    for verb in (["show"], ["show", "--json"], ["show", "--rescore"], ["report"]):
        assert whole.main(*verb) == 0
    ours = [*whole.result.glob("*/round1/result.json"), *whole.result.glob("summary.*")]
    written = "".join(path.read_text() for path in (*ours, whole.result / "report.html"))
    for text in (capsys.readouterr().out, written):
        assert "SITE_PASSWORD=***, SITE: ***, ab12" in text
        assert "=ab12" not in text and "12345" not in text


def test_without_a_configuration_that_can_be_loaded_a_run_is_shown_and_hidden_by_name(
    whole: WholeRun, capsys: pytest.CaptureFixture[str]
) -> None:
    lose_results(whole.result)
    whole.configure("SECRETS = 5\n")
    whole.tree.configure(cluster_conf="HOSTS = not Python")
    capsys.readouterr()
    for verb in (["show"], ["show", "--rescore"], ["report"]):
        assert whole.main(*verb) == 0
    said = capsys.readouterr().out
    assert "PGPASSWORD=***" in said
    assert NAMED not in said and NAMED not in (whole.result / "report.html").read_text()


def test_hiding_by_name_leaves_a_result_without_secrets_as_it_is(tmp_path: Path) -> None:
    """The names and definitions of FlagPerf's own speak of tokens."""
    run = write_run(tmp_path / "run")
    assert by_name_alone().hide_in(run) == run
    words = "throughput (tokens/s): tokens / `no_eval_time`"
    assert by_name_alone().hide(words) == words
    failure = {"evidence": f"PGPASSWORD={NAMED}"}
    assert by_name_alone().hide_in(failure) == {"evidence": "PGPASSWORD=***"}
    assert Secrets().hide_in(failure) == failure
