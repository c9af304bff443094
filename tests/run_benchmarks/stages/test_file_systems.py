"""Who shares a work folder is seen by tokens. The hosts are this machine, where all see one, or hosts of the lab."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks.hosts.base import Host
from run_benchmarks.names import COPY_NAME, HostPaths
from run_benchmarks.stages.collect import collect_folder
from run_benchmarks.stages.deploy import bring_tree
from run_benchmarks.stages.file_systems import FileSystems, shared_file_systems
from run_benchmarks.stages.passing import Content, Place, Site, bring, keep
from run_benchmarks.stages.run_folder import left_folders_argv
from run_benchmarks.stages.tree import pack_tree
from run_benchmarks.transports.base import TransportError
from tests.run_benchmarks.conftest import LogLines
from tests.run_benchmarks.stages.sharing_hosts import Apart, Before, Node, hosts_of
from tests.run_benchmarks.stages.training_folder import make_training
from utils.errors import FlagPerfError

UID = "run20261120094218-d7e6a7"
FILE = os.urandom(100_000)
CONTENT = Content(len(FILE), hashlib.sha256(FILE).hexdigest())


def nodes(count: int, before: Before = lambda argv: None) -> list[Host]:
    return hosts_of(*(Node(f"h{number}", before) for number in range(1, count + 1)))


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "shared" / ".flagperf").mkdir(parents=True, mode=0o700)
    return tmp_path / "shared" / ".flagperf"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    (tmp_path / "own" / ".flagperf").mkdir(parents=True, mode=0o700)
    return tmp_path / "own" / ".flagperf"


def seen(hosts: Sequence[Host], work: Path) -> FileSystems:
    return asyncio.run(shared_file_systems(hosts, str(work), UID))


def names(file_systems: FileSystems, hosts: Sequence[Host]) -> list[list[str]]:
    return [[host.name for host in group] for group in file_systems.groups(hosts)]


def test_hosts_that_share_are_told_from_those_that_do_not(work: Path, own: Path, log_lines: LogLines) -> None:
    hosts = hosts_of(Node("h1"), Apart("h2", work, own), Node("h3"), Apart("h4", work, own))
    found = seen(hosts, work)
    assert names(found, hosts) == [["h1", "h3"], ["h2", "h4"]]
    assert found.seen_here == {"h1", "h3"}
    assert found.reader("h1") is not None and found.reader("h2") is None
    assert f"h1, h3 and this machine share {work}: what is copied there is copied once" in log_lines.messages
    assert f"h2, h4 share {work}: what is copied there is copied once" in log_lines.messages


def test_no_token_stays_and_none_can_be_guessed(work: Path, own: Path) -> None:
    there: set[str] = set()

    def note(argv: tuple[str, ...]) -> None:
        there.update(path.relative_to(work).as_posix() for path in work.rglob("*"))

    seen([*nodes(2, note), *hosts_of(Apart("h3", work, own))], work)
    (folder,) = {path.partition("/")[0] for path in there}
    assert COPY_NAME.fullmatch(folder), "who cleans up after a controller that was killed knows it"
    tokens = {path.partition("/")[2] for path in there} - {""}
    assert len(tokens) == 2 and all(re.fullmatch(r"00000\d-[0-9a-f]{32}", token) for token in tokens)
    assert list(work.iterdir()) == list(own.iterdir()) == []
    seen(nodes(2, note), work)
    assert len({path.partition("/")[0] for path in there}) == 2, "a new name each time"


def test_tokens_of_a_controller_that_was_killed_go_with_its_run(work: Path) -> None:
    folder = work / f"copy-{UID}-0123456789ab"
    folder.mkdir()
    (folder / "000000-0123").touch()
    (work / "copy-run20261120094218-ffffff-0123456789ab").mkdir()
    subprocess.run(left_folders_argv(str(work), UID), check=True)
    assert [path.name for path in work.iterdir()] == ["copy-run20261120094218-ffffff-0123456789ab"]


def plant(work: Path, name: str) -> Before:
    """What a task of another run, which is the same user, puts among the tokens as soon as there are any."""

    def before(argv: tuple[str, ...]) -> None:
        for folder in work.glob("copy-*"):
            (folder / name).touch()

    return before


HOSTILE = {"of no form": "000000-", "first of all": "!", "with a line": "000000-a\nb", "an option": "-rf"}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_token_of_others_is_never_believed(kind: str, work: Path) -> None:
    hosts = nodes(2, plant(work, HOSTILE[kind]))
    found = seen(hosts, work)
    assert set(found.keepers.values()) <= {"h1"} and set(found.keepers) <= {"h2"}
    assert found.seen_here <= {"h1", "h2"}


def test_a_stale_token_of_an_earlier_time_is_not_looked_at(work: Path, own: Path) -> None:
    for folder in (work, own):  # a disk that was cloned
        (folder / f"copy-{UID}-0123456789ab").mkdir()
        (folder / f"copy-{UID}-0123456789ab" / f"000000-{'0' * 32}").touch()
    hosts = hosts_of(Node("h1"), Apart("h2", work, own))
    assert names(seen(hosts, work), hosts) == [["h1"], ["h2"]]


def test_a_link_in_the_place_of_the_folder_leads_nowhere(work: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (target / "kept").touch()

    def swap(argv: tuple[str, ...]) -> None:
        for folder in work.glob("copy-*"):
            if not folder.is_symlink():
                subprocess.run(["rm", "-rf", str(folder)], check=True)
                folder.symlink_to(target)

    seen(nodes(2, swap), work)
    assert (target / "kept").exists()


def test_what_cannot_be_asked_shares_with_nobody(work: Path) -> None:
    def lost(argv: tuple[str, ...]) -> None:
        raise TransportError("it is gone", where="h1")

    hosts = [*hosts_of(Node("h1", lost)), *nodes(3)[1:]]
    assert names(seen(hosts, work), hosts) == [["h1"], ["h2", "h3"]]


def test_a_folder_that_others_may_write_to_is_not_looked_at_here(work: Path) -> None:
    work.chmod(0o777)
    hosts = nodes(2)
    found = seen(hosts, work)
    assert names(found, hosts) == [["h1"], ["h2"]] and found.seen_here == frozenset()


def test_a_run_on_this_machine_alone_asks_nobody(work: Path) -> None:
    transport = Node("localhost")
    assert seen(hosts_of(transport), work) == FileSystems()
    assert transport.scripts == [""]


def test_the_code_goes_to_a_file_system_once(work: Path, own: Path, tmp_path: Path) -> None:
    tree = pack_tree(make_training(tmp_path / "training"))
    transports = [Node("h1"), Node("h2"), Apart("h3", work, own), Apart("h4", work, own)]
    hosts = hosts_of(*transports)
    paths = HostPaths(str(work), f"{work}/tree", f"{work}/runs/1", f"{work}/runs/1/1")
    site = Site(str(work), UID, file_systems=seen(hosts, work))
    assert asyncio.run(bring_tree(hosts, tree, paths, site)) == []
    assert [each.sent for each in transports] == [len(tree.archive), 0, len(tree.archive), 0]
    assert (work / "tree").is_dir() and (own / "tree").is_dir()


class Bring:
    """Brings FILE to hosts; `used` is what each of them has read."""

    def __init__(self, work: Path) -> None:
        self.work, self.filled = work, list[str]()
        self.used: dict[str, bytes] = {}

    async def fill(self, places: Sequence[Place]) -> tuple[Content, Mapping[str, FlagPerfError]]:
        for place in places:
            self.filled.append(place.host.name)
            await keep(place, FILE, 60)
        return CONTENT, {}

    async def use(self, place: Place) -> None:
        done = await place.host.transport.run(("sha256sum", f"{place.work}/{place.copy}"))
        self.used[place.host.name] = done.stdout[:64].encode()

    def run(
        self, hosts: Sequence[Host], file_systems: FileSystems, **options: Any
    ) -> dict[str, FlagPerfError]:
        site = Site(str(self.work), UID, "", file_systems)
        given = {"room": CONTENT.size, "fill": self.fill, "use": self.use, **options}
        return asyncio.run(bring("it", hosts, site, **given))


def test_a_copy_serves_all_that_share_it(work: Path, own: Path) -> None:
    hosts = hosts_of(*map(Node, ("h1", "h2", "h3")), Apart("h4", work, own), Apart("h5", work, own))
    bringing = Bring(work)
    assert bringing.run(hosts, seen(hosts, work)) == {}
    assert bringing.filled == ["h1", "h4"]
    assert bringing.used == {host.name: CONTENT.sha256.encode() for host in hosts}
    assert list(work.iterdir()) == list(own.iterdir()) == []


def test_who_only_says_that_it_shares_does_not_use_what_is_not_there(work: Path, own: Path) -> None:
    hosts = hosts_of(Node("h1"), Node("h2"), Apart("h3", work, own))
    bringing = Bring(work)
    failed = bringing.run(hosts, FileSystems({"h2": "h1", "h3": "h1"}))
    assert list(failed) == ["h3"] and set(bringing.used) == {"h1", "h2"}


def test_a_copy_that_was_altered_meanwhile_is_used_by_nobody_else(work: Path) -> None:
    hosts, bringing = nodes(3), Bring(work)

    async def fill(places: Sequence[Place]) -> tuple[Content, Mapping[str, FlagPerfError]]:
        await bringing.fill(places)
        Path(places[0].work, places[0].copy).write_bytes(b"other")
        return CONTENT, {}

    failed = bringing.run(hosts, seen(hosts, work), fill=fill)
    assert sorted(failed) == ["h2", "h3"] and list(bringing.used) == ["h1"]


def test_where_no_copy_can_be_made_all_that_would_share_it_have_none(work: Path) -> None:
    hosts, bringing = nodes(3), Bring(work)
    failed = bringing.run(hosts, seen(hosts, work), room=2**60)
    assert sorted(failed) == ["h1", "h2", "h3"] and bringing.used == {}


def make_logs(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "rank0.out.log").write_bytes(b"one line\n" * 1000)
    (folder / "checkpoint").mkdir()
    (folder / "checkpoint" / "notes").write_text("kept\n")


def collected(host: Node, work: Path, target: Path, near: Node | None) -> dict[str, bytes]:
    assert asyncio.run(collect_folder(host, str(work), "runs/r/h1", target, 60, near=near)) == ()
    files = (path for path in target.rglob("*") if path.is_file())
    return {path.relative_to(target).as_posix(): path.read_bytes() for path in files}


def test_logs_that_this_machine_sees_are_read_here(work: Path, tmp_path: Path) -> None:
    make_logs(work / "runs/r/h1")
    host, near = Node("h1"), Node("here")
    logs = collected(host, work, tmp_path / "home", near)
    assert sorted(logs) == ["checkpoint/notes", "rank0.out.log"] and len(logs["rank0.out.log"]) == 9000
    assert len(near.scripts[1:]) == 2, "a stream for each folder"
    assert len(host.scripts[1:]) == 1, "it says what there is, and sends nothing"


def test_logs_of_which_this_machine_sees_less_than_the_host_come_from_the_host(
    work: Path, own: Path, tmp_path: Path
) -> None:
    """As a network file system does whose client has not asked again since."""
    make_logs(work / "runs/r/h1")
    make_logs(own / "runs/r/h1")
    with (work / "runs/r/h1/rank0.out.log").open("ab") as log:
        log.write(b"the last line\n")
    (own / "runs/r/h1/checkpoint/notes").unlink()
    logs = collected(Node("h1"), work, tmp_path / "home", Apart("here", work, own))
    assert logs["rank0.out.log"].endswith(b"the last line\n") and logs["checkpoint/notes"] == b"kept\n"


def test_logs_come_from_the_host_where_nothing_is_seen_here(work: Path, own: Path, tmp_path: Path) -> None:
    make_logs(work / "runs/r/h1")
    assert sorted(collected(Node("h1"), work, tmp_path / "home", Apart("here", work, own))) == [
        "checkpoint/notes",
        "rank0.out.log",
    ]
