"""The user's own `kubectl`, with the kubeconfig and the credentials that it finds by itself."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from run_benchmarks.reading import object_in, parsed
from run_benchmarks.transports.base import WHOLE_BYTES, Completed, checked
from run_benchmarks.transports.kubectl.pods import Events, Pod, Pods
from run_benchmarks.transports.local import LocalTransport
from utils.errors import FlagPerfError

# So long an API server may take to answer. kubectl's own limit, --request-timeout, is not used: with it kubectl does
# not look for the service account of the pod that it runs in.
ANSWER_S = 60.0
KUBECTL = "kubectl"
WHERE = "Kubernetes"
REMEDY = "see that `kubectl get pods` works here: KUBECONFIG, the context, the namespace, what its user may do there"


@dataclass(frozen=True)
class Kubectl:
    """Commands in one namespace; with neither it nor a context, those of the user's kubeconfig are meant."""

    namespace: str = ""
    context: str = ""
    here: LocalTransport = field(default_factory=lambda: LocalTransport(WHERE))

    def argv(self, *words: str) -> tuple[str, ...]:
        """The command line, which a user may type just so."""
        place = {"--context": self.context, "--namespace": self.namespace}
        return (KUBECTL, *(f"{name}={value}" for name, value in place.items() if value), *words)

    async def ask(self, *words: str, stdin: bytes | None = None, timeout: float = ANSWER_S) -> Completed:
        """What a request came to; raises CommandError where it failed."""
        argv = self.argv(*words)
        return await checked(self.here, argv, remedy=REMEDY, stdin=stdin, timeout=timeout, held=WHOLE_BYTES)

    async def apply(self, manifests: Sequence[Mapping[str, Any]], *options: str) -> None:
        """Make objects, or alter them to what is given."""
        # no List of them: in one of those the server would not look at the fields; and no `---` between them, which
        # kubectl before 1.33 does not take after JSON
        documents = "\n".join(map(json.dumps, manifests))
        await self.ask("apply", *options, "--filename=-", stdin=documents.encode())

    async def remove(self, *which: str, wait_s: float) -> None:
        """Delete objects, and wait until they are gone; what is not there is gone already.

        Args:
            which: `job/NAME`, or kinds and a selector, as kubectl takes them.
        """
        limits = (f"--timeout={wait_s:g}s", "--cascade=foreground", "--ignore-not-found")
        await self.ask("delete", *which, *limits, timeout=wait_s + ANSWER_S)

    async def pods(self, selector: str) -> tuple[Pod, ...]:
        """The pods that have the labels."""
        listed = await self.ask("get", "pods", f"--selector={selector}", "--output=json")
        return parsed(Pods, object_in(listed.whole_stdout(), WHERE), WHERE).items

    async def pod(self, name: str) -> Pod | None:
        """A pod; None where there is no such one any more."""
        seen = await self.ask("get", "pod", name, "--output=json", "--ignore-not-found")
        return parsed(Pod, object_in(seen.whole_stdout(), WHERE), WHERE) if seen.stdout.strip() else None

    async def events_of(self, name: str) -> tuple[str, ...]:
        """What the cluster says of an object, each thing once, the latest last; nothing where that is not told."""
        try:
            listed = await self.ask(
                "get", "events", f"--field-selector=involvedObject.name={name}", "--output=json"
            )
            events = parsed(Events, object_in(listed.whole_stdout(), WHERE), WHERE).items
        except (
            FlagPerfError
        ):  # who may make pods need not be one who may read events; nodes write them as they like
            return ()
        return tuple(dict.fromkeys(event.text for event in events if event.text))
