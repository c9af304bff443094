"""What `doctor` starts containers of, and what these get; the engine is a FAKE that answers what it is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from run_benchmarks.doctor.engine_checks import container
from run_benchmarks.doctor.look import Patient
from run_benchmarks.plan.records import Plan
from run_benchmarks.stages.checks import Check, Place, Status
from run_benchmarks.transports.base import Completed
from tests.fakes.transports import AnsweringHost
from tests.run_benchmarks.doctor.examined import judge
from tests.run_benchmarks.plan.tree import TEST_CONF, make_tree

SECRET = "s3cr3t-of-vendor"
OPTIONS = f"-e VENDOR_LICENSE={SECRET} --device=/dev/acme0"
GIVEN = ("VENDOR_LICENSE", SECRET, "/dev/acme0")
CONF = f'{TEST_CONF}SECRETS = ["VENDOR_LICENSE"]\nACCE_CONTAINER_OPT = "{OPTIONS}"\n'
OWN, OTHER = "flagperf/acme/pytorch:0123456789ab", "example/anybody:1"
MADE = f'[["{OWN}"],"2026-01-01T00:00:00Z",100]\n'
LISTED = f"{OWN}\n{OTHER}\n"


class EngineHost(AnsweringHost):
    """A host with a FAKE engine, which keeps what it was asked for, and the variables that came with it."""

    def __init__(self, *, ids: str, runs: tuple[int, str, str] = (0, "", "")) -> None:
        answers = {
            "image ls --quiet": (0, ids, ""),
            "image inspect": (0, MADE, ""),
            "image ls": (0, LISTED, ""),
        }
        super().__init__({**answers, "docker run": runs})
        self.started: list[str] = []

    async def run(self, argv: Sequence[str], **options: Any) -> Completed:
        if "run" in argv:
            self.started.append(" ".join(argv) + str(options.get("variables") or ""))
        return await super().run(argv, **options)


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    tree = make_tree(tmp_path_factory.mktemp("plan"))
    tree.configure(test_conf=CONF)
    return tree.load()


def checked(plan: Plan, host: EngineHost) -> Check:
    places = tuple(Place(case, 0, ("node1",)) for case in plan.cases)
    return judge(container, plan, Patient(host, places, is_only_seen=True))


def test_an_image_of_ours_gets_the_devices_and_no_secret(plan: Plan) -> None:
    host = EngineHost(ids="sha256:1\n")
    check = checked(plan, host)
    assert (check.status, check.detail) == (Status.OK, f"{OWN} ran with acme's options")
    (started,) = host.started
    assert "--device=/dev/acme0" in started and OWN in started
    assert "VENDOR_LICENSE" not in started and SECRET not in started


def test_anybodys_image_gets_neither_options_nor_secrets(plan: Plan) -> None:
    host = EngineHost(ids="")
    check = checked(plan, host)
    assert check.status is Status.OK and "without any vendor's options" in check.detail
    assert host.started and not any(word in line for line in host.started for word in GIVEN)


def test_an_image_of_ours_that_lacks_true_hands_nothing_on_to_others(plan: Plan) -> None:
    host = EngineHost(ids="sha256:1\n", runs=(127, "", 'exec: "true": not there'))
    assert checked(plan, host).status is Status.SKIPPED
    own, other = host.started
    assert OWN in own and OTHER in other
    assert not any(word in other for word in GIVEN)
