"""How three chart libraries take 64 lines of 36,000 points (2.3 million), and 64 lines of 1,200, in Chromium.

    npm pack uplot echarts plotly.js-basic-dist-min    # and unpack each into FOLDER/<package>/
    .venv/bin/python benches/chart_libraries.py FOLDER

Of each: its size, and the time from the data being there until the picture is, twice, of which the second is told.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from playwright.sync_api import Error, sync_playwright

MB = 1e6
LINES = 64
DATA = f"""(count) => {{
  let seed = 1;
  const draw = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
  window.places = Float64Array.from({{ length: count }}, (_, at) => at);
  const line = () => Float64Array.from({{ length: count }}, () => 300 + 100 * draw());
  window.lines = Array.from({{ length: {LINES} }}, line);
}}"""
PAINTED = "await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 0)));"
CHARTS = {
    "uplot/package/dist/uPlot.iife.min.js": """
  const series = [{}, ...lines.map(() => ({ stroke: "#08c" }))];
  new uPlot({ width: 1000, height: 400, legend: { show: false }, series }, [places, ...lines], place);
""",
    "echarts/package/dist/echarts.min.js": """
  const chart = echarts.init(place, null, { width: 1000, height: 400 });
  const done = new Promise((resolve) => chart.on("finished", resolve));
  const pairs = (values) => Array.from(values, (value, at) => [at, value]);
  const series = lines.map((values) => ({ type: "line", showSymbol: false, data: pairs(values) }));
  chart.setOption({ animation: false, xAxis: { type: "value" }, yAxis: { scale: true }, series });
  await done;
""",
    "plotly/package/plotly-basic.min.js": """
  const traces = lines.map((values) => ({ x: places, y: values, mode: "lines" }));
  await Plotly.newPlot(place, traces, { width: 1000, height: 400 });
""",
}


def main() -> None:
    """Measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    with sync_playwright() as playwright:
        for name, draw in CHARTS.items():
            size = (folder / name).stat().st_size / MB
            print(f"{Path(name).name}: {size:.2f} MB")
            for points in (1_200, 36_000):
                browser = playwright.chromium.launch(
                    executable_path=shutil.which("chromium"),
                    args=["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
                )
                page = browser.new_page(viewport={"width": 1200, "height": 900})
                page.set_default_timeout(120_000)
                page.add_script_tag(path=folder / name)
                page.evaluate(DATA, points)
                page.evaluate("document.body.innerHTML = '<div id=one></div><div id=two></div>'")
                begin = "const place = document.getElementById(id), start = performance.now();"
                script = f"async (id) => {{ {begin} {draw} {PAINTED} return performance.now() - start; }}"
                try:
                    page.evaluate(script, "one")
                    print(f"  {LINES} x {points}: {page.evaluate(script, 'two'):.0f} ms")
                except Error as error:
                    print(f"  {LINES} x {points}: {str(error).splitlines()[0]}")
                browser.close()


if __name__ == "__main__":
    main()
