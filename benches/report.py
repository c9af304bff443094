"""What the report of a long run costs: 64 devices sampled once a second for 10 hours; and an index of 1,000 runs.

    .venv/bin/python benches/report.py [--hours 10] [--nodes 8] [--runs 1000]

`report_s` is a whole `run.py report`, `peak_mb` what it and its helpers hold at most, `report_mb` the file,
`interactive_s` the time in Chromium from opening the file until its first chart answers a key. Beside it one of the
four quantities of the same samples through Plotly's default HTML export, where `plotly` can be imported
(pip install plotly). `list_s` and `rebuild_s` are those of benches/history.py.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "training"), str(ROOT / "benches")]

from history import measured as measured_index  # noqa: E402

from run_benchmarks.report.samples import read_samples  # noqa: E402
from tests.run_benchmarks.report.long_run import Made, write_made_run  # noqa: E402

RUN_PY = ROOT / "training/run_benchmarks/run.py"
MB = 1e6
OWN_READY = """() => new Promise((resolve) => {
  const ready = () => {
    const plot = document.querySelector(".plot");
    if (plot && plot.querySelector("canvas")) {
      plot.dispatchEvent(new KeyboardEvent("keydown", { key: "End" }));
      if (document.querySelector(".reading").textContent) return resolve(performance.now());
    }
    setTimeout(ready, 10);
  };
  ready();
})"""
PLOTLY_READY = """() => new Promise((resolve) => {
  const ready = () => (document.querySelector(".js-plotly-plot .xtick") ? requestAnimationFrame(() => resolve(performance.now())) : setTimeout(ready, 10));
  ready();
})"""  # noqa: E501 - a sentence of its own language


def made_report(folder: Path) -> tuple[float, float]:
    """Seconds and peak megabytes of `run.py report`, its helpers included."""
    begin, peak = time.perf_counter(), 0.0
    program = psutil.Popen([sys.executable, str(RUN_PY), "report", str(folder)], stdout=subprocess.DEVNULL)
    while program.poll() is None:
        peak = max(peak, _held(program))
        time.sleep(0.05)
    if program.returncode:
        sys.exit("the report could not be made")
    return time.perf_counter() - begin, peak / MB


def _held(program: psutil.Process) -> float:
    held = 0
    for process in (program, *program.children(recursive=True)):
        try:
            held += process.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return held


def interactive_s(path: Path, ready: str) -> float | None:
    """Seconds from opening the file until it answers; None where that takes more than two minutes, or fails."""
    from playwright.sync_api import Error, sync_playwright

    options = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=options)
        page = browser.new_page(viewport={"width": 1200, "height": 900})
        page.set_default_timeout(120_000)
        try:
            page.goto(path.as_uri(), wait_until="commit")
            return float(page.evaluate(ready)) / 1000
        except Error:
            return None
        finally:
            browser.close()


def plotly_export(folders: list[Path], path: Path) -> float:
    """Seconds to write the power of every device as Plotly does by default."""
    import plotly.graph_objects as plotly

    begin = time.perf_counter()
    figure = plotly.Figure()
    for folder, node in zip(folders, read_samples(folders), strict=True):
        for (source, device), samples in node.devices.items():
            name = f"{folder.name} {source} {device}"
            figure.add_trace(plotly.Scatter(x=samples.times, y=samples.columns["Power"], name=name))
    figure.write_html(path)
    return time.perf_counter() - begin


def measure_plotly(folder: Path, target: Path) -> None:
    """Print what the peer costs."""
    try:
        seconds = plotly_export(sorted(path.parent for path in folder.rglob("telemetry.jsonl")), target)
    except ImportError:
        print("Plotly: not installed")
        return
    answers = interactive_s(target, PLOTLY_READY)
    shown = "did not open within 120 s" if answers is None else f"interactive in {answers:.1f} s"
    print(f"Plotly, power alone: made in {seconds:.1f} s, {target.stat().st_size / MB:.1f} MB, {shown}")


def main() -> None:
    """Make the run, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hours", type=float, default=10)
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--runs", type=int, default=1000)
    arguments = parser.parse_args()
    hosts = tuple(f"node{number}" for number in range(arguments.nodes))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "run20261122000000"
        write_made_run(folder, Made(hosts, seconds=int(arguments.hours * 3600)))
        seconds, peak = made_report(folder)
        size = (folder / "report.html").stat().st_size / MB
        answers = interactive_s(folder / "report.html", OWN_READY)
        print(
            f"report: made in {seconds:.1f} s with {peak:.0f} MB, {size:.2f} MB, interactive in {answers} s"
        )
        measure_plotly(folder, Path(name) / "plotly.html")
        index = measured_index(arguments.runs, Path(name) / "history")
    figures = {"report_s": round(seconds, 2), "report_mb": round(size, 2), "interactive_s": answers, **index}
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
