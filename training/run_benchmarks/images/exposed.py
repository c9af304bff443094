"""What a Dockerfile has put into its image for everybody to read, whatever the grammar that it is written in."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from run_benchmarks.images.layers import ImagePlan, Layer
from run_benchmarks.plan.handover import PROXIES
from run_benchmarks.plan.url_users import user_of_url
from run_benchmarks.runtimes.engine import Engine
from run_benchmarks.transports.base import Transport, checked
from utils.errors import FlagPerfError

TIMEOUT_S = 60.0
SHORT = 6  # characters: what is shorter stands in many texts by chance
# A proxy with a user or a password, as `ARG https_proxy` leaves it in the history: the engine hands on its own too.
_PROXY = re.compile(
    rf"\b({'|'.join(sorted(PROXIES))})\b\W{{1,8}}\w{{1,16}}://(?:[^\s/@\"]{{1,512}}@|{user_of_url()})"
)


class ExposedError(FlagPerfError):
    """An image shows a secret; it was removed."""


async def refuse_exposed(transport: Transport, engine: Engine, layer: Layer, image: ImagePlan) -> None:
    """Remove what a Dockerfile made, if a secret of its build stands in its history, environment or labels.

    Raises:
        ExposedError: so it was.
    """
    shown = [
        (await checked(transport, argv, timeout=TIMEOUT_S)).whole_stdout()
        for argv in (engine.history(layer.tag), (engine.command, "image", "inspect", layer.tag))
    ]
    names = sorted(set(_exposed("\n".join(shown), image.secrets)))
    if names:
        await checked(transport, (engine.command, "image", "rm", "--force", layer.tag), timeout=TIMEOUT_S)
        raise ExposedError(
            f"{layer.files[0]}/Dockerfile puts {', '.join(names)} into the image, for all to read; it was removed",
            where=transport.host,
            remedy="remove ARG, ENV and LABEL lines with these names: a proxy is known to every RUN without them",
        )


def _exposed(shown: str, secrets: Mapping[str, str]) -> Iterator[str]:
    for name, value in secrets.items():
        spellings = {value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
        if any((text if len(value) >= SHORT else f"{name}={text}") in shown for text in spellings):
            yield name
    yield from _PROXY.findall(shown)
