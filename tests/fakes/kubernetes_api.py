"""FAKE: the API server of a Kubernetes cluster and its Job controller, for the real `kubectl` to talk to.

It keeps objects, answers what kubectl asks for apply, get, delete and exec (WebSockets, v5.channel.k8s.io), and makes
the pods of an Indexed Job, and of no other; what a pod is made of, and whether it can start, its `Kubelet` says. What
is made must be valid by Kubernetes' own schemas; roles and Pod Security Standards are not enforced. It runs in a
thread, over plain HTTP on 127.0.0.1.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import kubernetes_validate
import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

Object = dict[str, Any]
VERSION = "1.33"  # whose published schemas what is made is held against
OK, REASONS = 200, {401: "Unauthorized", 403: "Forbidden", 500: "InternalError"}
STDIN, STDOUT, STDERR, STATUS, CLOSE = 0, 1, 2, 3, 255
INDEX = "batch.kubernetes.io/job-completion-index"
KINDS: dict[str, dict[str, str]] = {
    "v1": {"pods": "Pod", "services": "Service", "events": "Event", "secrets": "Secret",
           "serviceaccounts": "ServiceAccount", "persistentvolumeclaims": "PersistentVolumeClaim"},
    "batch/v1": {"jobs": "Job"},
    "rbac.authorization.k8s.io/v1": {"roles": "Role", "rolebindings": "RoleBinding"},
}  # fmt: skip


class Kubelet(Protocol):
    """What pods are made of."""

    def start(self, pod: Object) -> Object:
        """Start a pod; its status, as the API tells it from now on."""
        ...

    def exec_argv(self, pod: Object) -> Sequence[str]:
        """What stands before a command that is to run in the pod."""
        ...

    def stop(self, pod: Object) -> None:
        """End a pod, with all that runs in it."""
        ...


class KubernetesApi:
    """The cluster. `objects`: (kind in the plural, name) -> the object; `requests`: method and path of each request.

    errors: (method, kind in the plural) -> the codes of the next answers, which are errors; the last stays for ever.
    silent: nodes that confirm no end of a pod, which stays with its job, being deleted; no further pod comes there.
    """

    def __init__(self, kubelet: Kubelet) -> None:
        self.kubelet = kubelet
        self.objects: dict[tuple[str, str], Object] = {}
        self.requests: list[tuple[str, str]] = []
        self.applied: list[Object] = []
        self.commands: list[str] = []
        self.errors: dict[tuple[str, str], list[int]] = {}
        self.silent: set[str] = set()
        self.forbidden_pods = ""  # why the Job controller may make none
        self.sockets: set[WebSocket] = set()
        self._processes: set[asyncio.subprocess.Process] = set()
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self._loop: asyncio.AbstractEventLoop | None = None

    def of_kind(self, plural: str) -> list[Object]:
        return [each for (kind, _), each in sorted(self.objects.items()) if kind == plural]

    def cut(self) -> None:
        """Lose all connections of `exec`, as a restart of the API server does."""
        assert self._loop
        for each in list(self.sockets):
            with suppress(RuntimeError):  # one that has just been closed
                asyncio.run_coroutine_threadsafe(each.close(1011), self._loop).result(10)

    def kubeconfig(self, path: Path) -> Path:
        """Write a kubeconfig that leads here."""
        cluster = {"name": "fake", "cluster": {"server": f"http://127.0.0.1:{self.port}"}}
        context = {"name": "fake", "context": {"cluster": "fake", "user": "", "namespace": "bench"}}
        whole = {"apiVersion": "v1", "kind": "Config", "current-context": "fake"}
        path.write_text(json.dumps({**whole, "clusters": [cluster], "contexts": [context], "users": []}))
        return path

    @contextmanager
    def serving(self) -> Iterator[KubernetesApi]:
        config = uvicorn.Config(self._app(), log_level="critical", lifespan="off", ws_max_size=2**27)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([self._socket],), daemon=True)
        thread.start()
        while not server.started and thread.is_alive():
            time.sleep(0.01)
        try:
            yield self
        finally:
            for pod in self.of_kind("pods"):
                self.kubelet.stop(pod)
            if self._loop:
                asyncio.run_coroutine_threadsafe(self._end_all(), self._loop).result(20)
            server.should_exit = server.force_exit = True
            thread.join(20)
            self._socket.close()

    async def _end_all(self) -> None:
        """End commands whose connection was lost."""
        for process in list(self._processes):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        while self._processes:
            await asyncio.sleep(0.05)

    def _app(self) -> Starlette:
        places = ("/api/v1/namespaces/{ns}", "/apis/{group}/v1/namespaces/{ns}")
        routes: list[Any] = [
            WebSocketRoute("/api/v1/namespaces/{ns}/pods/{name}/exec", self._exec),
            Route("/version", _of({"major": "1", "minor": "33", "gitVersion": f"v{VERSION}.0"})),
            Route("/api", _of({"kind": "APIVersions", "versions": ["v1"]})),
            Route("/apis", _of(_groups())),
            Route("/openapi/v3", _of({"paths": {_place(name): _document_at(name) for name in KINDS}})),
            *(Route(f"/openapi/v3/{_place(name)}", _of(_document(name))) for name in KINDS),
            *(Route(f"/{_place(name)}", _of(_resources(name))) for name in KINDS),
        ]
        for place in places:
            routes.append(Route(f"{place}/{{plural}}", self._all, methods=["GET", "POST"]))
            routes.append(
                Route(f"{place}/{{plural}}/{{name}}", self._one, methods=["GET", "PATCH", "DELETE"])
            )
        return Starlette(routes=routes)

    async def _all(self, request: Request) -> JSONResponse:
        plural = request.path_params["plural"]
        self.requests.append((request.method, request.url.path))
        if error := self._error(request.method, plural):
            return error
        if request.method == "POST":
            made = await request.json()
            try:
                kubernetes_validate.validate(made, VERSION, strict=True)
            except kubernetes_validate.ValidationError as error:
                status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid"}
                return JSONResponse({**status, "message": error.message, "code": 422}, 422)
            if "dryRun" in request.query_params:
                return JSONResponse(made, 201)
            self.applied.append(json.loads(json.dumps(made)))
            self.objects[plural, made["metadata"]["name"]] = made
            of_server = {"uid": "0", "namespace": request.path_params["ns"], "creationTimestamp": _now()}
            made["metadata"] |= of_server
            if plural == "jobs" and made["spec"].get("completionMode") == "Indexed":
                await run_in_threadpool(self._make_pods, made)
            return JSONResponse(made, 201)
        labels, fields = (_selector(request, name) for name in ("labelSelector", "fieldSelector"))
        items = [each for each in self.of_kind(plural) if _matches(each, labels, fields)]
        version = next(name for name, kinds in KINDS.items() if plural in kinds)
        return JSONResponse(
            {"kind": f"{KINDS[version][plural]}List", "apiVersion": version, "metadata": {}, "items": items}
        )

    async def _one(self, request: Request) -> JSONResponse:
        plural, name = request.path_params["plural"], request.path_params["name"]
        self.requests.append((request.method, request.url.path))
        if error := self._error(request.method, plural):
            return error
        there = self.objects.get((plural, name))
        if there is None:
            message = f'{plural} "{name}" not found'
            status = {
                "kind": "Status",
                "apiVersion": "v1",
                "status": "Failure",
                "reason": "NotFound",
                "code": 404,
            }
            return JSONResponse(
                {**status, "message": message, "details": {"name": name, "kind": plural}}, 404
            )
        if request.method == "DELETE":
            await run_in_threadpool(self.delete, plural, name)
            return JSONResponse({"kind": "Status", "apiVersion": "v1", "status": "Success"})
        return JSONResponse(there)

    def _error(self, method: str, plural: str) -> JSONResponse | None:
        codes = self.errors.get((method, plural), [])
        code = (codes.pop(0) if len(codes) > 1 else codes[0]) if codes else OK
        if code == OK:
            return None
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": REASONS[code]}
        return JSONResponse({**status, "message": "of no use just now", "code": code}, code)

    def delete(self, plural: str, name: str) -> None:
        """Delete an object and the pods that belong to it; what a silent node keeps is only marked."""
        own = [
            pod
            for pod in self.of_kind("pods")
            if (plural, name) in (("jobs", _job_of(pod)), ("pods", pod["metadata"]["name"]))
        ]
        kept = [pod for pod in own if pod["spec"].get("nodeName") in self.silent]
        for pod in own:
            if pod not in kept:
                self.kubelet.stop(pod)
                self.objects.pop(("pods", pod["metadata"]["name"]), None)
        for each in (*kept, self.objects[plural, name]) if kept else ():
            each["metadata"]["deletionTimestamp"] = _now()
        if not kept:
            self.objects.pop((plural, name), None)

    def _make_pods(self, job: Object) -> None:
        name, template = job["metadata"]["name"], job["spec"]["template"]
        if self.forbidden_pods:
            message = f'Error creating: pods "{name}-0-x" is forbidden: {self.forbidden_pods}'
            event = {"metadata": {"name": f"{name}.1"}, "reason": "FailedCreate", "message": message}
            self.objects["events", f"{name}.1"] = {**event, "involvedObject": {"name": name}}
            return
        nodes = (node for number in itertools.count() if (node := f"node-{number}") not in self.silent)
        for index in range(job["spec"]["completions"]):
            labels = {**template["metadata"]["labels"], "batch.kubernetes.io/job-name": name}
            annotations = {**template["metadata"].get("annotations", {}), INDEX: str(index)}
            named = {"name": f"{name}-{index}-x7k2p", "namespace": job["metadata"]["namespace"]}
            metadata = {**named, "labels": labels, "annotations": annotations, "creationTimestamp": _now()}
            spec = {**template["spec"], "hostname": f"{name}-{index}", "nodeName": next(nodes)}
            pod = {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": spec}
            self.objects["pods", metadata["name"]] = pod
            pod["status"] = self.kubelet.start(pod)
            if pod["status"]["phase"] == "Pending":
                del spec["nodeName"]

    async def _exec(self, socket: WebSocket) -> None:
        self._loop = asyncio.get_running_loop()
        self.requests.append(("EXEC", socket.url.path))
        pod = self.objects.get(("pods", socket.path_params["name"]))
        if pod is None or pod["status"]["phase"] != "Running":
            await socket.close(1008)
            return
        await socket.accept("v5.channel.k8s.io")
        self.sockets.add(socket)
        self.commands.append(socket.url.query)
        words = [*self.kubelet.exec_argv(pod), *socket.query_params.getlist("command")]
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *words, stdin=pipe, stdout=pipe, stderr=pipe, cwd="/", start_new_session=True
        )
        self._processes.add(process)
        try:
            await _exchange(socket, process)
        finally:
            self.sockets.discard(socket)
            await process.wait()
            self._processes.discard(process)


async def _exchange(socket: WebSocket, process: asyncio.subprocess.Process) -> None:
    """Carry the streams, and the end. A connection that is lost ends no command: that of a real cluster neither."""
    assert process.stdin and process.stdout and process.stderr
    feeding = asyncio.create_task(_feed(socket, process.stdin))
    try:
        await asyncio.gather(_carry(socket, STDOUT, process.stdout), _carry(socket, STDERR, process.stderr))
        code = await process.wait()
        code = code if code >= 0 else 128 - code
        cause = {"reason": "ExitCode", "message": str(code)}
        failed = {"status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": [cause]}}
        status = {**failed, "message": f"command terminated with non-zero exit code: {code}"}
        await socket.send_bytes(
            bytes([STATUS]) + json.dumps(status if code else {"status": "Success"}).encode()
        )
        await socket.close()
    except (WebSocketDisconnect, RuntimeError):
        process.stdin.close()
    finally:
        feeding.cancel()
        await asyncio.gather(feeding, return_exceptions=True)


async def _feed(socket: WebSocket, stdin: asyncio.StreamWriter) -> None:
    while True:
        frame = await socket.receive_bytes()
        if frame[0] == CLOSE:
            stdin.close()
        elif frame[0] == STDIN and not stdin.is_closing():
            try:
                stdin.write(frame[1:])
                await stdin.drain()
            except (BrokenPipeError, ConnectionResetError):
                stdin.close()


async def _carry(socket: WebSocket, channel: int, stream: asyncio.StreamReader) -> None:
    try:
        while chunk := await stream.read(2**15):
            await socket.send_bytes(bytes([channel]) + chunk)
    except (WebSocketDisconnect, RuntimeError):
        while await stream.read(2**15):  # nobody sees the end of a process whose output nobody reads
            pass
        raise


def _place(version: str) -> str:
    return f"api{'s' * ('/' in version)}/{version}"


def _document_at(version: str) -> Object:
    return {"serverRelativeURL": f"/openapi/v3/{_place(version)}?hash=0"}


def _document(version: str) -> Object:
    """So much of OpenAPI as says that the server itself looks at the fields of what it is sent."""
    group = version.rpartition("/")[0]
    parameters = [{"name": "fieldValidation", "in": "query"}]
    paths = {
        f"/{plural}": {
            "patch": {
                "parameters": parameters,
                "x-kubernetes-group-version-kind": {"group": group, "version": "v1", "kind": kind},
            }
        }
        for plural, kind in KINDS[version].items()
    }
    return {"openapi": "3.0.0", "info": {"title": "fake", "version": "v1"}, "paths": paths}


def _of(content: Object) -> Any:
    async def answer(request: Request) -> JSONResponse:
        return JSONResponse(content)

    return answer


def _groups() -> Object:
    groups = []
    for name in KINDS:
        if "/" in name:
            version = {"groupVersion": name, "version": "v1"}
            groups.append({"name": name.split("/")[0], "versions": [version], "preferredVersion": version})
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def _resources(version: str) -> Object:
    verbs = ["create", "delete", "get", "list", "patch", "watch"]
    resources = [
        {"name": plural, "singularName": kind.lower(), "namespaced": True, "kind": kind, "verbs": verbs}
        for plural, kind in KINDS[version].items()
    ]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": resources}


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _selector(request: Request, name: str) -> list[tuple[str, str]]:
    """Keys, and the value that each has to have, empty for any; that of one with `!` behind it must not have."""
    parts = (each.partition("=") for each in request.query_params.get(name, "").split(",") if each)
    return [(key, value) for key, _, value in parts]


def _matches(item: Object, labels: list[tuple[str, str]], fields: list[tuple[str, str]]) -> bool:
    own = item["metadata"].get("labels", {})
    about = item.get("involvedObject", {}).get("name")
    wanted = {"metadata.name": item["metadata"]["name"], "involvedObject.name": about}
    has_labels = all(
        own.get(key[:-1]) != value if key.endswith("!") else key in own and value in ("", own[key])
        for key, value in labels
    )
    return has_labels and all(wanted.get(key) == value for key, value in fields)


def _job_of(pod: Object) -> str:
    return str(pod["metadata"].get("labels", {}).get("batch.kubernetes.io/job-name", ""))
