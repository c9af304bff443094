"""What the controller itself sees of where a round comes from: its own code, the hosts' clocks, data and images."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

from run_benchmarks.reading import parsed
from run_benchmarks.results.provenance import ClockOffset, Harness, Origin
from run_benchmarks.round_state import RoundState
from run_benchmarks.session import Session
from run_benchmarks.stages.checks import clock
from run_benchmarks.stages.data import data

GIT_LIMIT_S = 30.0
# Of the checkout's files this one is in the commit where the code is the commit's, and not a copy inside another one.
PROOF = "HEAD:./run_benchmarks/run.py"
# What users write stands in plan.json, and what lies beside the folders reaches no host.
CODE = ("--", ":(glob)*/**", ":(exclude)run_benchmarks/config")


def harness_of(training_dir: Path, tree_digest: str) -> Harness:
    """The code in `training_dir`, by git where that is a checkout."""
    own = Harness(tree=tree_digest, python=platform.python_version())
    try:
        commit, _ = _git(training_dir, "rev-parse", "HEAD", PROOF).split()
        changes = _git(training_dir, "status", "--porcelain", *CODE)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        return Harness(tree=own.tree, python=own.python, unmeasured=_why(error))
    return Harness(commit=commit, dirty=bool(changes), tree=own.tree, python=own.python)


def origin_of(session: Session, state: RoundState) -> Origin:
    """What was seen of a round: by the preflight of its hosts, and while it got its image.

    Of one that was taken up what was seen before its ranks started counts, and not what its hosts are like now.
    """
    hosts, folder = [node.host for node in state.nodes], state.case.settings.data_dir_host
    facts = {host: {check.name: check.facts for check in session.checks.get(host, ())} for host in hosts}
    clocks = {host: of_host.get(clock.__name__) for host, of_host in facts.items()}
    manifests = {host: of_host.get(data.__name__, {}).get(folder) for host, of_host in facts.items()}
    offsets = {host: parsed(ClockOffset, fact, host) for host, fact in clocks.items() if fact}
    data_now = {host: str(digest) for host, digest in manifests.items() if digest}
    digests_now = {host: digests for host, digests in state.image_digests.items() if digests}
    before = state.origin
    return Origin(
        harness=session.harness,
        clock_offsets={**offsets, **before.clock_offsets},
        data={**data_now, **before.data},
        image_digests={**digests_now, **before.image_digests},
    )


def _git(folder: Path, *arguments: str) -> str:
    """What git prints, in English; it writes nothing."""
    environment = {**os.environ, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"}
    argv = ("git", "-C", str(folder), *arguments)
    done = subprocess.run(argv, env=environment, capture_output=True, check=True, timeout=GIT_LIMIT_S)
    return done.stdout.decode(errors="replace")


def _why(error: Exception) -> str:
    """Why git does not say it."""
    if isinstance(error, FileNotFoundError):
        return "there is no git"
    if isinstance(error, subprocess.CalledProcessError):
        return f"git: {error.stderr.decode(errors='replace').strip()}"
    return f"git: {type(error).__name__}: {error}"
