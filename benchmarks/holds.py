"""The longest call of the event loop, for each of the largest things that clients, workers and operators may send.

Nothing else is served during a call of the loop. So what is large is read, parsed, judged, encoded and written in
several; none of them should take longer than 50 ms, whatever is sent. The gateway runs in this process, on asyncio's
own loop, because that of uvloop cannot be watched; its worker is a process of its own, an existing webhook a thread.
The time is that of the loop's thread on the processor: other programs make it little longer. Of several reviews (or
reloads) the shortest of the longest calls is printed, and which call that was. Exit code 1: one takes more than 50 ms.
Repeat it with ``make bench-holds``.
"""

import asyncio
import base64
import gc
import io
import json
import socket
import ssl
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread, current_thread

from heavy import CHANGES, CHANGING, KINDS, large_of, updating, worker_of
from reviews import CONFIGURATION
from served import Load, encoded, here, request

from gateway.cli.serve import configure_garbage_collection
from gateway.serving.app import Gateway
from gateway.serving.development_certificates import ensure_development_certificates
from gateway.telemetry.logs import configure_logs

MOST_SECONDS = 0.05
REVIEWS = 4

BY_WEBHOOK = ", by a webhook"
CONDITION = "300 items, each compared with all"
QUADRATIC = "object.spec.containers.all(one, object.spec.containers.exists(other, other == one))"
ITEMS = b"[" + b",".join(b'{"name":"c%d"}' % number for number in range(300)) + b"]"

WEBHOOK = """
apiVersion: admission-gateway.dev/v1alpha1
kind: Worker
metadata: {name: webhook}
spec: {webhook: {url: "URL", caBundle: BUNDLE}}
"""

CONDITIONAL = """
apiVersion: admission-gateway.dev/v1alpha1
kind: ValidatingPolicyConfiguration
metadata: {name: conditional}
policies:
- name: conditional.bench.example.com
  worker: bench
  policy: judge
  sideEffects: None
  rules: [{operations: [UPDATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]
  matchConditions: [{name: quadratic, expression: "QUADRATIC"}]
"""

MANY = """
---
apiVersion: admission-gateway.dev/v1alpha1
kind: PHASEPolicyConfiguration
metadata: {name: many}
policies:
"""

ONE_OF_MANY = """
- name: NAME.bench.example.com
  worker: bench
  policy: POLICY
  sideEffects: None
  settings: SETTINGS
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]
  matchConditions: [{name: own, expression: "object.metadata.name != 'NAME'"}]
"""


def many(prefix: str, settings: str = "{}") -> str:
    """As many policies as there may be, with the two of ``CONFIGURATION``: 5,000 in each phase."""
    texts = []
    for phase, policy, number in (("Mutating", "add-label", 4_999), ("Validating", "judge", 4_998)):
        one = ONE_OF_MANY.replace("POLICY", policy).replace("SETTINGS", settings)
        texts += [MANY.replace("PHASE", phase), *(one.replace("NAME", f"{prefix}-{each}") for each in range(number))]
    return "".join(texts)


ONE = many("one")
RELOADS = {
    "10,000 policies get other names": many("other"),
    "10,000 policies get settings that are refused": many("one", "{unknown: 1}"),
}
"""What is loaded instead of ``ONE``, and then ``ONE`` again."""

SHAPES = (*KINDS, *CHANGES, *(name + BY_WEBHOOK for name in CHANGES), CONDITION, *RELOADS)


class Watch:
    """The longest call of the loop since ``reset``, and where it began; a garbage collection of another thread, during
    which the loop waits, is one too.
    """

    def __init__(self) -> None:
        self.seconds, self.where, self._collects = 0.0, "", 0.0
        gc.callbacks.append(self._collection)
        run = asyncio.Handle._run  # noqa: SLF001 - there is no other place

        def watched(handle: asyncio.Handle) -> None:
            where, began = position(handle), time.thread_time()
            run(handle)
            if (spent := time.thread_time() - began) > self.seconds:
                self.seconds, self.where = spent, where

        asyncio.Handle._run = watched  # type: ignore[assignment,method-assign] # noqa: SLF001

    def _collection(self, phase: str, _: object) -> None:
        if phase == "start":
            self._collects = time.thread_time()
        elif (spent := time.thread_time() - self._collects) > self.seconds:
            self.seconds, self.where = spent, f"garbage collection in {current_thread().name}"

    def reset(self) -> None:
        """Forget it."""
        self.seconds, self.where = 0.0, ""


def position(handle: asyncio.Handle) -> str:
    """The callback; of a task, the line at which it goes on."""
    called = handle._callback  # type: ignore[attr-defined] # noqa: SLF001
    coroutine_of = getattr(getattr(called, "__self__", None), "get_coro", None)
    if coroutine_of is None:
        return str(getattr(called, "__qualname__", called))
    awaited, lines = coroutine_of(), []
    while (frame := getattr(awaited, "cr_frame", None)) is not None:
        lines.append(f"{awaited.__qualname__}:{frame.f_lineno}")
        awaited = awaited.cr_await
    return " ".join(line for line in lines[-3:] if not line.startswith("sleep:"))


def main() -> None:
    """Run the benchmark, print it, and exit with 1 if a call is too long."""
    stop_logs, watch, found = configure_logs(stream=io.StringIO()), Watch(), {}
    for name in SHAPES:
        with tempfile.TemporaryDirectory() as folder:
            found[name] = seconds, where = asyncio.run(measured(Path(folder), watch, name))
        print(f"{name:<46} {1000 * seconds:>5.0f} ms  {where}")
    stop_logs()
    sys.exit(max(seconds for seconds, _ in found.values()) > MOST_SECONDS)


async def measured(folder: Path, watch: Watch, name: str) -> tuple[float, str]:
    """The longest call of the loop for this kind."""
    # asyncio's task in Python: that in C does not tell where it goes on.
    in_python = asyncio.tasks._PyTask  # type: ignore[attr-defined] # noqa: SLF001
    asyncio.get_running_loop().set_task_factory(lambda loop, coroutine, **more: in_python(coroutine, loop=loop, **more))
    longest = []
    with configuration_of(folder, name) as configuration:
        gateway = here(folder, configuration, worker_of(name))
        address, _ = await gateway.start()
        configure_garbage_collection()
        file = folder / "policies.yaml"
        text = file.read_text()
        try:
            for _ in range(REVIEWS):
                watch.reset()
                if name in RELOADS:
                    for policies in (RELOADS[name], ONE):
                        await reload(gateway, file, text.replace(ONE, policies))
                else:
                    context = ssl.create_default_context(cafile=folder / "ca.crt")
                    await asyncio.to_thread(review, address, context, load_of(name))
                longest.append((watch.seconds, watch.where))
        finally:
            await gateway.stop(drain=False)
            gc.unfreeze()
    return min(longest)


@contextmanager
def configuration_of(folder: Path, name: str) -> Iterator[str]:
    """The configuration of this kind, and the webhook that it names."""
    if name == CONDITION:
        yield f"{CONFIGURATION}---{CONDITIONAL.replace('QUADRATIC', QUADRATIC)}"
    elif name in RELOADS:
        yield CONFIGURATION + ONE
    elif not name.endswith(BY_WEBHOOK):
        yield f"{CONFIGURATION}---{CHANGING}"
    else:
        with webhook(folder, eval(CHANGES[name.removesuffix(BY_WEBHOOK)])) as worker:  # noqa: S307 - ours
            yield f"{CONFIGURATION}---{worker}---{CHANGING.replace('worker: bench', 'worker: webhook')}"


def load_of(name: str) -> Load:
    """The request of this kind."""
    if name == CONDITION:
        return updating("/validate", ITEMS, b'"allowed":')
    return large_of(name.removesuffix(BY_WEBHOOK))


@contextmanager
def webhook(folder: Path, value: object) -> Iterator[str]:
    """A webhook that adds this value to each object, as a Worker."""
    patch = [{"op": "add", "path": "/spec/large", "value": value}]
    response = {"allowed": True, "patchType": "JSONPatch", "patch": base64.b64encode(encoded(patch)).decode()}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            answer = encoded({**review, "request": None, "response": {**response, "uid": review["request"]["uid"]}})
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    certificates = ensure_development_certificates(folder)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificates.cert_file, certificates.key_file)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"https://127.0.0.1:{server.server_port}/"
        yield WEBHOOK.replace("URL", url).replace("BUNDLE", certificates.ca_bundle)
        server.shutdown()


async def reload(gateway: Gateway, file: Path, text: str) -> None:
    """Let the gateway load another configuration, and close the one before."""
    before = gateway.configuration
    await asyncio.to_thread(file.write_text, text)
    gateway.reload()
    switch = gateway._rollout  # noqa: SLF001 - there is no other place
    while gateway.configuration is before or switch._retiring or switch.candidate is not None:  # noqa: SLF001, ASYNC110
        await asyncio.sleep(0.05)


def review(address: tuple[str, int], context: ssl.SSLContext, load: Load) -> None:
    """Send it, and read the answer."""
    with socket.create_connection(address, timeout=60) as plain:
        client = context.wrap_socket(plain, server_hostname=address[0])
        client.sendall(request(load, timeout=30))
        with HTTPResponse(client) as response:
            response.begin()
            answer = response.read()
        assert load.expected in answer, answer[:2000]
        client.close()


if __name__ == "__main__":
    main()
