"""The lab's network: a bridge, and for each host a network namespace with one cable to it.

The namespace is held by a file, not by the host's processes: it outlives a killed host, so that the host's
address still answers (and refuses), as a machine does whose services are down.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from tests.lab.commands import LabError, run, succeeds
from tests.lab.place import Place

FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")


def _rules(place: Place) -> list[list[str]]:
    """The lab's rules, each with its table and its chain.

    A container engine on this machine sets the FORWARD policy to DROP, for traffic within a bridge too.
    """
    subnet = f"{place.subnet}.0/24"
    return [
        ["filter", "FORWARD", "-i", place.bridge, "-j", "ACCEPT"],
        ["filter", "FORWARD", "-o", place.bridge, "-j", "ACCEPT"],
        ["nat", "POSTROUTING", "-s", subnet, "!", "-d", subnet, "-j", "MASQUERADE"],
    ]


def create_bridge(place: Place) -> bool:
    """Makes the bridge and the way out of it; returns whether this machine forwarded packets before."""
    if route := run(["ip", "-4", "route", "show", "root", f"{place.subnet}.0/24"]).strip():
        raise LabError(f"this machine has a network {place.subnet}.0/24 already: {route}", "ip route")
    run(
        ["ip", "-batch", "-"],
        stdin=f"""
        link add {place.bridge} type bridge
        addr add {place.gateway}/24 dev {place.bridge}
        link set {place.bridge} up
    """,
    )
    for table, chain, *rule in _rules(place):
        run(["iptables", "--wait", "-t", table, "-I", chain, *rule])
    forwarded = FORWARDING.read_text().strip() == "1"
    FORWARDING.write_text("1")
    return forwarded


def plug_in(place: Place, index: int, namespace: Path) -> None:
    """Makes the namespace of host `index`, held by the file `namespace`, and its cable to the bridge."""
    namespace.parent.mkdir(parents=True, exist_ok=True)
    namespace.touch()
    run(["unshare", f"--net={namespace}", "true"])
    run(
        ["ip", "-batch", "-"],
        stdin=f"""
        link add {place.cable(index)} type veth peer name eth0 netns {namespace}
        link set {place.cable(index)} master {place.bridge} up
    """,
    )
    run(
        ["nsenter", f"--net={namespace}", "ip", "-batch", "-"],
        stdin=f"""
        link set lo up
        addr add {place.address(index)}/24 dev eth0
        link set eth0 up
        route add default via {place.gateway}
    """,
    )


def set_link(place: Place, index: int, *, up: bool) -> None:
    """Pulls the cable of host `index` out of the bridge, or puts it back."""
    run(["ip", "link", "set", place.cable(index), "up" if up else "down"])


def set_rate(place: Place, index: int, namespace: Path, rate: str | None) -> None:
    """Limits the cable of host `index` to `rate` (tc's notation: `1mbit`) both ways; None: no limit."""
    inside = ["nsenter", f"--net={namespace}"]
    for end in ([*inside, "tc", "qdisc"], ["tc", "qdisc"]):
        device = ["dev", "eth0" if "nsenter" in end else place.cable(index)]
        if rate is not None:
            run([*end, "replace", *device, "root", "tbf", "rate", rate, "burst", "32k", "latency", "400ms"])
        elif "tbf" in run([*end, "show", *device]):
            run([*end, "del", *device, "root"])


def remove(place: Place, *, forwarded: bool) -> None:
    """Removes the lab's network, complete or not; `forwarded`: what `create_bridge` returned."""
    for link in lab_links(place):
        # The end of a cable goes with the other one, and a dying namespace takes its end along.
        with suppress(LabError):
            run(["ip", "link", "del", link])
    if left := lab_links(place):
        raise LabError(f"cannot remove the links {', '.join(left)}", f"ip link del {left[0]}")
    for namespace in sorted((place.folder / "net").glob("*")):
        while succeeds(["umount", str(namespace)]):
            pass
    for table, chain, *rule in _rules(place):
        while succeeds(["iptables", "--wait", "-t", table, "-D", chain, *rule]):
            pass
    # Another bridge (of another lab, of an engine that was started meanwhile) may have come to count on forwarding.
    if not forwarded and not json.loads(run(["ip", "-j", "link", "show", "type", "bridge"]) or "[]"):
        FORWARDING.write_text("0")


def lab_links(place: Place) -> list[str]:
    """The lab's links on this machine's side."""
    names = [path.name for path in Path("/sys/class/net").iterdir()]
    return sorted(name for name in names if name == place.bridge or name.startswith(place.prefix))


def resolver_settings() -> str:
    """This machine's name servers as a host can use them: a resolver on 127.x is not the host's own."""
    # Where systemd-resolved answers on 127.0.0.53, this file names the servers it asks itself.
    for path in (Path("/etc/resolv.conf"), Path("/run/systemd/resolve/resolv.conf")):
        text = path.read_text() if path.exists() else ""
        servers = [line.split()[1] for line in text.splitlines() if line.startswith("nameserver ")]
        if servers and not all(server.startswith("127.") for server in servers):
            return text
    return ""
