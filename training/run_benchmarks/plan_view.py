"""`run.py plan`: what a run would do, with every command that a host would get, ready for a shell."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Iterator, Sequence
from datetime import datetime

from run_benchmarks.frameworks import open_framework
from run_benchmarks.images import open_image_store
from run_benchmarks.images.base import BuildSite
from run_benchmarks.images.build import build_name, layer_argvs, secret_build_args
from run_benchmarks.images.layers import ImagePlan, plan_image
from run_benchmarks.images.pip_handover import pip_folder_argvs, pip_mounts
from run_benchmarks.names import HostPaths, Node, RunId, host_paths, new_run_id, nodes_of
from run_benchmarks.plan.records import CasePlan, Plan
from run_benchmarks.plan.redact import redact_text, redact_values
from run_benchmarks.rehearsal import Rehearsal
from run_benchmarks.runtimes import open_runtime
from run_benchmarks.runtimes.base import Runtime
from run_benchmarks.runtimes.engine import engine_of
from run_benchmarks.stages.checks import DROP_CACHES
from run_benchmarks.stages.collect import collect_argv
from run_benchmarks.stages.deploy import UNPACK, tree_of
from run_benchmarks.stages.launch import Launch
from run_benchmarks.stages.preflight import preflight
from run_benchmarks.transports import LOCALHOST

STOP_GRACE_S = 5


class PlanView:
    """The text of a plan. Nothing is touched: every command comes from the functions that the run uses."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.run: RunId = new_run_id(datetime.now())
        self.paths: HostPaths = host_paths(plan.run, self.run, tree_of(plan).digest)
        self.runtime: Runtime = open_runtime(plan.run)

    def lines(self) -> Iterator[str]:
        """The whole text, line by line. Lines that are not commands are comments of the shell."""
        plan = self.plan
        yield f"# runtime {plan.run.runtime}, hosts {', '.join(plan.cluster.hosts)}"
        yield f"# results go to {plan.run.log_path}/{self.run.name}"
        if plan.continue_from:
            yield f"# the rounds go on from the checkpoints of {plan.continue_from} in {plan.run.checkpoint_path}"
        yield from self._preflight()
        for case in plan.cases:
            yield from self._case(case)
        yield from self._removal()

    def _preflight(self) -> Iterator[str]:
        """What each host is asked before anything is launched; a check with a manifest lists the files too."""
        rehearsals = {host: Rehearsal(host) for host in self.plan.cluster.hosts}
        asyncio.run(preflight(self.plan, self.runtime, rehearsals))
        yield ""
        yield "# ===== preflight"
        for host, rehearsal in rehearsals.items():
            yield f"# ----- host {host}"
            yield from map(_command, rehearsal.commands)

    def _removal(self) -> Iterator[str]:
        """What is asked at every end, whatever happened; the engine removes what the list names."""
        rehearsal = Rehearsal("")
        asyncio.run(self.runtime.remove_all(rehearsal, self.run.uid))
        yield ""
        yield f"# ===== clean-up, on every host: what these list is removed, and {self.paths.run}"
        yield from map(_command, dict.fromkeys(rehearsal.commands))
        yield _command(["rm", "-rf", self.paths.run])

    def _case(self, case: CasePlan) -> Iterator[str]:
        settings = case.settings
        yield ""
        yield f"# ===== case {settings.name}: {settings.model} on {settings.framework}, vendor {settings.vendor}"
        size = f"{settings.nnodes} node(s) x {settings.nproc} process(es)"
        yield f"# {size}, {settings.repeat} round(s), deadline {case.deadline_s:g} s"
        yield f"# parameters: {case.files.config_dir}/{case.files.config_file}"
        image = plan_image(self.plan, case) if open_image_store(self.plan.run) else None
        for node in nodes_of(case, 1):
            yield from self._node(case, node, image)

    def _node(self, case: CasePlan, node: Node, image: ImagePlan | None) -> Iterator[str]:
        yield ""
        yield f"# ----- host {node.host}, node rank {node.rank}, round {node.round}"
        yield "# the training/ tree, as a tar file on standard input, if it is not there yet"
        yield _command(["sh", "-c", UNPACK, self.paths.tree])
        yield _command(["mkdir", "-p", self.paths.node(node)])
        if self.plan.run.clear_caches:
            yield _command(["sh", "-c", DROP_CACHES])
        if image:
            yield from self._image(node, image)
        yield from self._units(case, node, image)

    def _image(self, node: Node, image: ImagePlan) -> Iterator[str]:
        run = self.plan.run
        engine = engine_of(run.container_engine)
        yield f"# the image {image.tag}, if it is not there yet"
        if run.image_distribution == "registry":
            yield _command(engine.pull(image.tag))
        if run.image_distribution == "stream" and node.rank > 0:
            yield f"# streamed from {node.case.hosts[0]}: {shlex.join(engine.save(image.tag))}"
            yield _command(engine.load())
            return
        if node.rank > 0 and run.image_distribution != "build":
            return
        local = node.host == LOCALHOST
        name = build_name(self.run.uid, node.host, image.tag)
        site = BuildSite(self.paths.tree, self.paths.work, self.run.uid, name, local)
        mounts = pip_mounts(site, run.pip)
        make, remove = pip_folder_argvs(site)
        if mounts:
            yield "# the pip settings, as a tar file on standard input; removed after the build"
            yield _command(make)
        yield from _secrets(image)
        for below, layer in zip((None, *image.layers), image.layers, strict=False):
            yield from map(_command, layer_argvs(engine, site, layer, below, image, mounts))
        if mounts:
            yield _command(remove)
        if run.image_distribution == "registry":
            yield _command(engine.push(image.tag))

    def _units(self, case: CasePlan, node: Node, image: ImagePlan | None) -> Iterator[str]:
        framework = open_framework(case.settings.framework)
        tag = image.tag if image else ""
        launch = Launch(self.plan, self.run, self.paths, self.runtime, framework, tag)
        several = len(case.hosts) > 1
        master = case.hosts[0] if several else "127.0.0.1"
        monitor = launch.monitor(node)
        task = launch.task(node, master, "<interface to its peers>" if several else "")
        runtime = self.runtime
        steps: Sequence[tuple[str, Sequence[str]]] = (
            ("sample", runtime.start_argv(monitor)),
            ("train", runtime.start_argv(task)),
            ("wait for its end", runtime.wait_argv(task.name)),
            ("stop sampling", runtime.stop_argv(monitor.name, STOP_GRACE_S)),
            ("collect", collect_argv(self.paths.node(node))),
        )
        if several:
            yield "# which interface leads to its peers"
            peer = case.hosts[1] if node.rank == 0 else master
            yield _command(["getent", "ahostsv4", peer])
            yield _command(["cat", "/proc/net/route"])
        for text, argv in steps:
            yield f"# {text}"
            yield _command(argv)


def _secrets(image: ImagePlan) -> Iterator[str]:
    """The variables that the build takes its secret arguments from, to be filled in by whoever pastes them."""
    secrets = redact_values(secret_build_args(image))
    if secrets:
        yield "# secret build arguments: they come by standard input and stand in no command"
        yield from (shlex.join(["export", f"{name}={shown}"]) for name, shown in secrets.items())


def _command(argv: Sequence[str]) -> str:
    """`argv` as it can be pasted into a shell, but for the credentials that the user's options may hold."""
    return shlex.join(map(redact_text, argv))
