"""Whether and where a run's metrics are served, by its settings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from run_benchmarks.display.base import Display
from run_benchmarks.plan.records import RunSettings
from run_benchmarks.run_log import LOGGER
from utils.errors import FlagPerfError

if TYPE_CHECKING:
    from run_benchmarks.metrics.listener import RunListener
    from run_benchmarks.metrics.server import MetricsServer


@contextmanager
def exported(settings: RunSettings, *, is_needed: bool = True) -> Iterator[tuple[Display, ...]]:
    """Serve the metrics meanwhile, of what the displays are told; there are none where METRICS_PORT is not set.

    Args:
        is_needed: whether a port that cannot be opened is an error; else it is a warning.

    Raises:
        FlagPerfError: the port cannot be opened.
    """
    if settings.metrics_port is None:
        yield ()
        return
    try:
        server, listener = _opened(settings.metrics_address, settings.metrics_port)
    except FlagPerfError as error:
        if is_needed:
            raise
        LOGGER.warning(f"there are no metrics: {error.message}")
        yield ()
        return
    server.start()
    try:
        yield (listener,)
        if not listener.is_interrupted:
            with suppress(KeyboardInterrupt):  # the run has ended: its exit code stands
                server.wait_for_last_scrape()
    finally:
        server.close()


def check_port(settings: RunSettings) -> None:
    """See that METRICS_PORT, where it is set, can be opened now.

    Raises:
        FlagPerfError: it cannot.
    """
    if settings.metrics_port is not None:
        _opened(settings.metrics_address, settings.metrics_port)[0].close()


def _opened(address: str, port: int) -> tuple[MetricsServer, RunListener]:
    try:
        from run_benchmarks.metrics.listener import RunListener
        from run_benchmarks.metrics.server import MetricsServer
    except ModuleNotFoundError as error:
        remedy = "python3 -m pip install -r training/requirements.txt, or METRICS_PORT = None for no metrics"
        raise FlagPerfError(
            f"there is no package {error.name}", where="METRICS_PORT of test_conf.py", remedy=remedy
        ) from error
    listener = RunListener(address, port)
    return MetricsServer(address, port, listener), listener
