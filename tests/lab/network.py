"""The lab's network: a bridge, and for each host a network namespace with one cable to it.

The namespace is held by a file, not by the host's processes: it outlives a killed host, so that the host's
address still answers (and refuses), as a machine does whose services are down.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from tests.lab.commands import LabError, run, succeeds

SUBNET = "10.77.0"
GATEWAY = f"{SUBNET}.1"
BRIDGE = "flaglab0"
FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")
# A container engine on this machine sets the FORWARD policy to DROP, for traffic within a bridge too.
RULES = (
    ("filter", "FORWARD", "-i", BRIDGE, "-j", "ACCEPT"),
    ("filter", "FORWARD", "-o", BRIDGE, "-j", "ACCEPT"),
    ("nat", "POSTROUTING", "-s", f"{SUBNET}.0/24", "!", "-d", f"{SUBNET}.0/24", "-j", "MASQUERADE"),
)


def address(index: int) -> str:
    """The address of host `index` (from 1)."""
    return f"{SUBNET}.{10 + index}"


def cable(index: int) -> str:
    """This machine's end of the cable of host `index`."""
    return f"flaglab-{index}"


def create_bridge() -> bool:
    """Makes the bridge and the way out of it; returns whether this machine forwarded packets before."""
    if route := run(["ip", "-4", "route", "show", "root", f"{SUBNET}.0/24"]).strip():
        raise LabError(f"this machine has a network {SUBNET}.0/24 already: {route}", "ip route")
    run(
        ["ip", "-batch", "-"],
        stdin=f"""
        link add {BRIDGE} type bridge
        addr add {GATEWAY}/24 dev {BRIDGE}
        link set {BRIDGE} up
    """,
    )
    for table, chain, *rule in RULES:
        run(["iptables", "--wait", "-t", table, "-I", chain, *rule])
    forwarded = FORWARDING.read_text().strip() == "1"
    FORWARDING.write_text("1")
    return forwarded


def plug_in(index: int, namespace: Path) -> None:
    """Makes the namespace of host `index`, held by the file `namespace`, and its cable to the bridge."""
    namespace.parent.mkdir(parents=True, exist_ok=True)
    namespace.touch()
    run(["unshare", f"--net={namespace}", "true"])
    run(
        ["ip", "-batch", "-"],
        stdin=f"""
        link add {cable(index)} type veth peer name eth0 netns {namespace}
        link set {cable(index)} master {BRIDGE} up
    """,
    )
    run(
        ["nsenter", f"--net={namespace}", "ip", "-batch", "-"],
        stdin=f"""
        link set lo up
        addr add {address(index)}/24 dev eth0
        link set eth0 up
        route add default via {GATEWAY}
    """,
    )


def set_link(index: int, *, up: bool) -> None:
    """Pulls the cable of host `index` out of the bridge, or puts it back."""
    run(["ip", "link", "set", cable(index), "up" if up else "down"])


def set_rate(index: int, namespace: Path, rate: str | None) -> None:
    """Limits the cable of host `index` to `rate` (tc's notation: `1mbit`) both ways; None: no limit."""
    inside = ["nsenter", f"--net={namespace}"]
    for end in ([*inside, "tc", "qdisc"], ["tc", "qdisc"]):
        device = ["dev", "eth0" if "nsenter" in end else cable(index)]
        if rate is not None:
            run([*end, "replace", *device, "root", "tbf", "rate", rate, "burst", "32k", "latency", "400ms"])
        elif "tbf" in run([*end, "show", *device]):
            run([*end, "del", *device, "root"])


def remove(namespaces: Path, *, forwarded: bool) -> None:
    """Removes every lab network there is on this machine; `forwarded`: what `create_bridge` returned."""
    for link in lab_links():
        # The end of a cable goes with the other one, and a dying namespace takes its end along.
        with suppress(LabError):
            run(["ip", "link", "del", link])
    if left := lab_links():
        raise LabError(f"cannot remove the links {', '.join(left)}", f"ip link del {left[0]}")
    for namespace in sorted(namespaces.glob("*")):
        while succeeds(["umount", str(namespace)]):
            pass
    for table, chain, *rule in RULES:
        while succeeds(["iptables", "--wait", "-t", table, "-D", chain, *rule]):
            pass
    # Another bridge (an engine that was started meanwhile) may have come to count on forwarding.
    if not forwarded and not json.loads(run(["ip", "-j", "link", "show", "type", "bridge"]) or "[]"):
        FORWARDING.write_text("0")


def lab_links() -> list[str]:
    """The lab's links on this machine's side."""
    names = [path.name for path in Path("/sys/class/net").iterdir()]
    return sorted(name for name in names if name == BRIDGE or name.startswith("flaglab-"))


def resolver_settings() -> str:
    """This machine's name servers as a host can use them: a resolver on 127.x is not the host's own."""
    # Where systemd-resolved answers on 127.0.0.53, this file names the servers it asks itself.
    for path in (Path("/etc/resolv.conf"), Path("/run/systemd/resolve/resolv.conf")):
        text = path.read_text() if path.exists() else ""
        servers = [line.split()[1] for line in text.splitlines() if line.startswith("nameserver ")]
        if servers and not all(server.startswith("127.") for server in servers):
            return text
    return ""
