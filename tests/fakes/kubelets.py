"""FAKE: what runs the pods of tests.fakes.kubernetes_api."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any


Object = dict[str, Any]
RUNNING = {
    "phase": "Running",
    "podIP": "127.0.0.1",
    "conditions": [{"type": "Ready", "status": "True"}],
    "containerStatuses": [{"state": {"running": {}}}],
}


class Processes:
    """Pods are this machine: commands run in it as they are. `mark`: a word in the environment of them all."""

    def start(self, pod: Object) -> Object:
        return json.loads(json.dumps(RUNNING))  # type: ignore[no-any-return]

    def exec_argv(self, pod: Object) -> Sequence[str]:
        return ()

    def stop(self, pod: Object) -> None:
        """What ran there ends with the test."""
