"""The page and its charts as text: what stands in the file, and what its policy allows."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markupsafe import Markup

from run_benchmarks.report.chart import Axis, Chart, Line, chart
from run_benchmarks.report.page import FOLDER, marked, page

HOSTILE = '</script><script>alert(1)</script><img src=x onerror="alert(2)">&amp;{{ 7 * 7 }}'


class _Tags(HTMLParser):
    """The elements of a page, each with its attributes, and the text of its scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.inside: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] in ("script", "style") and data.strip():
            self.inside.append((self.tags[-1][0], data))


def _chart(label: str = "loss", **more: object) -> Chart:
    lines = [Line(label, [3.0, None, 1.0], group=label)]
    return Chart("Loss", "nats", [Axis("step", [1, 2, 3])], lines, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("is_served", [False, True])
def test_its_own_scripts_alone_may_run_and_nothing_is_loaded(is_served: bool) -> None:
    text = page("Run", Markup("<h1>Run</h1>"), scripts=["let one = 1;"], is_served=is_served)
    tags = _Tags(text)
    policy = next(each["content"] for tag, each in tags.tags if tag == "meta" and "http-equiv" in each) or ""
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    for kind in ("script", "style"):
        hashes = {
            f"'sha256-{base64.b64encode(hashlib.sha256(each.encode()).digest()).decode()}'"
            for tag, each in tags.inside
            if tag == kind
        }
        assert set(rules[f"{kind}-src"].split()) == hashes
    assert rules["default-src"] == "'none'"
    assert rules["connect-src"] == rules["form-action"] == ("'self'" if is_served else "'none'")
    assert not any(each.get("src") for _, each in tags.tags)
    links = {each["href"] for _, each in tags.tags if "href" in each} - {"#content", "data:,"}
    assert links == ({"/"} if is_served else set())  # the server's own first page


def test_hostile_text_stays_text() -> None:
    body = Markup("<h1>{}</h1>").format(HOSTILE) + chart(_chart(HOSTILE, note=HOSTILE))
    before, after = (
        _Tags(page(title, each)) for title, each in ((HOSTILE, body), ("t", chart(_chart("a", note="b"))))
    )
    assert [tag for tag, _ in before.tags if tag != "h1"] == [tag for tag, _ in after.tags]


def test_what_stands_between_backticks_is_code_and_a_backtick_alone_is_one() -> None:
    assert marked("a `b`, `<i>`") == "a <code>b</code>, <code>&lt;i&gt;</code>"
    assert marked("a `b` c`d") == "a <code>b</code> c`d"


def test_a_line_of_a_hosts_device_is_named_with_its_host() -> None:
    lines = [Line("psutil cpu", [1.0], group=host) for host in ("h1", "h2")]
    rows = re.findall(r'<th scope="row">(.*?)</th>', chart(Chart("Load", "%", [Axis("step", [1])], lines)))
    assert rows == ["h1 psutil cpu", "h2 psutil cpu"]


def test_a_chart_holds_its_values_and_a_table_of_what_they_come_to() -> None:
    text = chart(_chart(levels=[("target", 0.5)]))
    match = re.search(r'<script type="application/json">(.*)</script>', text)
    assert match
    content = json.loads(match[1])
    assert content["lines"] == [{"label": "loss", "group": "loss", "names": [], "values": [3, None, 1]}]
    assert content["axes"] == [{"label": "step", "unit": "", "values": [1, 2, 3]}]
    assert re.search(r'<th scope="row">loss</th><td>2</td><td>1</td><td>2</td><td>3</td>', text)


def test_nothing_measured_is_said() -> None:
    empty = Chart("Power", "W", [Axis("time", [0, 1], "s")], [Line("a", [None, None])])
    assert "Not measured" in chart(empty) and "application/json" not in chart(empty)


def test_the_chart_library_is_what_its_checksums_say() -> None:
    folder = FOLDER / "static/uplot"
    sums = dict(reversed(line.split()) for line in (folder / "SHA256SUMS").read_text().splitlines())  # type: ignore[misc]
    assert set(sums) == {"uPlot.iife.min.js", "uPlot.min.css", "LICENSE"}
    assert {name: hashlib.sha256(Path(folder / name).read_bytes()).hexdigest() for name in sums} == sums
