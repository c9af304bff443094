"""The README of a vendor's folder and of its cases: what stands there by the folder's own word, and what is missing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from run_benchmarks.conformance.figures import peak_trouble
from run_benchmarks.conformance.records import CheckResult, failed
from run_benchmarks.plan.records import CasePlan
from run_benchmarks.plan.source_code import text_of
from run_benchmarks.plan.vendor_record import Vendor
from utils.parameters import TARGET

README = "README.md"
RESULTS = "## Results of this harness"
_NOT_MEASURED = re.compile(r"\W*not (yet )?measured", re.IGNORECASE)


def readme_trouble(vendor: Vendor, cases: Iterable[CasePlan]) -> Iterator[CheckResult]:
    """Chips, cases and configurations that are not in it, and figures of configurations that are not theirs."""
    path = vendor.folder / README
    text = text_of(path)
    if not path.is_file():
        yield failed("there is no such file", path, "write it: CONTRIBUTING.md says what it tells")
    for chip in vendor.chips.values() if text else ():
        rows = [line for line in text.splitlines() if line.startswith("|") and f"`{chip.name}`" in line]
        if f"`{chip.name}`" not in text:
            yield failed(
                f"it does not tell of the chip `{chip.name}`", path, "add its row to the table of chips"
            )
        yield from peak_trouble(chip, "\n".join(rows), path)
    of_cases: dict[Path, list[CasePlan]] = {}
    for case in cases:
        of_cases.setdefault((vendor.folder.parent / case.files.config_dir).parent, []).append(case)
    for folder, own in of_cases.items():
        if not (text or (folder / README).is_file()):
            continue  # all that it should have is missing
        yield from _of_case(path, text, folder, own)


def _of_case(path: Path, text: str, folder: Path, cases: Iterable[CasePlan]) -> Iterator[CheckResult]:
    """A case's own README, or its part of the vendor's."""
    own, prefix = folder / README, ""
    if own.is_file() and text and f"({folder.name}/{README})" not in text:
        yield failed(
            "it does not lead to the case's README", path, f"add [{folder.name}]({folder.name}/{README})"
        )
    if not own.is_file():
        own, prefix = path, f"{folder.name}/"
    text = text_of(own)
    if RESULTS not in text:
        remedy = f'add "{RESULTS}", and below it what was measured, or "Not yet measured."'
        yield failed("it does not say what was measured", own, remedy)
    for case in cases:
        yield from _of_config(own, text, f"({prefix}config/{case.files.config_file})", case)


def _of_config(path: Path, text: str, link: str, case: CasePlan) -> Iterator[CheckResult]:
    if link not in text:
        yield failed(f"it has no row of {case.files.config_file}", path, f"add a row with [...]{link}")
    elif any(name.startswith(TARGET) for name in case.parameters):
        batch = _global_batch(case)
        if not re.search(rf"{re.escape(link)} \| [\dx ]+= {batch} \|", text):
            remedy = f"write it behind {link}: `| 8 x 48 x 2 = {batch} |`, ranks x batch x accumulation"
            yield failed(
                f"the global batch of {case.files.config_file} is {batch}, which it does not say",
                path,
                remedy,
            )


def _global_batch(case: CasePlan) -> int:
    """Samples a step."""
    values, settings = case.parameters, case.settings
    return int(
        values["train_batch_size"] * values["gradient_accumulation_steps"] * settings.nnodes * settings.nproc
    )


def measured_in(vendor: Path) -> list[Path]:
    """The READMEs of the folder that have results of this harness."""
    return [
        path
        for path in sorted({*vendor.glob(README), *vendor.glob(f"*-*/{README}")})
        if _has_results(text_of(path))
    ]


def _has_results(text: str) -> bool:
    _, heading, rest = text.partition(RESULTS)
    return bool(heading) and not _NOT_MEASURED.match(rest.partition("\n## ")[0].strip())
