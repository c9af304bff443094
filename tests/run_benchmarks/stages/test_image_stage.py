"""Who builds, who receives, and what is refused: several hosts with a FAKE engine each (tests/fakes)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from run_benchmarks.failures import failure_on
from run_benchmarks.images.build import BuildSite
from run_benchmarks.images.layers import ImagePlan, Layer
from run_benchmarks.images.store import ImageStore
from run_benchmarks.plan.pip_record import PipSettings
from run_benchmarks.plan.records import ClusterSettings
from run_benchmarks.plan.secrets import Secrets
from run_benchmarks.runtimes.engine import engine_of
from run_benchmarks.stages import image, progress
from run_benchmarks.stages.image import ImageStage
from run_benchmarks.stages.image_stream import Counter, stream_image
from run_benchmarks.stages.passing import FIRST, PASS_ON_FROM
from run_benchmarks.stages.progress import (
    FIRST_BYTES,
    LAST_BYTES,
    LONGEST_LINE,
    LONGEST_SEARCHED,
    LONGEST_WORDS,
    LastWords,
    whole_lines,
)
from run_benchmarks.transports import open_transport
from run_benchmarks.transports.base import CommandError, TransportError
from tests.fakes.container_engine import FakeEngineHost, fake_engine
from tests.lab.fixtures import LabFactory
from tests.lab.images import stream as load_into
from tests.lab.tiny_image import build as build_tiny_image
from tests.run_benchmarks.conftest import LogLines
from utils.errors import FlagPerfError
from utils.records import Failure, FailureClass, Stage, Verdict

TAG = "flagperf/acme-pytorch:0123456789ab"
UID = "run20261120094218-d7e6a7"


class Cluster:
    """Hosts h1..hn (or from `first` on) with a FAKE engine each."""

    def __init__(self, folder: Path, size: int, *, first: int = 1, image_size: int = 100) -> None:
        self.store = ImageStore(engine_of(fake_engine(folder)))
        self.folder = folder
        (folder / "work").mkdir(mode=0o700, exist_ok=True)
        self.hosts = {
            name: FakeEngineHost(name, folder, size=image_size)
            for name in (f"h{number}" for number in range(first, first + size))
        }

    def stage(self, distribution: str) -> ImageStage:
        site = BuildSite("/tree", str(self.folder / "work"), UID, "flagperf-build", False)
        sites = {name: replace(site, name=f"flagperf-build-{name}") for name in self.hosts}
        image = ImagePlan((Layer("dockerfile", TAG, ("acme/docker_image/pytorch",)),), ())
        reached = dict.fromkeys(self.hosts, "127.0.0.1")
        return ImageStage(
            self.store, self.hosts, sites, image, PipSettings(), distribution, self.folder / "logs", reached
        )

    def run(self, distribution: str) -> dict[str, str]:
        return {host: image.id for host, image in asyncio.run(self.stage(distribution).run()).items()}

    def failure(self, distribution: str) -> Failure:
        """What the round would report of a stage that must fail."""
        with pytest.raises(FlagPerfError) as caught:
            self.run(distribution)
        return failure_on(caught.value.where, Stage.IMAGE, caught.value)

    def asked(self, verb: str) -> list[str]:
        """The hosts whose engine was asked to do this."""
        return [name for name, host in self.hosts.items() if host.asked(verb)]


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image, "TRANSFER_PAUSES_S", (0.0, 0.0))


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path, 4)


@pytest.mark.parametrize("distribution", ["stream", "build", "registry"])
def test_an_image_that_is_everywhere_is_left_alone(distribution: str, cluster: Cluster) -> None:
    for host in cluster.hosts.values():
        host.put_image(TAG, "sha256:same")
    assert cluster.run(distribution) == dict.fromkeys(cluster.hosts, "sha256:same")
    assert all(cluster.asked(verb) == [] for verb in ("build", "save", "load", "push", "pull", "run"))


def test_stream_one_builds_the_others_receive(cluster: Cluster) -> None:
    assert cluster.run("stream") == dict.fromkeys(cluster.hosts, "sha256:built-on-h1")
    assert cluster.asked("build") == ["h1"]
    assert len(cluster.hosts["h1"].asked("save")) == 1  # one stream for all
    assert cluster.asked("load") == ["h2", "h3", "h4"]


def test_stream_takes_the_image_from_where_it_is(cluster: Cluster) -> None:
    cluster.hosts["h3"].put_image(TAG, "sha256:old")
    assert cluster.run("stream") == dict.fromkeys(cluster.hosts, "sha256:old")
    assert cluster.asked("build") == []
    assert cluster.asked("save") == ["h3"]


def test_the_build_output_is_in_the_cases_log(cluster: Cluster) -> None:
    cluster.run("stream")
    logs = {path.name: path.read_text() for path in (cluster.folder / "logs").iterdir()}
    assert list(logs) == ["image_build_h1.log"]
    assert f"building {TAG}" in logs["image_build_h1.log"]


def test_the_log_of_a_build_shows_no_secret(cluster: Cluster) -> None:
    """Also one that comes in two pieces, or at the end of an output that breaks off."""
    stage = cluster.stage("build")
    secrets = Secrets(held=frozenset({"sesame-1", "h\u00fcgel-2"}))
    stage = replace(stage, image=replace(stage.image, hide=secrets.hide))
    cluster.hosts["h1"].fail("build", "x sesame-1 \\377 y\nopen h\u00fcgel-2")
    with pytest.raises(FlagPerfError):
        asyncio.run(stage.run())
    log = (cluster.folder / "logs" / "image_build_h1.log").read_text()
    assert log.endswith("x *** \\377 y\nopen ***\n")


@pytest.mark.parametrize("size", [50, 1000, 10**6])
def test_a_log_is_written_in_whole_lines_and_nothing_of_it_is_lost(size: int, tmp_path: Path) -> None:
    output = b"one sesame\ntwo \xff\xfe sesame\r\n" + b"-" * (2 * LONGEST_LINE) + b"\nlast sesame"
    with (
        (tmp_path / "log").open("wb") as file,
        whole_lines(file, Secrets(held=frozenset({"sesame"})).hide) as take,
    ):
        for start in range(0, len(output), size):
            take(output[start : start + size])
    assert (tmp_path / "log").read_bytes() == output.replace(b"sesame", b"***")


@pytest.mark.parametrize("size", [1000, LONGEST_LINE, LONGEST_LINE + 1, 10**6])
@pytest.mark.parametrize("at", [LONGEST_LINE - 3, LONGEST_LINE - 1, LONGEST_LINE, 3 * LONGEST_LINE - 5])
def test_a_line_without_end_is_not_written_up_to_the_middle_of_a_secret(
    size: int, at: int, tmp_path: Path
) -> None:
    output = b"-" * at + b"sesame" + b"-" * (at // 2) + "\u00e4".encode() * LONGEST_LINE
    with (
        (tmp_path / "log").open("wb") as file,
        whole_lines(file, Secrets(held=frozenset({"sesame"})).hide) as take,
    ):
        for start in range(0, len(output), size):
            take(output[start : start + size])
    assert (tmp_path / "log").read_bytes() == output.replace(b"sesame", b"***")


def test_of_a_build_that_prints_without_end_the_log_has_both_ends(tmp_path: Path) -> None:
    """Also where a later round appends to it; what hides secrets has had all of it."""
    path = tmp_path / "log"
    for count in (34, 2):
        with path.open("ab") as file, whole_lines(file, lambda text: text.replace("sesame", "***")) as take:
            take(b"begin sesame\n")
            for _ in range(count):
                take(b"-" * (2**20 - 1) + b"\n")
            assert file.tell() <= FIRST_BYTES + 2 * LAST_BYTES, "while it goes on"
            take(b"end sesame\n")
    log = path.read_bytes()
    assert len(log) < FIRST_BYTES + 2 * LAST_BYTES + 200
    assert log.startswith(b"begin ***\n") and log.endswith(b"-\nend ***\n")
    assert log.count(b"end ***") == log.count(b"bytes of this log were not kept") == 2


def test_a_large_image_reaches_every_host_unaltered(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, 3, image_size=50_000_000)
    cluster.run("stream")
    sizes = {path.stat().st_size for path in tmp_path.glob("h*/image-*")}
    assert len(list(tmp_path.glob("h*/image-*"))) == 3
    assert sizes == {50_000_000 + len("sha256:built-on-h1\n")}


def test_a_host_that_fails_to_load_does_not_keep_the_others_from_it(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, 4, image_size=20_000_000)
    cluster.hosts["h1"].put_image(TAG, "sha256:here")
    cluster.hosts["h3"].fail("load", "no space left on device")
    receivers = [cluster.hosts[name] for name in ("h2", "h3", "h4")]
    errors = asyncio.run(stream_image(cluster.store, cluster.hosts["h1"], receivers, TAG, Counter()))
    assert list(errors) == ["h3"]
    assert isinstance(errors["h3"], CommandError)
    assert "no space left" in errors["h3"].message
    assert len(list(tmp_path.glob("h*/image-*"))) == 3


def test_what_nobody_takes_any_more_is_not_sent_to_its_end(cluster: Cluster) -> None:
    """A host that is lost at the start of a stream must not cost the time that the whole image takes."""
    cluster.hosts["h1"].put_image(TAG, "sha256:here")
    cluster.hosts["h1"].delay(3600)
    for name in ("h2", "h3"):
        cluster.hosts[name].fail("load", "unexpected EOF")
    receivers = [cluster.hosts[name] for name in ("h2", "h3")]
    streaming = stream_image(cluster.store, cluster.hosts["h1"], receivers, TAG, Counter())
    assert list(asyncio.run(asyncio.wait_for(streaming, 60))) == ["h2", "h3"]


def test_a_failed_load_is_a_distribution_failure_of_that_host(cluster: Cluster) -> None:
    cluster.hosts["h2"].fail("load", "unexpected EOF")
    failure = cluster.failure("stream")
    assert (failure.verdict, failure.failure_class, failure.host) == (
        Verdict.FAILED,
        FailureClass.IMAGE_NOT_DISTRIBUTED,
        "h2",
    )
    assert "unexpected EOF" in failure.evidence


def test_a_stream_that_breaks_off_leaves_no_half_image(cluster: Cluster) -> None:
    cluster.hosts["h1"].put_image(TAG, "sha256:here")
    cluster.hosts["h1"].fail("save", "the disk is broken")
    failure = cluster.failure("stream")
    assert (failure.failure_class, failure.host) == (FailureClass.IMAGE_NOT_DISTRIBUTED, "h1")
    assert len(list(cluster.folder.glob("h*/image-*"))) == 1


def test_a_stream_that_names_another_image_reaches_nobody_and_its_host_is_named(cluster: Cluster) -> None:
    class Hostile(FakeEngineHost):
        async def run(self, argv, **options):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN003, ANN202
            return await super().run((*argv[:-1], "others:1") if "save" in argv else argv, **options)

    cluster.hosts = {"h0": Hostile("h0", cluster.folder), **cluster.hosts}
    for tag in (TAG, "others:1"):
        cluster.hosts["h0"].put_image(tag, "sha256:here")
    failure = cluster.failure("stream")
    assert (failure.failure_class, failure.host) == (FailureClass.IMAGE_NOT_DISTRIBUTED, "h0")
    assert "names others:1" in failure.message and "trust" in failure.remedy
    assert not list(cluster.folder.glob("h[1-4]/image-*"))


def test_many_hosts_get_it_from_each_other(tmp_path: Path, log_lines: LogLines) -> None:
    """From so many receivers on; fewer get all of it from here."""
    for count in (PASS_ON_FROM, PASS_ON_FROM + 1):
        folder = tmp_path / str(count)
        folder.mkdir()
        cluster = Cluster(folder, count, image_size=1_000_000)
        assert cluster.run("stream") == dict.fromkeys(cluster.hosts, "sha256:built-on-h1")
        assert cluster.asked("save") == ["h1"] and len(cluster.asked("load")) == count - 1
        told = [line for line in log_lines.messages if "hosts got it from each other" in line]
        assert len(told) == (count > PASS_ON_FROM)
        assert not list((folder / "work").glob("copy-*"))
    assert f"{TAG}: 6 of 8 hosts got it from each other" in told[0]


def test_who_could_not_get_it_from_another_gets_it_from_here(tmp_path: Path, log_lines: LogLines) -> None:
    """A host whose engine fails with its copy, and then does not; one with no interpreter."""

    class Once(FakeEngineHost):
        async def run(self, argv, **options):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN003, ANN202
            done = await super().run(argv, **options)
            (self.store / "fail-load").unlink(missing_ok=True)
            return replace(done, returncode=1) if "load" in argv and "sh" in argv else done

    class Bare(FakeEngineHost):
        async def run(self, argv, **options):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN003, ANN202
            return await super().run([word.replace("python3", "no-python") for word in argv], **options)

    cluster = Cluster(tmp_path, PASS_ON_FROM + 1)
    cluster.hosts |= {"x1": Once("x1", tmp_path), "x2": Bare("x2", tmp_path)}
    assert cluster.run("stream") == dict.fromkeys(cluster.hosts, "sha256:built-on-h1")
    warned = [line for line in log_lines.messages if f"gets {TAG} from this machine" in line]
    assert [line.partition(":")[0] for line in sorted(warned)] == ["x1", "x2"]
    assert cluster.asked("save") == ["h1"] and len(cluster.hosts["h1"].asked("save")) == 2


def test_of_an_archive_that_names_another_image_no_host_loads_anything(tmp_path: Path) -> None:
    """Also where its names come last, and many hosts were sent what is before them."""

    class Hostile(FakeEngineHost):
        async def run(self, argv, **options):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN003, ANN202
            return await super().run((*argv[:-1], "others:1") if "save" in argv else argv, **options)

    cluster = Cluster(tmp_path, PASS_ON_FROM, image_size=5_000_000)
    cluster.hosts = {"h0": Hostile("h0", tmp_path), **cluster.hosts}
    for tag in (TAG, "others:1"):
        cluster.hosts["h0"].put_image(tag, "sha256:here")
    failure = cluster.failure("stream")
    assert (failure.failure_class, failure.host) == (FailureClass.IMAGE_NOT_DISTRIBUTED, "h0")
    assert "names others:1" in failure.message and "trust" in failure.remedy
    assert cluster.asked("load") == [] and not list((tmp_path / "work").glob("copy-*"))


def test_a_source_that_breaks_off_once_is_asked_again(tmp_path: Path, log_lines: LogLines) -> None:
    class Once(FakeEngineHost):
        async def run(self, argv, **options):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN003, ANN202
            done = await super().run(argv, **options)
            if "save" in argv:
                (self.store / "fail-save").unlink(missing_ok=True)
            return done

    cluster = Cluster(tmp_path, PASS_ON_FROM)
    cluster.hosts = {"h0": Once("h0", tmp_path), **cluster.hosts}
    cluster.hosts["h0"].put_image(TAG, "sha256:here")
    cluster.hosts["h0"].fail("save", "the disk is busy")
    assert cluster.run("stream") == dict.fromkeys(cluster.hosts, "sha256:here")
    assert any("was not passed on: h0:" in line for line in log_lines.messages)


def test_a_host_that_is_lost_is_unreachable(cluster: Cluster) -> None:
    class Lost(FakeEngineHost):
        async def run(self, argv, **options):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN003, ANN202
            if "load" in argv:
                raise TransportError("contact was lost", where=self.host)
            return await super().run(argv, **options)

    cluster.hosts["h5"] = Lost("h5", cluster.folder)
    failure = cluster.failure("stream")
    assert (failure.verdict, failure.host) == (Verdict.UNREACHABLE, "h5")


class Shaky(FakeEngineHost):
    """Contact is lost in the middle of the first loads and pulls."""

    losses = 2

    async def run(self, argv, **options):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN003, ANN201
        if {"load", "pull"} & {*argv} and self.losses:
            self.losses -= 1
            raise TransportError("contact was lost", where=self.host)
        return await super().run(argv, **options)


@pytest.mark.parametrize("distribution", ["stream", "registry"])
def test_an_image_is_sent_again_to_those_that_lost_contact_alone(
    distribution: str, cluster: Cluster, log_lines: LogLines
) -> None:
    cluster.hosts["h5"] = Shaky("h5", cluster.folder)
    cluster.run(distribution)
    assert sum("h5: contact was lost; trying again" in line for line in log_lines.messages) == 2
    verb = "load" if distribution == "stream" else "pull"
    assert [len(cluster.hosts[name].asked(verb)) for name in ("h2", "h3", "h5")] == [1, 1, 1]


def test_a_host_that_refuses_an_image_is_not_asked_again(cluster: Cluster, log_lines: LogLines) -> None:
    cluster.hosts["h5"] = Shaky("h5", cluster.folder)
    cluster.hosts["h3"].fail("load", "no space left on device")
    assert cluster.failure("stream").host == "h3"
    assert "trying again" not in log_lines.text


def test_a_registry_that_is_busy_is_asked_again(cluster: Cluster, log_lines: LogLines) -> None:
    cluster.hosts["h1"].fail("push", "received unexpected HTTP status: 503 Service Unavailable")
    assert cluster.failure("registry").failure_class is FailureClass.IMAGE_NOT_DISTRIBUTED
    assert sum("trying again" in line for line in log_lines.messages) == 2


def test_a_failed_build_is_a_build_failure(cluster: Cluster) -> None:
    cluster.hosts["h1"].fail("build", "Step 2/3 : RUN make\nmake: *** no rule")
    failure = cluster.failure("stream")
    assert (failure.failure_class, failure.host) == (FailureClass.IMAGE_NOT_BUILT, "h1")
    assert "make: *** no rule" in failure.evidence
    assert "make: *** no rule" in (cluster.folder / "logs" / "image_build_h1.log").read_text()
    assert cluster.asked("save") == []


def test_build_every_host_builds_what_it_lacks_and_the_software_is_compared(cluster: Cluster) -> None:
    cluster.hosts["h2"].put_image(TAG, "sha256:of-yesterday")
    for host in cluster.hosts.values():
        (host.store / "software").write_text("Python 3.11.2\ntorch==2.13.0\n")
    ids = cluster.run("build")
    assert ids == {
        "h1": "sha256:built-on-h1",
        "h2": "sha256:of-yesterday",
        "h3": "sha256:built-on-h3",
        "h4": "sha256:built-on-h4",
    }
    assert cluster.asked("build") == ["h1", "h3", "h4"]
    assert cluster.asked("run") == ["h1", "h2", "h3", "h4"]
    assert {path.name for path in (cluster.folder / "logs").iterdir()} == {
        f"image_build_h{number}.log" for number in (1, 3, 4)
    }


def test_build_other_versions_on_a_host_are_refused(cluster: Cluster) -> None:
    for host in cluster.hosts.values():
        (host.store / "software").write_text("Python 3.11.2\ntorch==2.13.0\n")
    (cluster.hosts["h3"].store / "software").write_text("Python 3.11.2\ntorch==2.12.1\n")
    failure = cluster.failure("build")
    assert failure.failure_class is FailureClass.IMAGES_DIFFER
    assert failure.host == "h[1-4]"
    assert "IMAGE_DISTRIBUTION = 'stream'" in failure.remedy


def test_stream_different_images_under_one_tag_are_refused(cluster: Cluster) -> None:
    for name, host in cluster.hosts.items():
        host.put_image(TAG, "sha256:new" if name == "h2" else "sha256:old")
    failure = cluster.failure("stream")
    assert failure.failure_class is FailureClass.IMAGES_DIFFER
    assert "h2 sha256:new" in failure.message
    assert f"image rm {TAG}" in failure.remedy


def test_registry_that_has_it_is_only_pulled_from(cluster: Cluster) -> None:
    cluster.hosts["h1"].put_image(TAG, "sha256:published")
    cluster.run("registry")
    again = Cluster(cluster.folder, 2, first=11)  # other hosts, the same registry
    assert again.run("registry") == {"h11": "sha256:published", "h12": "sha256:published"}
    assert again.asked("build") == again.asked("push") == []


def test_registry_that_lacks_it_gets_it_from_the_host_that_builds(cluster: Cluster) -> None:
    assert cluster.run("registry") == dict.fromkeys(cluster.hosts, "sha256:built-on-h1")
    assert (cluster.asked("build"), cluster.asked("push")) == (["h1"], ["h1"])
    assert cluster.asked("save") == []


@pytest.mark.parametrize(
    ("distribution", "lines"),
    [
        ("stream", [f"h1: building {TAG} (output: ", f"h1: streaming {TAG} (0.0 MiB) to h2"]),
        (
            "registry",
            [
                f"h1: pulling {TAG} from flagperf",
                f"h1: building {TAG} (output: ",
                f"h1: pushing {TAG} (0.0 MiB) to flagperf",
                f"h2: pulling {TAG} from flagperf",
            ],
        ),
    ],
)
def test_what_takes_long_is_told_when_it_begins_and_while_it_goes_on(
    distribution: str,
    lines: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    log_lines: LogLines,
) -> None:
    monkeypatch.setattr(progress, "LINE_EVERY_S", 0.1)
    cluster = Cluster(tmp_path, 2)
    for host in cluster.hosts.values():
        host.delay(1.0)
    cluster.run(distribution)
    position = -1
    for line in lines:
        told = [number for number, message in enumerate(log_lines.messages) if message.startswith(line)]
        assert len(told) > 2 and told[0] > position, (
            "one when it begins, after the step before, and some after it"
        )
        position = told[0]
    (end, *_) = [message for message in log_lines.messages if "streaming" in message or "pushing" in message][
        -1:
    ]
    assert ": done after " in end
    _, *meanwhile = [message for message in log_lines.messages if message.startswith(f"h1: building {TAG}")]
    assert any(message.endswith(f" s, building {TAG}") for message in meanwhile), (
        "the last line of its output"
    )


def test_registry_that_refuses_is_a_distribution_failure(cluster: Cluster) -> None:
    cluster.hosts["h1"].fail("push", "denied: requested access to the resource is denied")
    failure = cluster.failure("registry")
    assert (failure.failure_class, failure.host) == (FailureClass.IMAGE_NOT_DISTRIBUTED, "h1")
    assert "denied" in failure.evidence
    assert "login" in failure.remedy


def test_registry_host_that_cannot_pull_is_named(cluster: Cluster) -> None:
    cluster.hosts["h3"].fail("pull", "x509: certificate signed by unknown authority")
    failure = cluster.failure("registry")
    assert (failure.failure_class, failure.host) == (FailureClass.IMAGE_NOT_DISTRIBUTED, "h3")
    assert "insecure-registries" in failure.remedy


def test_an_engine_that_does_not_answer_is_no_missing_image(cluster: Cluster) -> None:
    cluster.hosts["h2"].fail("image", "Cannot connect to the Docker daemon")
    failure = cluster.failure("stream")
    assert failure.host == "h2"
    assert "Cannot connect" in failure.evidence
    assert cluster.asked("build") == []


def test_real_engines_of_two_hosts_end_with_the_same_image(
    lab: LabFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Real engines, real ssh: what h1 has is streamed to h2."""
    hosts = lab(hosts=2)
    monkeypatch.setenv("HOME", str(hosts.home))
    tag = build_tiny_image()
    hosts.ssh(2, "docker", "image", "rm", "--force", tag, check=False)
    load_into([tag], hosts.ssh_argv(1, ["docker", "load"]))
    image_id = hosts.ssh(1, "docker", "image", "inspect", "--format", "{{.Id}}", tag).stdout.strip()

    async def scenario() -> dict[str, str]:
        cluster = ClusterSettings(hosts=("h1", "h2"))
        transports = {host: open_transport(host, cluster) for host in cluster.hosts}
        sites = dict.fromkeys(transports, BuildSite("/tree", "/srv/flagperf", "run1", "flagperf-b", False))
        image = ImagePlan((Layer("dockerfile", tag, ("x",)),), ())
        stage = ImageStage(
            ImageStore(engine_of("docker")), transports, sites, image, PipSettings(), "stream", tmp_path
        )
        try:
            return await asyncio.wait_for(stage.run(), timeout=120)
        finally:
            for transport in transports.values():
                await transport.close()

    assert {host: image.id for host, image in asyncio.run(scenario()).items()} == {
        "h1": image_id,
        "h2": image_id,
    }
    assert hosts.ssh(2, "docker", "run", "--rm", tag, "sh", "-c", "echo works").stdout == "works\n"


def test_real_engines_pass_an_image_on(
    lab: LabFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log_lines: LogLines
) -> None:
    """Real engines, real ssh, hosts that reach each other: h1 has the image, and h4 gets it from a peer."""
    monkeypatch.setattr(image, "PASS_ON_FROM", FIRST + 1)
    hosts = lab(hosts=FIRST + 2)
    monkeypatch.setenv("HOME", str(hosts.home))
    tag = build_tiny_image()
    names = [f"h{number}" for number in range(1, FIRST + 3)]
    for number in range(2, FIRST + 3):
        hosts.ssh(number, "docker", "image", "rm", "--force", tag, check=False)
    load_into([tag], hosts.ssh_argv(1, ["docker", "load"]))

    async def scenario() -> set[str]:
        cluster = ClusterSettings(hosts=tuple(names))
        transports = {host: open_transport(host, cluster) for host in cluster.hosts}
        sites = dict.fromkeys(
            transports, BuildSite("/tree", "/var/tmp/fp/.flagperf", UID, "flagperf-b", False)
        )
        plan = ImagePlan((Layer("dockerfile", tag, ("x",)),), ())
        store = ImageStore(engine_of("docker"))
        stage = ImageStage(store, transports, sites, plan, PipSettings(), "stream", tmp_path)
        try:
            images = await asyncio.wait_for(stage.run(), timeout=120)
        finally:
            for transport in transports.values():
                await transport.close()
        return {each.id for each in images.values()}

    assert len(asyncio.run(scenario())) == 1
    assert any("1 of 3 hosts got it from each other" in line for line in log_lines.messages)
    assert not [line for line in log_lines.messages if "from this machine:" in line]
    last = len(names)
    assert hosts.ssh(last, "docker", "run", "--rm", tag, "sh", "-c", "echo works").stdout == "works\n"
    assert hosts.ssh(last, "ls", "-A", "/var/tmp/fp/.flagperf").stdout == ""


def test_the_last_words_of_a_build_are_cut_before_they_are_searched_for_secrets() -> None:
    searched = []
    last = LastWords(lambda line: searched.append(len(line)) or line)  # type: ignore[func-returns-value]
    asyncio.run(last.take(b"-token" * 1_000_000 + b"\n"))
    assert str(last) == ("-token" * LONGEST_WORDS)[:LONGEST_WORDS]
    assert searched == [LONGEST_SEARCHED]


def test_the_last_words_of_a_build_begin_where_their_line_does() -> None:
    """Else they could begin within a secret, which nothing knows again."""
    last = LastWords(Secrets(held=frozenset({"open sesame"})).hide)
    for chunk in (b"x" * 50 + b"open sesame" + b"-" * 197, b"-" * 10_000, b"\n"):
        asyncio.run(last.take(chunk))
    assert str(last) == "x" * 50 + "***" + "-" * (LONGEST_WORDS - 53)
