"""Reaching a host: the user's ssh configuration, keys, agents, jump hosts, and what is said when it fails."""

from __future__ import annotations

import asyncio
import errno
import getpass
import os
import pwd
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncssh
import pytest

from run_benchmarks import host_log
from run_benchmarks.plan.records import ClusterSettings
from run_benchmarks.transports import open_transport
from run_benchmarks.transports.base import AuthenticationError, HostKeyError, Transport, TransportError
from run_benchmarks.transports.ssh import connect, options
from run_benchmarks.transports.ssh.connect_errors import explain
from run_benchmarks.transports.ssh.options import Address, resolve
from tests.ports import free_port
from tests.run_benchmarks.conftest import LogLines
from tests.run_benchmarks.transports.conftest import Host, host_at
from tests.run_benchmarks.transports.sshd import Sshd, make_key
from utils.records import FailureClass


def named(name: str, **settings: object) -> Host:
    """A host that the ssh configuration must make known."""
    return Host(name, ClusterSettings(hosts=(name,), **settings))  # type: ignore[arg-type]


def answers(host: Host) -> bool:
    return host.use(lambda t: t.run(["echo", "here"])).stdout == "here\n"


def alias(server: Sshd, name: str = "node1", *lines: str) -> str:
    own = "".join(f"  {line}\n" for line in lines)
    return f"Host {name}\n  HostName 127.0.0.1\n  Port {server.port}\n  User {getpass.getuser()}\n{own}"


def test_an_alias_with_hostname_port_and_user(sshd: Sshd) -> None:
    sshd.configure(alias(sshd))
    assert answers(named("node1"))


def test_cluster_conf_stands_above_the_ssh_configuration(sshd: Sshd) -> None:
    sshd.configure("Host 127.0.0.1\n  Port 1\n  User nobody\n")
    assert answers(host_at(sshd, ssh_user=getpass.getuser()))


def test_included_and_matched_configuration(sshd: Sshd) -> None:
    sshd.configure("Include conf.d/*\nMatch host node*\n  IdentityFile ~/.ssh/id_ed25519\n")
    (sshd.home / ".ssh" / "conf.d").mkdir()
    (sshd.home / ".ssh" / "conf.d" / "cluster").write_text(alias(sshd))
    assert answers(named("node1"))


def test_a_key_file_that_is_configured_and_missing_is_passed_over(sshd: Sshd) -> None:
    sshd.configure("Host *\n  IdentityFile ~/.ssh/missing\n  IdentityFile %d/.ssh/id_ed25519\n")
    assert answers(host_at(sshd))


def test_a_key_of_another_name(sshd: Sshd) -> None:
    (sshd.home / ".ssh" / "id_ed25519").rename(sshd.home / "cluster_key")
    sshd.configure("Host *\n  IdentityFile ~/cluster_key\n  IdentitiesOnly yes\n")
    assert answers(host_at(sshd))


def test_a_user_certificate(make_sshd: Callable[..., Sshd]) -> None:
    server = make_sshd()
    authority = make_key(server.folder / "user_authority")
    key = f"{server.home}/.ssh/id_ed25519.pub"
    subprocess.run(["ssh-keygen", "-qs", str(authority), "-I", "x", "-n", getpass.getuser(), key], check=True)
    server.stop()
    server.settings = (f"TrustedUserCAKeys {authority}.pub", "AuthorizedKeysFile none")
    server.start()
    assert answers(host_at(server))


@pytest.mark.parametrize("configuration", ["", "Host *\n  IdentityFile ~/.ssh/id_ed25519\n"])
def test_a_key_is_read_once_for_all_hosts_and_again_once_it_is_another(
    sshd: Sshd, configuration: str
) -> None:
    sshd.configure(configuration)
    cluster = ClusterSettings(hosts=("a", "b"))
    keys = [resolve(Address(name), cluster).keyword_options["client_keys"][0] for name in cluster.hosts]
    assert keys[0]._key is keys[1]._key
    keys[0].set_sig_algorithm(b"another")  # as a login notes what its server takes
    assert keys[1].sig_algorithm == b"ssh-ed25519"
    key = sshd.home / ".ssh" / "id_ed25519"
    for path in (key, Path(f"{key}.pub")):
        path.unlink()
    make_key(key)
    with pytest.raises(AuthenticationError):
        answers(host_at(sshd))


def test_a_configured_key_that_cannot_be_read_leaves_the_usual_ones_alone(sshd: Sshd) -> None:
    """As in ssh, a host with a key of its own is not offered the others."""
    other = make_key(sshd.home / "encrypted")
    subprocess.run(["ssh-keygen", "-qp", "-N", "secret", "-f", str(other)], check=True, capture_output=True)
    sshd.configure(f"Host *\n  IdentityFile {other}\n")
    with pytest.raises(AuthenticationError):
        answers(host_at(sshd))


def test_what_the_configuration_says_at_last_is_read_too(sshd: Sshd) -> None:
    sshd.configure(f"Match final\n  Port {sshd.port}\n")
    assert answers(named("127.0.0.1"))


@contextmanager
def agent_with(key: Path, folder: Path) -> Iterator[str]:
    """An ssh-agent of this test's own that holds `key`; yields its socket."""
    path = str(folder / "agent")
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", path], stdout=subprocess.DEVNULL)
    try:
        environment = {**os.environ, "SSH_AUTH_SOCK": path}
        add = f"until ssh-add -q {key}; do sleep 0.05; done"
        subprocess.run(["sh", "-c", add], check=True, env=environment, timeout=20, capture_output=True)
        yield path
    finally:
        agent.kill()
        agent.wait()


@pytest.mark.parametrize("identities_only", [False, True])
def test_an_encrypted_key_in_the_agent(
    sshd: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, identities_only: bool
) -> None:
    key = sshd.home / ".ssh" / "id_ed25519"
    with agent_with(key, tmp_path) as path:
        monkeypatch.setenv("SSH_AUTH_SOCK", path)
        subprocess.run(["ssh-keygen", "-qp", "-N", "secret", "-f", str(key)], check=True, capture_output=True)
        if identities_only:
            sshd.configure(f"Host *\n  IdentityFile {key}\n  IdentitiesOnly yes\n")
        assert answers(host_at(sshd))


def test_the_agent_is_lent_to_no_host(sshd: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sshd.configure("Host *\n  ForwardAgent yes\n")
    with agent_with(sshd.home / ".ssh" / "id_ed25519", tmp_path) as path:
        monkeypatch.setenv("SSH_AUTH_SOCK", path)
        seen = host_at(sshd).use(lambda t: t.run(["sh", "-c", "echo [$SSH_AUTH_SOCK]"]))
    assert seen.stdout == "[]\n"


def test_an_encrypted_key_without_an_agent_says_ssh_add(sshd: Sshd) -> None:
    key = sshd.home / ".ssh" / "id_ed25519"
    subprocess.run(["ssh-keygen", "-qp", "-N", "secret", "-f", str(key)], check=True, capture_output=True)
    with pytest.raises(TransportError, match="does not let the user") as caught:
        answers(host_at(sshd))
    assert "no agent (SSH_AUTH_SOCK is not set)" in caught.value.message
    assert "ssh-add" in caught.value.remedy


def test_an_agent_that_is_gone_does_not_matter(sshd: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSH_AUTH_SOCK", "/nowhere/agent")
    assert answers(host_at(sshd))


def test_a_key_that_is_not_accepted(sshd: Sshd) -> None:
    (sshd.folder / "authorized_keys").write_text("")
    sshd.configure("Host *\n  IdentityFile ~/.ssh/id_ed25519\n")
    with pytest.raises(TransportError) as caught:
        answers(host_at(sshd))
    assert caught.value.failure_class is FailureClass.AUTHENTICATION_FAILED
    user = getpass.getuser()
    assert f"127.0.0.1 port {sshd.port} does not let the user {user!r} in" in caught.value.message
    assert f"{sshd.home}/.ssh/id_ed25519" in caught.value.message
    assert f"ssh-copy-id -p {sshd.port} 127.0.0.1" in caught.value.remedy


def test_a_refused_port() -> None:
    port = free_port()
    with pytest.raises(TransportError, match=f"127.0.0.1 port {port} refuses connections") as caught:
        answers(named("127.0.0.1", ssh_port=port))
    assert "SSH_PORT" in caught.value.remedy


def test_a_name_that_is_not_known() -> None:
    with pytest.raises(TransportError, match=r"the name no-such-host\.invalid is not known") as caught:
        answers(named("no-such-host.invalid"))
    assert caught.value.where == "no-such-host.invalid"


def test_a_host_that_never_answers() -> None:
    """A frozen host: its kernel takes the connection, and nobody says anything."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        text = f"127.0.0.1 port {port} takes a TCP connection and lets nobody in within 0.5 s: it, or its ssh server"
        with pytest.raises(TransportError, match=text) as caught:
            answers(named("127.0.0.1", ssh_port=port, ssh_connect_timeout_s=0.5))
        assert "console" in caught.value.remedy and f"`ssh -p {port} 127.0.0.1`" in caught.value.remedy


def test_a_host_from_which_nothing_comes() -> None:
    """A queue that is full: the kernel leaves further connections unanswered, as a host does that is cut off."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server, socket.socket() as first:
        port = server.getsockname()[1]
        first.connect(server.getsockname())
        text = f"no answer from 127.0.0.1 port {port} within 0.5 s, not even to TCP: it is down, cut off"
        with pytest.raises(TransportError, match=text):
            answers(named("127.0.0.1", ssh_port=port, ssh_connect_timeout_s=0.5))


def test_of_a_host_that_is_tried_again_and_again_one_warning_is_enough(
    sshd: Sshd, monkeypatch: pytest.MonkeyPatch, log_lines: LogLines
) -> None:
    monkeypatch.setattr(connect, "PAUSES_S", (0.01, 0.01))
    sshd.stop()

    async def sought(transport: Transport) -> None:
        for _ in range(2):
            with pytest.raises(TransportError):
                await transport.open()
        sshd.start()
        await transport.open()
        sshd.stop()
        await transport.close()
        host_log.flush()
        with pytest.raises(TransportError):
            await transport.open()

    host_at(sshd).use(sought)
    tries = [
        level
        for level, text in zip(log_lines.levels, log_lines.messages, strict=True)
        if "trying again" in text
    ]
    assert tries == ["WARNING", "INFO", "DEBUG", "WARNING", "INFO"], log_lines.text


def test_a_server_that_hangs_up(sshd: Sshd) -> None:
    """What sshd does beyond MaxStartups."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(4)

        def hang_up() -> None:
            for _ in range(3):  # it is asked again, in vain
                server.accept()[0].close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        with pytest.raises(TransportError, match=r"closed the connection|reset by peer"):
            answers(named("127.0.0.1", ssh_port=server.getsockname()[1]))
        thread.join()


def test_an_sshd_that_is_started_anew_is_waited_for(
    sshd: Sshd, monkeypatch: pytest.MonkeyPatch, log_lines: LogLines
) -> None:
    monkeypatch.setattr(connect, "PAUSES_S", (0.1,) * 50)
    sshd.stop()
    starting = threading.Timer(0.3, sshd.start)
    starting.start()
    assert answers(host_at(sshd))
    starting.join()
    assert any("refuses connections" in line and "trying again" in line for line in log_lines.messages)


def test_an_attempt_that_only_the_user_can_make_better_is_the_only_one(
    sshd: Sshd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect, "PAUSES_S", (60.0,))
    (sshd.folder / "authorized_keys").write_text("")
    with pytest.raises(AuthenticationError):
        answers(host_at(sshd))
    sshd.trust(make_key(sshd.folder / "another_key"))
    with pytest.raises(HostKeyError):
        answers(host_at(sshd))


def test_a_mistake_in_the_ssh_configuration(sshd: Sshd) -> None:
    sshd.configure("Host *\n  Port twenty-two\n")
    with pytest.raises(TransportError, match=r"the ssh configuration is wrong: .*config line 2") as caught:
        answers(named("127.0.0.1"))
    assert "~/.ssh/config" in caught.value.remedy


@pytest.mark.parametrize(
    ("loose", "include"),
    [
        ("config", "Include conf.d/*"),
        ("conf.d/cluster", "Include conf.d/*"),
        ("conf.d/cluster", '"include" conf.d/*'),
        ("conf.d/cluster", 'Incl"ude" none "conf.d/cluster"'),
        ("conf.d/cluster", "INCLUDE=~/.ssh/conf.d/cluster"),
        ("conf.d/cluster", "Include = conf.d/cluster"),
        ("conf.d/cluster", r"I\nclude conf.d/cluster"),
    ],
)
def test_a_configuration_that_others_may_write_is_not_executed(
    sshd: Sshd, tmp_path: Path, loose: str, include: str
) -> None:
    sshd.configure(f"{include}\n")
    (sshd.home / ".ssh" / "conf.d").mkdir()
    included = sshd.home / ".ssh" / "conf.d" / "cluster"
    included.write_text(f'Match exec "touch {tmp_path}/executed"\n' + alias(sshd))
    (sshd.home / ".ssh" / loose).chmod(0o666)
    with pytest.raises(TransportError, match=f"{loose} may be written by others"):
        answers(named("node1"))
    assert not (tmp_path / "executed").exists()
    (sshd.home / ".ssh" / loose).chmod(0o644)
    assert answers(named("node1")) and (tmp_path / "executed").exists()


@pytest.mark.parametrize("include", ["Include {}", "Host another\n  Include {}"])
def test_what_the_systems_configuration_includes_may_be_no_strangers(
    sshd: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, include: str
) -> None:
    """As of ssh, whichever host it is included for; of the system's file itself ssh does not ask whose it is."""
    system, included = tmp_path / "ssh_config", tmp_path / "included"
    system.write_text(include.format(included))
    included.write_text(f'Match exec "touch {tmp_path}/executed"\n{alias(sshd)}')
    system.chmod(0o666)
    included.chmod(0o666)
    monkeypatch.setattr(options, "SYSTEM_CONFIG", str(system))
    with pytest.raises(TransportError, match=f"{included} may be written by others"):
        answers(host_at(sshd))
    assert not (tmp_path / "executed").exists()
    included.chmod(0o644)
    assert answers(host_at(sshd))


@pytest.mark.parametrize("kept_out", ["# Include conf.d/cluster", "SendEnv Include conf.d/cluster"])
def test_what_is_not_included_may_be_as_it_likes(sshd: Sshd, kept_out: str) -> None:
    sshd.configure(f"{kept_out}\n{alias(sshd)}")
    (sshd.home / ".ssh" / "conf.d").mkdir()
    (sshd.home / ".ssh" / "conf.d" / "cluster").write_text("Port 1\n")
    (sshd.home / ".ssh" / "conf.d" / "cluster").chmod(0o666)
    assert answers(named("node1"))


@pytest.mark.parametrize(
    ("lines", "what"),
    [
        ("Host *\n  Include ~nobody-at-all/config", "config line 2: .*home"),
        ("Include config", "config line 1: .*recursion"),
        ("IdentityFile ~nobody-at-all/key", "~nobody-at-all/key: nobody here has such a home"),
        ("UserKnownHostsFile ~nobody-at-all/known_hosts", "~nobody-at-all/known_hosts: nobody"),
    ],
)
def test_files_that_cannot_be_are_mistakes_in_the_ssh_configuration(
    sshd: Sshd, lines: str, what: str
) -> None:
    sshd.configure(f"{lines}\n")
    with pytest.raises(TransportError, match=f"the ssh configuration is wrong: .*{what}"):
        answers(host_at(sshd))


@pytest.mark.parametrize("variable", ["HOME", "USER"])
def test_a_user_without_a_name_or_a_home_is_told_so(
    sshd: Sshd, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    """FAKE: a list of users in which this one is not, as in a container that was started with a number for a user."""

    def nobody(number: int) -> None:
        raise KeyError(number)

    monkeypatch.setattr(pwd, "getpwuid", nobody)
    for name in ("LOGNAME", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("USER", "root")
    monkeypatch.delenv(variable)
    with pytest.raises(TransportError, match="has no name or no home here") as caught:
        answers(host_at(sshd))
    assert "set USER" in caught.value.remedy and "HOME" in caught.value.remedy


def test_nothing_is_unpacked_unless_the_user_asks_for_it(sshd: Sshd) -> None:
    """A host could let the controller unpack far more than it sends."""

    def offered(configuration: str) -> set[bytes]:
        sshd.configure(configuration)
        login = resolve(Address("node1"), ClusterSettings(hosts=("node1",)))
        return set(asyncssh.SSHClientConnectionOptions(**login.keyword_options).compression_algs)

    assert offered(alias(sshd)) == offered(alias(sshd, "node1", "Compression no")) == {b"none"}
    assert b"zlib@openssh.com" in offered(alias(sshd, "node1", "Compression yes"))


def jumping(server: Sshd, *targets: str) -> str:
    hosts = [alias(server, name, "ProxyJump bastion", f"HostKeyAlias {name}") for name in targets]
    return alias(server, "bastion") + "".join(hosts)


def know(server: Sshd, *names: str) -> None:
    """Note the server's key under these names too."""
    key = server.known_hosts.read_text().split(maxsplit=1)[1]
    with server.known_hosts.open("a") as file:
        file.write("".join(f"{name} {key}" for name in names))


def test_jump_hosts_are_shared(sshd: Sshd) -> None:
    """Three hosts behind a bastion: four connections, not six."""
    names = ("node1", "node2", "node3")
    sshd.configure(jumping(sshd, *names))
    know(sshd, *names)

    async def scenario(first: Transport) -> int:
        cluster = ClusterSettings(hosts=names)
        others = [open_transport(name, cluster) for name in names[1:]]
        done = await asyncio.gather(*(t.run(["echo", t.host]) for t in (first, *others)))
        assert [completed.stdout.strip() for completed in done] == list(names)
        connections = len(sshd.connections())
        for other in others:
            await other.close()
        assert (await first.run(["true"])).ok
        return connections

    assert named("node1").use(scenario) == 4


def test_a_lost_jump_host_is_reached_again(sshd: Sshd) -> None:
    sshd.configure(jumping(sshd, "node1"))
    know(sshd, "node1")

    async def scenario(transport: Transport) -> None:
        await transport.run(["true"])
        running = asyncio.ensure_future(transport.run(["sleep", "30"]))
        await asyncio.sleep(0.3)
        sshd.drop_connections()
        with pytest.raises(TransportError, match="contact was lost"):
            await running
        assert (await transport.run(["true"])).ok

    named("node1").use(scenario)


def test_two_jump_hosts_in_a_row(sshd: Sshd) -> None:
    through = f"ProxyJump 127.0.0.1:{sshd.port},bastion"
    sshd.configure(alias(sshd, "bastion") + alias(sshd, "node1", through, "HostKeyAlias node1"))
    know(sshd, "node1")
    assert answers(named("node1"))


def test_an_unknown_jump_host_is_named(sshd: Sshd) -> None:
    sshd.configure(jumping(sshd, "node1"))
    sshd.known_hosts.write_text("")
    with pytest.raises(HostKeyError, match="is not known") as caught:
        answers(named("node1"))
    assert caught.value.where == "bastion"


def test_a_target_behind_a_jump_host_that_refuses(sshd: Sshd) -> None:
    port = free_port()
    sshd.configure(
        alias(sshd, "bastion") + f"Host node1\n  HostName 127.0.0.1\n  Port {port}\n  ProxyJump bastion\n"
    )
    with pytest.raises(TransportError, match="refused") as caught:
        answers(named("node1"))
    assert caught.value.where == "node1"


def test_jump_hosts_in_a_circle(sshd: Sshd) -> None:
    sshd.configure(alias(sshd, "a", "ProxyJump b") + alias(sshd, "b", "ProxyJump a"))
    with pytest.raises(TransportError, match="in a circle"):
        answers(named("a"))


RELAY = """
import os, socket, sys, threading
server = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
def forward():
    while data := os.read(0, 65536):
        server.sendall(data)
threading.Thread(target=forward, daemon=True).start()
while data := server.recv(65536):
    os.write(1, data)
"""


def test_a_proxy_command(sshd: Sshd) -> None:
    program = sshd.folder / "relay.py"
    program.write_text(RELAY)
    sshd.configure(f"Host node1\n  ProxyCommand python3 {program} {sshd.port}\n  HostKeyAlias node1\n")
    know(sshd, "node1")
    assert answers(named("node1"))


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("bastion", Address("bastion")),
        ("me@bastion:2222", Address("bastion", 2222, "me")),
        ("me@x@bastion", Address("bastion", None, "me@x")),
        ("[fe80::1]:22", Address("fe80::1", 22)),
        ("ssh://me@bastion:22", Address("bastion", 22, "me")),
    ],
)
def test_jump_addresses(text: str, address: Address) -> None:
    assert Address.parse(text) == address


@pytest.mark.parametrize("number", [errno.EHOSTUNREACH, errno.EACCES])
def test_a_network_error_is_told_in_words(number: int) -> None:
    """As asyncio words that of one address."""
    error = OSError(number, "Connect call failed ('10.77.8.12', 22)")
    login = resolve(Address("node1"), ClusterSettings(hosts=("node1",)))
    told = explain(login, error, None, 10.0, is_open=False)
    assert os.strerror(number) in told.message and "Connect call" not in told.message
