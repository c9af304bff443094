"""A vendor's configuration of BERT run where its chips are not: two ranks on a device that stands in for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from run_benchmarks.conformance.recordings import Recording, recordings_of
from run_benchmarks.conformance.records import CheckResult, failed, named, not_proven
from run_benchmarks.conformance.sandbox import Done, Sandbox, add_settings, failure_of, smallest_config
from run_benchmarks.conformance.substitutes import (
    OWN_NAME,
    Listing,
    Names,
    chosen_listing,
    lay_device,
    lay_tools,
    made_python,
)
from run_benchmarks.plan.vendor_record import Vendor
from run_benchmarks.results.rules import STAND_IN
from utils.errors import FlagPerfError
from utils.events import EventName
from utils.monitors.accelerators import monitor_file
from utils.records import Verdict

CASE, KEY = "bert-pytorch", "bert:pytorch:{chip}:1:{ranks}:1"
RANKS, STEPS, SAVED = 2, 4, 2
LIMIT_S = 150.0  # of each of two runs, which take some ten seconds where nothing else runs

SHRUNK: Mapping[str, Any] = {
    "vocab_size": 512, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 256,
    "max_position_embeddings": 64, "init_checkpoint": "", "target_mlm_accuracy": 1.0, "max_steps": STEPS,
    "save_steps": SAVED, "log_freq": 1, "max_samples_termination": None, "eval_interval_samples": None,
    "eval_interval_steps": None, "init_evaluation": True, "train_batch_size": 2, "gradient_accumulation_steps": 2,
    "eval_batch_size": 4, "cpu_threads": 1, "torch_compile": False,
}  # fmt: skip
DATA = {"training": 32, "evaluation": 8, "tokens": 64, "vocabulary": 512}
AUTOCAST = {"bf16": ["bfloat16"], "fp16": ["float16"], "fp32": []}


@dataclass(frozen=True)
class Trial:
    """What was tried: the first run, and the one that went on from its checkpoint."""

    names: Names
    listing: Listing
    first: Done
    then: Done

    @property
    def stand_in(self) -> Mapping[str, Any]:
        """What the stand-in of rank 0 says of itself when all is done."""
        about = self.first.result.facts.get("stand_in")
        return about if isinstance(about, Mapping) else {}


def checks(sandbox: Sandbox, vendor: Vendor) -> Iterator[CheckResult]:
    """What two runs show.

    Raises:
        FlagPerfError: one of them left no result.
    """
    recordings, _ = recordings_of(vendor.folder)  # what is wrong with one is named by the part `monitor`
    shipped = {name: path for name in vendor.chips if (path := smallest_config(vendor.folder, CASE, name))}
    listing = chosen_listing(vendor, recordings, list(shipped), RANKS)
    if listing is None:
        reason = not_proven(f"there is no configuration of {CASE} for one host", vendor.folder)
        yield from named("a run of BERT", [reason])
        return
    sandbox, packages = made_python(sandbox)
    names = lay_device(sandbox, packages, vendor)
    lay_tools(sandbox, vendor, listing, recordings)
    own = shipped[listing.chip]
    add_settings(sandbox.config_for(own, listing.chip, RANKS), SHRUNK)
    data = make_data(sandbox, DATA)
    key = KEY.format(chip=listing.chip, ranks=RANKS)
    first = sandbox.run(key, data, LIMIT_S)
    detail = f"{own.name}, with {RANKS} ranks, shrunk, {STEPS} steps. {names.note}"
    yield from named("a run of BERT by run.py", _failure(first, own), detail)
    if first.result.failure is not None:
        return
    then = sandbox.run(key, data, LIMIT_S, "--continue-from", str(first.folder))
    trial = Trial(names, listing, first, then)
    yield from _of(trial, vendor, recordings)


def make_data(sandbox: Sandbox, amount: Mapping[str, int]) -> Path:
    """Samples of random tokens.

    Raises:
        FlagPerfError: they cannot be made.
    """
    data = sandbox.folder / "data"
    words = [f"--{name}={value}" for name, value in amount.items()]
    done = sandbox.run_module("benchmarks.bert.made", f"--out={data}", *words, limit_s=LIMIT_S)
    if done.returncode:
        raise FlagPerfError(f"no data could be made: {done.stderr.strip()[-400:]}", where=str(data))
    return data


def _of(trial: Trial, vendor: Vendor, recordings: list[Recording]) -> Iterator[CheckResult]:
    about, names, first = trial.stand_in, trial.names, trial.first
    yield from named("preflight", _listed(trial), f"its device list is {_source(trial.listing)}")
    seen = f"{about.get('operators')} operators on {names.device}:0. {names.note}"
    yield from named("device", _differs("device", names.device, about.get("device")), seen)
    seen = f"{names.backend}, which is gloo here: {about.get('collectives')}. {names.note}"
    yield from named("collectives", _collectives(trial, vendor), seen)
    yield from named("precision", _precision(trial), f"{first.result.facts.get('precision')}, by autocast")
    seen = f"saved after step {SAVED}; a second run went on to the same loss"
    yield from named("checkpoint", _continued(trial), seen)
    yield from named("monitor", _sampled(trial, vendor, recordings), "samples are those of the recording")
    yield from named("stamp", _stamped(first), "the result is a stand-in's, and has no figure of a chip")


def _collectives(trial: Trial, vendor: Vendor) -> Iterator[CheckResult]:
    names, about = trial.names, trial.stand_in
    yield from _differs("backend", names.backend, about.get("backend"))
    if not about.get("collectives"):
        yield failed("no collective ran on the device")
    if vendor.plugin and names.device != names.backend == OWN_NAME:
        own = vendor.collective_backend["pytorch"]
        yield not_proven(f"whether {own} takes tensors of {names.device} is seen on a chip: {names.note}")


def _failure(done: Done, config: Path) -> Iterator[CheckResult]:
    if done.result.failure is not None:
        yield from failure_of(done)
    elif done.result.verdict not in (Verdict.NOT_CONVERGED, Verdict.CONVERGED):
        yield failed(f"it ended as {done.result.verdict.value}", done.node)
    elif done.result.facts.get("global_steps") != STEPS:
        yield failed(f"it made {done.result.facts.get('global_steps')} steps in place of {STEPS}", config)


def _source(listing: Listing) -> str:
    return listing.recording.path.with_suffix(".txt").name if listing.recording else "made up"


def _listed(trial: Trial) -> Iterator[CheckResult]:
    if trial.listing.recording is None:
        remedy = (
            "add a recording of a host with two devices or more of a chip that has a configuration of BERT"
        )
        yield not_proven(
            f"no recording lists {RANKS} devices of {trial.listing.chip}: a list was made up", "", remedy
        )


def _differs(what: str, wanted: object, seen: object) -> Iterator[CheckResult]:
    if wanted != seen:
        yield failed(f"the {what} in the ranks was {seen!r} in place of {wanted!r}")


def _precision(trial: Trial) -> Iterator[CheckResult]:
    configured = trial.first.values(EventName.INIT_START)[0].get("config", {}).get("precision")
    yield from _differs("precision", configured, trial.first.result.facts.get("precision"))
    yield from _differs("type of autocast", AUTOCAST.get(str(configured)), trial.stand_in.get("autocast"))


def _continued(trial: Trial) -> Iterator[CheckResult]:
    failure, continued = trial.then.result.failure, trial.then.result.continued or {}
    if failure is not None:
        yield failed(f"the second run failed: {failure.message}", trial.then.node, failure.remedy)
    elif continued.get("step") != SAVED:
        yield failed(f"it went on from step {continued.get('step')} in place of {SAVED}", trial.then.node)
    else:
        first, then = (_losses(done) for done in (trial.first, trial.then))
        last = {step: loss for step, loss in first.items() if step > SAVED}
        if not then or last != then:
            yield failed(f"the losses from there on are {then}, and were {last}", trial.then.node)


def _losses(done: Done) -> dict[int, float]:
    return {value["global_steps"]: value["loss"] for value in done.values(EventName.STEP_END)}


def _sampled(trial: Trial, vendor: Vendor, recordings: list[Recording]) -> Iterator[CheckResult]:
    telemetry, file = trial.first.telemetry(), monitor_file(vendor.folder)
    info = telemetry.info(vendor.name)
    if not file.exists():
        yield not_proven("the vendor has no monitor", file)
    elif info is None:
        yield failed("the node's telemetry does not speak of the vendor's monitor", trial.first.node)
    elif info.reason:
        reason = info.reason.rpartition("FlagPerfError: ")[2]
        yield not_proven(f"it samples nothing here: {reason}", file)
    else:
        recorded = [sample for each in recordings for sample in (each.expected.samples or {}).values()]
        seen = [sample for samples in telemetry.devices(vendor.name).values() for sample in samples]
        fields = ("power_w", "utilisation", "memory_used_mib", "temperature_c")
        values = [{name: getattr(sample, name) for name in fields} for sample in seen]
        wanted = [{name: sample.get(name) for name in fields} for sample in recorded]
        if not values or any(value not in wanted for value in values):
            yield failed(f"of {len(values)} samples some are in no recording", trial.first.node)


def _stamped(done: Done) -> Iterator[CheckResult]:
    result = done.result
    yield from _differs("stamp", STAND_IN, result.rules.stamp)
    own = [name for name, each in result.figures.items() if each.value is not None and name != "round_time"]
    if own:
        yield failed(f"the result has {', '.join(own)}")
