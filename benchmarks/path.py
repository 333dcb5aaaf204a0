"""The path of one review through the gateway: how many of our own functions it calls, in how many modules, how deep.

The gateway serves one validating policy in this process, over TLS. Its worker is a gRPC worker in a process of its own,
which denies the recorded creation of a pod. When everything is warm, ``sys.setprofile`` follows some reviews in the
thread of the event loop, from the first byte of the request to the answer and the log line. The shortest path counts,
because a timer of the gateway may fall into a review.

A call is the beginning of a function, coroutine or generator in a file under ``gateway/`` that is not generated.
Resumptions are not counted. The depth is the number of our own frames on the stack. (In Python 3.11 a comprehension is
a function.)

Repeat it with ``make path``. ``make path ARGS="-o tree"`` prints the functions in the order of their calls.
"""

import argparse
import asyncio
import io
import json
import socket
import ssl
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.client import HTTPResponse
from pathlib import Path
from types import FrameType
from typing import Any

import uvloop
from served import Load, request

from gateway.policies.configuration import load
from gateway.serving.app import Gateway
from gateway.serving.settings import Settings
from gateway.sources.files import read
from gateway.telemetry.logs import configure_logs

ROOT = Path(__file__).resolve().parents[1]
OURS = str(ROOT / "gateway") + "/"
GENERATED = "/transports/proto/"
RECORDING = ROOT / "tests" / "recordings" / "kubectl-run.1v.json"
WARM = 20
FOLLOWED = 5

CONFIGURATION = """
apiVersion: admission-gateway.dev/v1alpha1
kind: Worker
metadata: {name: path}
spec: {grpc: {target: "unix:FOLDER/path.sock", command: [PYTHON, FOLDER/path_worker.py]}}
---
apiVersion: admission-gateway.dev/v1alpha1
kind: ValidatingPolicyConfiguration
metadata: {name: path}
policies:
- name: required-label.path.example.com
  worker: path
  sideEffects: None
  inputs: [/object/metadata/labels]
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]
"""

WORKER = """
from admission_worker import Worker, deny

worker = Worker("path", version="1")

@worker.validating("required-label")
def required_label(request):
    return deny("the label owner is required")

worker.main()
"""


@dataclass(kw_only=True)
class Way:
    """One review's: a line for each call, indented by its depth, and what they come to."""

    calls: list[tuple[int, str, str]] = field(default_factory=list)
    deepest: int = 0

    def follow(self, frame: FrameType, event: str, _: Any) -> None:
        """See ``sys.setprofile``."""
        if event != "call" or not _is_ours(frame):
            return
        depth = _depth(frame)
        self.deepest = max(self.deepest, depth)
        # The argument of RESUME: 0 at the beginning of a function, more where one goes on behind yield or await.
        if frame.f_code.co_code[frame.f_lasti + 1] == 0:
            module = frame.f_code.co_filename.removeprefix(OURS).removesuffix(".py")
            self.calls.append((depth, module, frame.f_code.co_qualname))

    @property
    def summary(self) -> str:
        """One line."""
        return f"calls {len(self.calls)} modules {len({module for _, module, _ in self.calls})} depth {self.deepest}"

    def tree(self) -> Iterator[str]:
        """The functions, in the order of their calls."""
        for depth, module, name in self.calls:
            yield f"{'  ' * (depth - 1)}{module}:{name}"


def _is_ours(frame: FrameType) -> bool:
    name = frame.f_code.co_filename
    return name.startswith(OURS) and GENERATED not in name


def _depth(frame: FrameType | None) -> int:
    depth = 0
    while frame is not None:
        depth += _is_ours(frame)
        frame = frame.f_back
    return depth


def main() -> None:
    """Follow the path and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", choices=["text", "tree"], default="text")
    arguments = parser.parse_args()
    stop_logs = configure_logs(stream=io.StringIO())
    with tempfile.TemporaryDirectory() as folder:
        way = uvloop.run(followed(Path(folder)))
    stop_logs()
    if arguments.output == "tree":
        for line in way.tree():
            print(line)
    print(way.summary)


async def followed(folder: Path) -> Way:
    """The shortest path of some reviews, when the gateway is warm."""
    text = CONFIGURATION.replace("FOLDER", str(folder)).replace("PYTHON", sys.executable)
    (folder / "policies.yaml").write_text(text)
    (folder / "path_worker.py").write_text(WORKER)
    gateway = Gateway(
        load(read((folder / "policies.yaml",))),
        Settings(listen=("127.0.0.1", 0), admin_listen=("127.0.0.1", 0), tls_dev_dir=folder, worker_startup_timeout=20),
    )
    (host, port), _ = await gateway.start()
    context = ssl.create_default_context(cafile=folder / "ca.crt")
    client = await asyncio.to_thread(connected, (host, port), context)
    try:
        for _ in range(WARM):
            await asyncio.to_thread(review, client)
        return min([await one(client) for _ in range(FOLLOWED)], key=lambda way: len(way.calls))
    finally:
        client.close()
        await gateway.stop(drain=False)


def connected(address: tuple[str, int], context: ssl.SSLContext) -> ssl.SSLSocket:
    """A connection to the gateway."""
    return context.wrap_socket(socket.create_connection(address, timeout=20), server_hostname=address[0])


async def one(client: ssl.SSLSocket) -> Way:
    """The path of one review."""
    way = Way()
    sys.setprofile(way.follow)
    try:
        await asyncio.to_thread(review, client)
    finally:
        sys.setprofile(None)
    return way


def review(client: ssl.SSLSocket) -> None:
    """Send one in one piece, as the API server does, and look at its answer."""
    body = json.loads(RECORDING.read_text())["body"].encode()
    client.sendall(request(Load(name="denied", path="/validate", body=body, expected=b"")))
    with HTTPResponse(client) as response:
        response.begin()
        answer = json.load(response)
    assert answer["response"]["status"]["message"] == "the label owner is required", answer


if __name__ == "__main__":
    main()
