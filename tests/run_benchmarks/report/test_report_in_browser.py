"""The report in a real browser: drawn, read by pointer and by keyboard, light and dark, on paper and on a phone."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from run_benchmarks import verbs
from tests.browser import PHONE, serious_faults
from tests.run_benchmarks.report.long_run import SPIKE_W, Made, write_made_run

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

Opener = Callable[..., "Page"]
HOSTILE = "<img src=x onerror=alert(1)>"
PAPER = 703  # CSS pixels of A4 less its margins
MADE = Made(
    hosts=("node0", HOSTILE, "node2"),
    devices=4,
    seconds=200,
    steps=120,
    case=f"{HOSTILE}:pytorch:H100:3:4:1",
    metric=HOSTILE,
    source=f"nvml{HOSTILE}",
)
# How many pixels of a chart have about the colour that a name of the style stands for.
PIXELS = """(figure, name) => {
  const style = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const [red, green, blue] = style.match(/\\w\\w/g).map((part) => parseInt(part, 16));
  const canvas = figure.querySelector("canvas");
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let count = 0;
  for (let at = 0; at < data.length; at += 4)
    count += Math.hypot(data[at] - red, data[at + 1] - green, data[at + 2] - blue) < 16 && data[at + 3] > 200;
  return count;
}"""


# Of a phase the colour of its shade on the ground, and how many pixels of a chart have it.
SHADE = """(figure, phase) => {
  const style = getComputedStyle(document.documentElement);
  const rgb = (name) => style.getPropertyValue(`--${name}`).match(/[0-9a-f]{2}/g).map((part) => parseInt(part, 16));
  const [ground, own, alpha] = [rgb("ground"), rgb(phase), Number(style.getPropertyValue("--phase-alpha"))];
  const shade = ground.map((part, index) => part + (own[index] - part) * alpha);
  const canvas = figure.querySelector("canvas");
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let count = 0;
  for (let at = 0; at < data.length; at += 4)
    count += data[at + 3] > 200 && shade.every((part, index) => Math.abs(data[at + index] - part) < 3);
  return [shade, count];
}"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "run20261122000000"
    write_made_run(folder, MADE)
    assert verbs.main(["report", str(folder)]) == 0
    return folder / "report.html"


@pytest.fixture
def page(open_page: Opener, report: Path) -> Page:
    return open_page(report, viewport={"width": 1200, "height": 900})


def _chart(page: Page, title: str) -> Locator:
    figure = page.locator("figure.chart").filter(has=page.locator("h4", has_text=title)).first
    figure.scroll_into_view_if_needed()
    figure.locator("canvas").wait_for()
    page.wait_for_timeout(50)  # it is drawn in a microtask after its canvas is there
    return figure


def _pixels(figure: Locator, colour: str = "line-0") -> int:
    return int(figure.evaluate(PIXELS, colour))


def test_every_chart_is_drawn_and_what_is_hostile_stays_text(page: Page) -> None:
    figures = page.locator("figure.chart")
    assert figures.count() == 9
    for title in figures.locator("h4").all_text_contents():
        figure = _chart(page, title.split(" (")[0])
        assert sum(_pixels(figure, f"line-{number}") for number in range(3)) > 100, title
    assert page.locator("h2").filter(has_text=HOSTILE).count() == 1
    assert page.locator("main img").count() == 0


def test_every_check_of_the_preflight_fits_the_page(page: Page) -> None:
    box = page.get_by_role("region", name="Preflight")
    assert box.evaluate("(box) => box.scrollWidth <= box.clientWidth")


WRITTEN = """() => [100, 5].map((top) => {
  let where = null;
  const write = function (word, left, at) { where = [this.textBaseline, at - top]; };
  const context = { setLineDash() {}, strokeText() {}, fillText: write };
  Figure.prototype.writeLevel(context, { left: 0, top: 0 }, "target", top);
  return where;
})"""


def test_the_name_of_a_level_is_clear_of_its_line(page: Page) -> None:
    (above, rise), (below, drop) = page.evaluate(WRITTEN)
    assert (above, below) == ("bottom", "top"), "what is measured from the line is the text's near edge"
    assert rise < 0 < drop


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_an_evaluation_is_told_from_the_training_that_it_lies_in(
    open_page: Opener, report: Path, scheme: str
) -> None:
    """However short, and by the amount of blue, which those see too who do not tell red from green."""
    spell = re.compile(r'\["evaluate",([\d.]+),[\d.]+\]')
    brief = spell.sub(lambda each: f'["evaluate",{each[1]},{float(each[1]) + 0.01}]', report.read_text())
    path = report.with_name(f"brief_{scheme}.html")
    path.write_text(brief)
    figure = _chart(open_page(path, color_scheme=scheme, viewport={"width": 1200, "height": 900}), "Loss")
    (evaluate, seen), (train, most) = (figure.evaluate(SHADE, phase) for phase in ("evaluate", "train"))
    assert 300 < seen < most
    assert abs(evaluate[2] - train[2]) > 60


def test_a_pointer_reads_what_is_nearest(page: Page) -> None:
    figure = _chart(page, "Power, accelerators")
    figure.locator(".u-over").hover()
    reading = figure.locator(".reading")
    assert "nvml" in (reading.text_content() or "") and " W" in (reading.text_content() or "")


def test_keys_move_the_cursor_zoom_and_find_the_spike(page: Page) -> None:
    figure = _chart(page, "Power, accelerators")
    plot, reading = figure.locator(".plot"), figure.locator(".reading")
    plot.focus()
    page.keyboard.press("End")
    at_end = reading.text_content()
    page.keyboard.press("Shift+ArrowLeft")
    assert reading.text_content() not in ("", at_end)
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    readings = []
    for _ in range(MADE.seconds * 2 // 5 + 2):
        page.keyboard.press("ArrowRight")
        readings.append(reading.text_content() or "")
    assert any(f": {SPIKE_W:.0f} W" in each for each in readings)
    page.keyboard.press("+")
    assert _chart(page, "Temperature").get_by_role("button", name="Show all").is_visible()  # of the same time
    plot.focus()
    page.keyboard.press("Escape")
    assert not figure.get_by_role("button", name="Show all").is_visible()


def test_steps_in_place_of_time_and_one_node_of_all(page: Page) -> None:
    loss = _chart(page, "Loss")
    loss.get_by_role("combobox").select_option(label="step")
    loss.locator(".plot").focus()
    page.keyboard.press("End")
    assert (loss.locator(".reading").text_content() or "").startswith(f"{MADE.steps} ")
    power = _chart(page, "Power, accelerators")
    assert power.locator(".entry").all_text_contents() == list(MADE.hosts)
    power.get_by_role("combobox").select_option(label=HOSTILE)
    assert len(power.locator(".entry").all_text_contents()) == MADE.devices
    before = _pixels(power)
    power.locator(".entry").first.click()
    page.wait_for_timeout(50)
    assert _pixels(power) < before / 10


def test_a_table_stands_behind_each_chart(page: Page) -> None:
    figure = _chart(page, "Loss")
    figure.locator("summary").click()
    rows = figure.locator(".behind table").nth(1)
    rows.wait_for()  # it is made once it is asked for
    assert rows.locator("th").all_text_contents() == ["time s", "step", "Loss"]
    assert rows.locator("tbody tr").count() == MADE.steps


def test_dark_by_preference_and_by_the_button(open_page: Opener, report: Path) -> None:
    page = open_page(report, color_scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(ground)
    figure = _chart(page, "Loss")
    assert _pixels(figure) > 100
    assert serious_faults(page) == []
    page.get_by_role("button", name="Light").click()
    page.wait_for_timeout(50)
    assert page.evaluate(ground) != dark and _pixels(figure) > 100


def test_who_sees_or_moves_otherwise_can_use_it(page: Page) -> None:
    for each in page.locator("section > details, figure.chart:first-child details").all():
        each.evaluate("each => { each.open = true }")
    for figure in page.locator("figure.chart").all():
        figure.scroll_into_view_if_needed()
    assert serious_faults(page) == []


def test_a_phone_shows_it_without_scrolling_sideways(open_page: Opener, report: Path) -> None:
    page = open_page(report, viewport={"width": PHONE, "height": 800}, device_scale_factor=2, has_touch=True)
    assert _pixels(_chart(page, "Power, accelerators")) > 100
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE


def test_it_prints_light_with_every_chart(open_page: Opener, report: Path) -> None:
    page = open_page(report, color_scheme="dark")
    page.evaluate(
        "addEventListener('beforeprint', () => { window.onPaper = document.documentElement.dataset.theme })"
    )
    paper = page.pdf(prefer_css_page_size=True)
    assert paper.startswith(b"%PDF") and paper.count(b"/Type /Page\n") >= 3
    assert page.evaluate("window.onPaper") == "light"
    assert page.locator("figure.chart canvas").count() == 9
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.locator("section > details[open]").count() == 0
    # what is wider than the paper is cut off, or makes all else smaller
    page.set_viewport_size({"width": PAPER, "height": 900})
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    lefts = "new Set([...document.querySelectorAll('figure.chart')].map((each) => each.offsetLeft))"
    assert page.evaluate(f"{lefts}.size") == 2, "charts stand side by side"
    rights = (
        "[...document.querySelectorAll('table, canvas')].map((each) => each.getBoundingClientRect().right)"
    )
    assert page.evaluate(f"Math.max(...{rights})") <= PAPER
