"""`run.py serve`: what its pages hold, and whom they are refused; in a browser: test_site_in_browser.py."""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import socket
import time
import tracemalloc
from collections.abc import Iterator
from html import escape, unescape
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from run_benchmarks.history import site as site_module
from run_benchmarks.history.index import Index
from run_benchmarks.history.live import MOST_ROUNDS, progress
from run_benchmarks.history.query import Measured, Row
from run_benchmarks.history.server import TOKEN_FORM, address_of, bound, given_token, is_local
from run_benchmarks.history.site import make_site, picture
from run_benchmarks.journal import Journal
from run_benchmarks.plan.secrets import by_name_alone
from run_benchmarks.report.chart import chart
from run_benchmarks.verbs import main, serve
from tests.run_benchmarks.results.made_runs import CASES, make_runs
from utils.errors import FlagPerfError

BERT = CASES[1]
TOKEN = "a-token-of-the-tests-0123456789"
HOSTILE = "<script>alert(1)</script>\x1b[2J&\"'"


@pytest.fixture(scope="module")
def log_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served")
    runs = make_runs(folder / "result", 4)
    runs[0].rename(folder / "result" / HOSTILE.replace("/", "_"))
    (runs[1] / "summary.json").write_text("{")
    return folder / "result"


@pytest.fixture(scope="module")
def index(log_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        index = Index(log_path, by_name_alone)
    yield index
    index.close()


@pytest.fixture
def site(index: Index) -> TestClient:
    return TestClient(make_site(index, None, 8640), base_url="http://127.0.0.1:8640", follow_redirects=False)


@pytest.fixture
def kept_site(index: Index) -> TestClient:
    return TestClient(make_site(index, TOKEN, 8640), base_url="http://127.0.0.1:8640", follow_redirects=False)


def cells_of(page: str) -> list[list[str]]:
    rows = re.findall(r"<tr>(<td>.*?)</tr>", page, re.DOTALL)
    return [
        [unescape(re.sub(r"<[^>]*>", "", cell)) for cell in re.findall(r"<td.*?</td>", row, re.DOTALL)]
        for row in rows
    ]


# ---- the pages


def test_the_table_is_filtered_sorted_and_says_what_is_wrong_with_a_run(
    site: TestClient, log_path: Path
) -> None:
    page = site.get("/").text
    assert len(cells_of(page)) == 12 and "12 of 12 rounds" in page and str(log_path) in page
    assert "is not JSON, or only a part" in unescape(page)
    page = site.get("/", params={"case": BERT, "where": "p_train > 100; round = 1", "sort": "-p_train"}).text
    rows = cells_of(page)
    assert [row[2] for row in rows] == [BERT] * 2 and [row[-3] for row in rows] == ["129", "126"]
    assert re.search(r'aria-sort="descending"><a href="[^"]*sort=p_train[^"]*">p_train /s', page)
    assert f'value="{BERT}"' not in page and f"<option selected>{BERT}</option>" in page
    page = site.get("/", params={"columns": "run,rate", "verdict": "FAILED"}).text
    assert {tuple(row[2:]) for row in cells_of(page)} == {("2.50",), ("2.52",), ("2.55",), ("2.58",)}
    assert (
        "No round is like that."
        in site.get("/", params={"verdict": "FAILED", "round": 1, "where": "round=1"}).text
    )


def test_a_name_that_is_a_page_of_its_own_stays_text(site: TestClient, index: Index) -> None:
    page = site.get("/").text
    assert "alert(1)<" not in page.replace("&lt;", "") and "\x1b" not in page
    assert "&lt;script&gt;alert(1)&lt;_script&gt;\ufffd[2J&amp;&#34;&#39;" in page
    (address,) = set(re.findall(r'href="(/run/x[0-9a-f]{20})"', page))
    assert (index.path_of(address.removeprefix("/run/")) or Path()).name == HOSTILE.replace("/", "_")
    page = site.get("/", params={"where": f"run = {HOSTILE}", "columns": "run"}).text
    assert "<script>alert" not in page
    page = site.get("/", params={"where": HOSTILE}).text
    assert "<script>alert" not in page and "is no condition" in page
    for odd in ("run=%00", "run=%ff%fe", "started>=9999999d", "started>=0001-01-01", "p_train>nan"):
        assert site.get(f"/?where={odd}").status_code in (200, 400)


def test_a_page_has_a_hundred_rows_and_leads_to_the_next(
    site: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("asked", "site"):
        monkeypatch.setattr(f"run_benchmarks.history.{name}.PAGE", 5)
    first, last = site.get("/?where=round > 0").text, site.get("/?where=round > 0&page=2").text
    assert len(cells_of(first)) == 5 and len(cells_of(last)) == 2 and "11 to 12 of 12" in last
    assert 'href="/?where=round+%3E+0&amp;page=1" rel="next"' in first and 'rel="next"' not in last
    assert not {row[1] for row in cells_of(first)} <= {row[1] for row in cells_of(last)}


def test_two_figures_as_a_chart(site: TestClient) -> None:
    page = site.get("/scatter", params={"x": "p_train", "y": "acc", "where": "round = 1"}).text
    assert "of 4 that have both" in page
    chart = json.loads(re.findall(r'<script type="application/json">(.*?)</script>', page, re.DOTALL)[0])
    assert chart["axes"][0]["values"] == [125, 126.25, 127.5, 128.75]
    assert sorted(line["label"] for line in chart["lines"]) == sorted(CASES)
    assert "did you mean acc?" in site.get("/scatter", params={"x": "acn", "y": "acc"}).text


def test_power_of_other_parts_of_a_machine_is_another_set_of_points() -> None:
    def row(number: int, scope: str) -> Row:
        figures = {
            "p_train": Measured(100.0, "samples/s", "", ""),
            "energy": Measured(9.0, "J/node", "only 60 %", scope),
        }
        return Row("k", "run", "", "ended", 0, BERT, number, "CONVERGED", "", "", "h", "", figures=figures)

    mixed = picture([row(1, "machine"), row(2, "accelerator")], "p_train", "energy")
    assert [line.label for line in mixed.lines] == [
        f"{BERT}, energy in J/node, {scope}" for scope in ("accelerator", "machine")
    ]
    assert "not to be held against each other: energy" in mixed.note
    assert mixed.lines[0].names[0] == "run, round 1, CONVERGED; energy: only 60 %"
    alike = picture([row(1, "machine"), row(2, "machine")], "p_train", "energy")
    assert [line.label for line in alike.lines] == [BERT] and not alike.note


@pytest.mark.parametrize(
    "address", ["/run/run20270101000000", "/run/..%2f..%2fetc", "/nowhere", "/run/x/live"]
)
def test_what_is_not_there_is_said(address: str, site: TestClient) -> None:
    answer = site.get(address)
    assert answer.status_code == 404 and "no such run" in answer.text


def test_reports_that_wait_leave_room_for_other_pages(
    index: Index, log_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site_module, "MOST_REPORTS", 1)
    served = TestClient(make_site(index, None, 8640), base_url="http://127.0.0.1:8640")
    address = f"/run/{sorted(log_path.glob('run*'))[-1].name}"
    inner: list[str] = []

    def body(*_: object) -> str:
        inner.append(served.get(address).text)
        return ""

    monkeypatch.setattr(site_module, "report_body", body)
    assert [served.get(address).status_code for _ in range(2)] == [200, 200]
    assert len(inner) == 2 and all("1 reports are being made already" in text for text in inner)


def test_nothing_to_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "result").mkdir()
    index = Index(tmp_path / "result", by_name_alone)
    site = TestClient(make_site(index, None, 1), base_url="http://localhost")
    assert "There is no run here yet" in site.get("/").text
    assert "No round has both" in site.get("/scatter").text
    (tmp_path / "result").rmdir()
    fresh = TestClient(make_site(index, None, 1), base_url="http://localhost")
    answer = fresh.get("/")
    assert answer.status_code == 400 and "cannot be listed" in answer.text
    index.close()


def test_nothing_is_written_in_the_result_folder(site: TestClient, log_path: Path) -> None:
    def state() -> dict[str, tuple[int, int]]:
        return {str(path): (path.lstat().st_mtime_ns, path.lstat().st_size) for path in log_path.rglob("*")}

    before = state()
    for address in ("/", "/scatter", "/?sort=run"):
        assert site.get(address).status_code == 200
    assert state() == before


# ---- a run that goes on


LOG = """\
2026-01-02 03:04:05,000\t[INFO]\t[runner.py,1]case {case}, round 2 of 3: start
2026-01-02 03:04:06,000\t[INFO]\t[lines.py,1]step 990, loss 0.1000, 5.0 samples/s
2026-01-02 03:04:07,000\t[INFO]\t[runner.py,1]case {case}, round 3 of 3: start
2026-01-02 03:04:08,000\t[INFO]\t[lines.py,1]step 10, loss 2.5000, 80.0 samples/s
2026-01-02 03:04:09,000\t[ERROR]\t[runner.py,1]a rank said: <b>
    2026-01-02 03:04:09,000\t[INFO]\t[lines.py,1]step 15, loss 77.0000
2026-01-02 03:04:10,000\t[INFO]\t[lines.py,1]step 20, loss nan, accuracy 0.2500 / 0.3, 81.0 samples/s
"""
HOSTILE_LOG = "".join(
    f"2026-01-02 03:04:05,000\t[INFO]\t[lines.py,1]step {line}\n"
    for line in ("7, loss abc", f"{'9' * 400}, loss 1.0", f"8, loss {'9' * 400}.0, 1.7e+308 samples/s")
)


def test_a_run_that_goes_on_is_told_by_its_journal_and_the_last_lines_of_its_log(
    site: TestClient, log_path: Path
) -> None:
    run = log_path / "run20260601000000"
    shutil.copytree(sorted(log_path.glob("run*"))[-1], run)
    case = next(path.name for path in run.iterdir() if path.is_dir())
    (run / "summary.json").unlink()
    (run / "flagperf_run.log").write_text(LOG.format(case=case))
    controller = Journal(run / "journal.jsonl")
    begin = time.monotonic()
    controller.write("stage", case=case, round=3, stage="train")
    try:
        page = TestClient(site.app, base_url="http://127.0.0.1:8640").get(f"/run/{run.name}/live").text
        now, elapsed_s = progress(run), time.monotonic() - begin
    finally:
        controller.close()
    assert "The charts move" in page
    assert now["goes_on"] and [stage for _, _, stage, _ in now["rounds"]] == ["begun", "begun", "train"]
    *what, since = now["rounds"][2]
    minutes, seconds = map(int, since.split(":"))
    assert what == [case, "3", "train"] and 60 * minutes + seconds <= elapsed_s + 1
    assert f"<td>{escape(case)}</td>" in page
    lines = {each.title: (each.axes[0].values, each.lines[0].values) for each in now["charts"]}
    assert lines == {"loss": ([10], [2.5]), "samples/s": ([10, 20], [80, 81]), "accuracy": ([20], [0.25])}
    assert [each.levels for each in now["charts"]] == [[], [], [("target", 0.3)]]
    assert now["log"][-1].endswith("81.0 samples/s") and "\t" not in "".join(now["log"])
    assert not progress(run)["goes_on"]
    shutil.rmtree(run)


def test_of_a_hostile_run_that_goes_on_a_bounded_part_is_shown(log_path: Path, tmp_path: Path) -> None:
    run = shutil.copytree(sorted(log_path.glob("run*"))[-1], tmp_path / "run20260601000000")
    (run / "flagperf_run.log").write_text(HOSTILE_LOG)
    (run / "journal.jsonl").write_text(
        "".join(f'{{"case": "x", "round": 1, "time": {time}}}\n' for time in (10**400, "1e308"))
    )
    case = {"files": {"script": ""}, "chip": None, "parameters": {}, "deadline_s": 1.0}
    settings = {"framework": "", "nnodes": 1, "nproc": 1, "repeat": 999_999}
    cases = [{**case, "settings": {**settings, "name": f"c{number}"}} for number in range(1000)]
    (run / "plan.json").write_text(json.dumps({"cases": cases}))
    tracemalloc.start()
    now = progress(run)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(now["rounds"]) == MOST_ROUNDS and peak < 80 * 2**20, "a read takes 64 MiB"
    assert list(map(chart, now["charts"])) == []


# ---- who may see it


@pytest.mark.parametrize(
    "host",
    [
        *(
            "evil.example",
            "127.0.0.1.evil.example:8640",
            "",
            "evil.example:8640",
            "[::1",
            "[localhost]",
            "::1",
        ),
        *(
            "evil.example@127.0.0.1",
            "127.0.0.1#evil.example",
            "127.0.0.1/evil.example",
            "127.0.0.1:",
            "localhost:x",
        ),
    ],
)
def test_a_strangers_name_that_leads_here_is_refused(host: str, site: TestClient) -> None:
    assert site.get("/", headers={"host": host}).status_code == 421


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8640", "localhost:9", "[::1]:8640", "10.1.2.3", socket.gethostname()]
)
def test_names_of_this_machine_are_not(host: str, site: TestClient) -> None:
    assert site.get("/", headers={"host": host}).status_code == 200


def test_the_token_is_asked_for_once(kept_site: TestClient) -> None:
    for address in (
        "/",
        "/scatter",
        "/run/run20260103030405/live",
        "/?token=",
        "/?token=wrong",
        "/nowhere",
    ):
        answer = kept_site.get(address)
        assert answer.status_code == 401 and "result" not in answer.text
    kept_site.cookies.set("flagperf-8640", "made up")
    assert kept_site.get("/").status_code == 401
    kept_site.cookies.clear()
    opened = kept_site.get(f"/?token={TOKEN}&sort=run")
    assert (opened.status_code, opened.headers["location"]) == (303, "/")
    cookie = opened.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=lax" in cookie and TOKEN not in cookie
    assert kept_site.get("/").status_code == 200


def test_nothing_can_be_changed_and_no_other_site_reads_along(site: TestClient) -> None:
    assert site.post("/").status_code == site.delete("/").status_code == site.options("/").status_code == 405
    for answer in (site.get("/"), site.get("/nowhere"), site.get("/", headers={"host": "evil.example"})):
        assert answer.headers["content-security-policy"] == "frame-ancestors 'none'"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert answer.headers["cache-control"] == "no-store"
        assert not [name for name in answer.headers if name.startswith("access-control")]


def test_the_users_own_token(monkeypatch: pytest.MonkeyPatch) -> None:
    for token, given in ((TOKEN, TOKEN), ("", None)):
        monkeypatch.setenv("FLAGPERF_SERVE_TOKEN", token)
        assert given_token() == given
    for bad in ("short", "with a blank in it, and long", "an+address/reads=this&otherwise", 257 * "x"):
        monkeypatch.setenv("FLAGPERF_SERVE_TOKEN", bad)
        with pytest.raises(FlagPerfError, match="16 to 256 letters") as refused:
            given_token()
        assert bad not in refused.value.message.split()
    parser = argparse.ArgumentParser()
    serve.add_arguments(parser)
    assert any(TOKEN_FORM in (each.help or "") for each in parser._actions), "as --help has it"


def test_addresses(tmp_path: Path) -> None:
    with bound("127.0.0.1", 0) as local, bound("0.0.0.0", 0) as open_to_all:  # noqa: S104
        assert is_local(local) and not is_local(open_to_all)
        assert address_of(local, None) == f"http://127.0.0.1:{local.getsockname()[1]}/"
        assert address_of(open_to_all, "a b").startswith(f"http://{socket.gethostname()}:")
        assert address_of(open_to_all, "a b").endswith("/?token=a%20b")


def test_what_cannot_be_served_is_said_and_nothing_is_begun(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*words: str) -> str:
        assert main(["serve", "--log-path", str(tmp_path / "nowhere"), *words]) == 2
        return capsys.readouterr().err

    with bound("127.0.0.1", 0) as taken:
        said = refused("--port", str(taken.getsockname()[1]))
    assert "Address already in use" in said and "--port" in said
    assert "--address" in refused("--address", "no.such.host.invalid")
    with pytest.raises(SystemExit):
        refused("--port", "70000")
    assert "'70000' is no port" in capsys.readouterr().err
    assert "cannot be listed" in refused("--port", "0")
    assert not os.listdir(tmp_path)  # noqa: PTH208
