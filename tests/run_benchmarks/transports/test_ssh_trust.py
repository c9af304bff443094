"""Which host keys are trusted, against a real sshd and files that ssh-keygen wrote."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from run_benchmarks.plan.records import ClusterSettings
from run_benchmarks.transports.base import Completed, HostKeyError, TransportError
from run_benchmarks.transports.ssh.trust import PLAIN, KnownHosts, known_name
from tests.run_benchmarks.transports.conftest import Host, host_at
from tests.run_benchmarks.transports.sshd import Sshd, make_key


def connect(server: Sshd, accept_new: bool = False) -> Completed:
    return host_at(server, ssh_accept_new_host_keys=accept_new).use(lambda t: t.run(["true"]))


def other_key(folder: Path) -> str:
    """A public key that is not the server's."""
    return " ".join(Path(f"{make_key(folder / 'other')}.pub").read_text().split()[:2])


def test_an_unknown_key_is_refused_and_how_to_accept_it_is_said(sshd: Sshd) -> None:
    sshd.known_hosts.unlink()
    with pytest.raises(HostKeyError) as caught:
        connect(sshd)
    assert caught.value.where == "127.0.0.1"
    assert f"ssh-ed25519 key {sshd.fingerprint()} is not known" in caught.value.message
    assert f"ssh -p {sshd.port} 127.0.0.1" in caught.value.remedy
    assert f"ssh-keyscan -p {sshd.port} 127.0.0.1 >> {sshd.known_hosts}" in caught.value.remedy
    assert "SSH_ACCEPT_NEW_HOST_KEYS = True" in caught.value.remedy
    assert not sshd.known_hosts.exists()


def test_the_remedy_works_when_it_is_typed(sshd: Sshd) -> None:
    sshd.known_hosts.unlink()
    with pytest.raises(HostKeyError) as caught:
        connect(sshd)
    keyscan = next(part for part in caught.value.remedy.split("`") if part.startswith("ssh-keyscan"))
    subprocess.run(["sh", "-c", keyscan], check=True, capture_output=True)
    assert connect(sshd).ok


def test_a_new_key_is_accepted_once_where_that_is_the_setting(sshd: Sshd, tmp_path: Path) -> None:
    sshd.known_hosts.write_text(f"elsewhere {other_key(tmp_path)}")  # without a newline at its end
    assert connect(sshd, accept_new=True).ok
    lines = sshd.known_hosts.read_text().splitlines()
    assert len(lines) == 2
    assert lines[1].split()[:2] == [sshd.name, "ssh-ed25519"]
    # it is known from now on, also to those who accept nothing, and to OpenSSH
    assert connect(sshd).ok
    assert connect(sshd, accept_new=True).ok
    assert sshd.known_hosts.read_text().splitlines() == lines
    batch = ["-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes", "-i", f"{sshd.home}/.ssh/id_ed25519"]
    files = ["-o", f"UserKnownHostsFile={sshd.known_hosts}", "-F", "none"]
    subprocess.run(["ssh", *batch, *files, "-p", str(sshd.port), "127.0.0.1", "true"], check=True)


def test_the_file_of_accepted_keys_is_made_where_there_is_none(sshd: Sshd) -> None:
    sshd.known_hosts.unlink()
    assert connect(sshd, accept_new=True).ok
    assert sshd.known_hosts.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("accept_new", [False, True])
def test_a_changed_key_is_refused_always(sshd: Sshd, tmp_path: Path, accept_new: bool) -> None:
    before = f"{sshd.name} {other_key(tmp_path)}\n"
    sshd.known_hosts.write_text(before)
    with pytest.raises(HostKeyError, match="ITS HOST KEY HAS CHANGED") as caught:
        connect(sshd, accept_new)
    assert sshd.fingerprint() in caught.value.message
    assert f"ssh-keygen -f {sshd.known_hosts} -R '{sshd.name}'" in caught.value.remedy
    assert sshd.known_hosts.read_text() == before


def test_a_key_of_another_kind_that_is_known_is_not_replaced(sshd: Sshd, tmp_path: Path) -> None:
    """known_hosts holds an ECDSA key, the server has an Ed25519 one: it is not a new host."""
    key = tmp_path / "ecdsa"
    subprocess.run(["ssh-keygen", "-qt", "ecdsa", "-N", "", "-f", str(key)], check=True)
    before = f"{sshd.name} {Path(f'{key}.pub').read_text()}"
    sshd.known_hosts.write_text(before)
    with pytest.raises(HostKeyError, match="known_hosts holds"):
        connect(sshd, accept_new=True)
    assert sshd.known_hosts.read_text() == before


def test_a_hashed_file_is_understood(sshd: Sshd) -> None:
    hashed = ["ssh-keygen", "-q", "-H", "-f", str(sshd.known_hosts)]
    subprocess.run(hashed, check=True, capture_output=True)
    assert sshd.known_hosts.read_text().startswith("|1|")
    assert connect(sshd).ok


def test_a_line_that_cannot_be_read_hides_no_other(sshd: Sshd) -> None:
    good = sshd.known_hosts.read_text()
    sshd.known_hosts.write_text(f"garbage\n@strange x y\n|9|bad|bad ssh-ed25519 AAAA\n{good}")
    assert connect(sshd).ok


@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_known_hosts_that_cannot_be_read_do_not_count_as_empty(sshd: Sshd, kind: str) -> None:
    sshd.known_hosts.unlink()
    os.mkfifo(sshd.known_hosts) if kind == "pipe" else sshd.known_hosts.mkdir()
    with pytest.raises(HostKeyError, match="cannot be read"):
        connect(sshd, accept_new=True)


def test_a_revoked_key_is_refused(sshd: Sshd) -> None:
    known = sshd.known_hosts.read_text()
    sshd.known_hosts.write_text(f"{known}@revoked {known}")
    with pytest.raises(HostKeyError, match="Host key is revoked"):
        connect(sshd, accept_new=True)


def test_another_port_is_another_host(sshd: Sshd, tmp_path: Path) -> None:
    """As with OpenSSH: a key on port 22 vouches for this port if it is the same, and is no change if not."""
    own = sshd.known_hosts.read_text().split(maxsplit=1)[1]
    sshd.known_hosts.write_text(f"127.0.0.1 {own}")
    assert connect(sshd).ok
    sshd.known_hosts.write_text(f"127.0.0.1 {other_key(tmp_path)}\n")
    with pytest.raises(HostKeyError, match="is not known"):
        connect(sshd)


@pytest.mark.parametrize("hashed", [False, True])
@pytest.mark.parametrize("written", ["node1", "Node1"])
@pytest.mark.parametrize("port", [22, 2222])
def test_upper_and_lower_case_are_one_host(tmp_path: Path, hashed: bool, written: str, port: int) -> None:
    """As with OpenSSH, which asks for `node1` whatever was typed: else a changed key would pass for a new host's."""
    file = tmp_path / "known_hosts"
    file.write_text(f"{written if port == 22 else f'[{written}]:{port}'} {other_key(tmp_path)}\n")
    if hashed:
        subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(file)], check=True, capture_output=True)
    trusted = KnownHosts((file,))
    for host in ("node1", "Node1", "NODE1"):
        assert trusted.has_key_of(known_name(host, port)), host
        assert len(trusted.match(host, "", None if port == 22 else port)[0]) == 1
    assert not trusted.has_key_of(known_name("node11", port))


def test_a_key_that_is_revoked_for_the_host_is_refused_on_every_port(sshd: Sshd) -> None:
    key = sshd.known_hosts.read_text().split(maxsplit=1)[1]
    revoked = f"@revoked 127.0.0.1 {key}"
    sshd.known_hosts.write_text(revoked)
    with pytest.raises(HostKeyError, match="Host key is revoked"):
        connect(sshd, accept_new=True)
    assert sshd.known_hosts.read_text() == revoked


def test_a_revoked_key_is_refused_in_whatever_case(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    file.write_text(f"@revoked Node* {other_key(tmp_path)}\n")
    assert [len(keys) for keys in KnownHosts((file,)).match("nODE1", "", None)[:3]] == [0, 0, 1]


def test_the_name_must_be_known_and_not_only_the_address(sshd: Sshd) -> None:
    """127.1 is 127.0.0.1, whose key is known; as with OpenSSH, that says nothing of the other name."""
    host = Host("127.1", ClusterSettings(hosts=("127.0.0.1",), ssh_port=sshd.port))
    with pytest.raises(HostKeyError, match=r"\[127\.1]:\d+ is not in"):
        host.use(lambda t: t.run(["true"]))


def test_the_users_own_files_are_used(sshd: Sshd) -> None:
    sshd.known_hosts.rename(sshd.home / "keys-127.0.0.1")
    sshd.configure("Host *\n  UserKnownHostsFile /dev/null %d/keys-%h\n  GlobalKnownHostsFile /dev/null\n")
    assert connect(sshd).ok


def test_no_file_does_not_mean_no_check(sshd: Sshd) -> None:
    sshd.configure("Host *\n  UserKnownHostsFile none\n  StrictHostKeyChecking no\n")
    sshd.known_hosts.unlink()
    with pytest.raises(HostKeyError, match="is not known"):
        connect(sshd)


def test_a_host_key_alias_is_looked_up(sshd: Sshd) -> None:
    key = sshd.known_hosts.read_text().split(maxsplit=1)[1]
    sshd.known_hosts.write_text(f"the-cluster {key}")
    sshd.configure("Host 127.0.0.1\n  HostKeyAlias the-cluster\n")
    assert connect(sshd).ok


KINDS = {"rsa": ("-t", "rsa", "-b", "2048"), "ecdsa": ("-t", "ecdsa")}


@pytest.mark.parametrize(
    ("known", "signature"),
    [
        ("ed25519", "ssh-ed25519"),
        ("ecdsa", "ecdsa-sha2-nistp256"),
        ("rsa", "rsa-sha2-512"),
        ("rsa", "rsa-sha2-256"),
    ],
)
def test_of_several_host_keys_the_one_that_is_known_is_asked_for(
    make_sshd: Callable[..., Sshd], known: str, signature: str
) -> None:
    """Whichever it is: the server has one of each kind, and of the known one can make this signature alone."""
    server = make_sshd()
    server.stop()
    keys = {kind: make_key(server.folder / f"{kind}_key", *options) for kind, options in KINDS.items()}
    keys["ed25519"] = server.folder / "host_key"
    offered = [name for name in PLAIN if known not in name] + [signature]
    server.settings = (
        *(f"HostKey {key}" for key in keys.values()),
        f"HostKeyAlgorithms {','.join(offered)}",
    )
    server.start()
    server.trust(keys[known])
    assert connect(server).ok


def test_a_signature_with_sha1_is_not_accepted(make_sshd: Callable[..., Sshd]) -> None:
    server = make_sshd()
    server.stop()
    key = make_key(server.folder / "rsa_key", *KINDS["rsa"])
    server.settings = (f"HostKey {key}", "HostKeyAlgorithms ssh-rsa")
    server.start()
    server.trust(key)
    with pytest.raises(TransportError, match="closed the connection"):
        connect(server)


def certify(folder: Path, principal: str) -> Path:
    """Sign the server's host key with a new authority's; returns the authority's public key file."""
    authority = make_key(folder / "authority")
    public = str(folder / "host_key.pub")
    subprocess.run(["ssh-keygen", "-qs", str(authority), "-I", "x", "-hn", principal, public], check=True)
    return Path(f"{authority}.pub")


@pytest.mark.parametrize(("principal", "trusted"), [("127.0.0.1", True), ("elsewhere", False)])
def test_a_host_certificate(make_sshd: Callable[..., Sshd], principal: str, trusted: bool) -> None:
    server = make_sshd()
    authority = certify(server.folder, principal)
    server.stop()
    server.settings = (f"HostCertificate {server.folder}/host_key-cert.pub",)
    server.start()
    server.known_hosts.write_text(f"@cert-authority * {authority.read_text()}")
    if trusted:
        assert connect(server).ok
    else:
        with pytest.raises(HostKeyError):
            connect(server, accept_new=True)


def test_a_certificate_of_an_unknown_authority_still_shows_the_plain_key(
    make_sshd: Callable[..., Sshd],
) -> None:
    server = make_sshd()
    certify(server.folder, "127.0.0.1")
    server.stop()
    server.settings = (f"HostCertificate {server.folder}/host_key-cert.pub",)
    server.start()
    server.known_hosts.unlink()
    with pytest.raises(HostKeyError, match=server.fingerprint().replace("+", r"\+")):
        connect(server)
    assert connect(server, accept_new=True).ok
