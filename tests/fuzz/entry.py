"""Whatever bytes a client sends, in whatever pieces: each request gets a decided answer, or the connection is closed.

* No exception leaves the connection, none is logged, and no answer has status 500.
* What is written is whole HTTP answers. Those with status 200 are the replies that were judged, in their order.
* A review's has apiVersion, kind and uid of its request, and allows only what the policy's worker has allowed in this
  very review. Its patch, applied, gives the object with what the worker has changed, and nothing else.
* A whole request is answered within its budget; a client that falls silent loses its connection.
* When the client is gone, nothing is left: no task, no request in hand, no byte of a body.

The first byte of an input says how the rest is sent: see ``_Plan``.
"""

import base64
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jsonpatch

from gateway.engine.policy_call import PolicyCall
from gateway.engine.verdicts import Allow, Answer, Change, ChangeKind, Deny
from gateway.policies.model import Phase
from gateway.serving.limits import Limits
from tests.patching.values import strictly_equal
from tests.traffic import recordings
from tests.virtual.gateway import VirtualGateway, policies_yaml, worker_yaml
from tests.virtual.worker import ScriptedWorker

WORDS = (
    b"POST | GET | HEAD | HTTP/1.1 | HTTP/1.0 | /mutate | /validate | ?timeout=1s | \r\n | \r\n\r\n | "
    b"Transfer-Encoding: chunked | Transfer-Encoding: gzip, chunked | Content-Length:  | Connection: close | "
    b"Expect: 100-continue | Content-Encoding: gzip | Upgrade: h2c | charset=utf-16 | 0\r\n\r\n | 5;x=y\r\n | "
    b'"uid" | "object" | "oldObject" | "operation" | "DELETE" | "request" | null | 1e999 | \xff | \\ud800'
).split(b" | ")

STATUSES = {100, 200, 400, 404, 405, 408, 413, 415, 417, 429, 431, 503}
"""What the gateway answers; 500 is an error of its own."""

SILENT_SECONDS = 300.0
"""After which a silent client has lost its connection: more than the keep-alive, a budget and all that drains."""

_RULES = [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}]
_POLICIES = worker_yaml("judge") + "".join(
    policies_yaml(
        kind,
        [
            {
                "name": f"{name}.fuzz.example.com",
                "worker": "judge",
                "policy": name,
                "rules": _RULES,
                "sideEffects": "None",
            }
        ],
    )
    for kind, name in (("Mutating", "label"), ("Validating", "guard"))
)
_LABELS = {"fuzz": "yes"}
_LABEL = json.dumps([{"op": "add", "path": "/metadata/labels", "value": _LABELS}]).encode()
_HEAD = b"POST %b HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
_ANSWER = re.compile(rb"HTTP/1\.[01] (\d{3}) [ -~]*\r\n((?:[!-9;-~]+: [ -~]*\r\n)*)\r\n")
_LENGTH = re.compile(rb"Content-Length: (\d+)")


def _answer(call: PolicyCall, _version: str) -> tuple[Answer, float]:
    if b"forbidden" in call.document.content:
        return Deny(message="it says forbidden"), 0.001
    if call.policy.policy == "label":
        return Allow(change=Change(kind=ChangeKind.JSON_PATCH, content=_LABEL)), 0.001
    return Allow(), 0.0


class _Plan:
    """How an input is sent. The bits of its first byte: 1: the client stays, silent; 2: in pieces, cut at each "|"
    of the input; 4: the input is a body, and has a right header; 8: to /mutate instead of /validate.
    """

    def __init__(self, data: bytes) -> None:
        bits = data[0] if data else 0
        content = data[1:]
        self.stays = bool(bits & 1)
        self.is_body = bool(bits & 4)
        self.is_mutating = bool(bits & 8)
        pieces = content.split(b"|") if bits & 2 else [content]
        if self.is_body:
            path = b"/mutate?timeout=5s" if self.is_mutating else b"/validate?timeout=5s"
            pieces.insert(0, _HEAD % (path, sum(map(len, pieces))))
            if not bits & 2:
                pieces = [b"".join(pieces)]
        self.pieces = [piece for piece in pieces if piece]


class _World:
    """The gateway, and the reviews that it has judged since the last look: phase, body, reply."""

    def __init__(self, gateway: VirtualGateway) -> None:
        self.gateway = gateway
        self.own_tasks = len(self.gateway.tasks)
        self.judged: list[tuple[Phase, bytes, bytes]] = []
        judge = self.gateway.server._judge

        async def judging(target: Any, body: bytes, *args: Any, **kw: Any) -> Any:
            reply = await judge(target, body, *args, **kw)
            if reply.status == 200:
                self.judged.append((target.phase, body, reply.body))
            return reply

        self.gateway.server._judge = judging
        self.worker = self.gateway.worker["judge"]

    def forget(self) -> None:
        self.judged.clear()
        self.worker.calls.clear()
        self.worker.given.clear()


_worlds: list[_World] = []


@contextmanager
def world() -> Iterator[None]:
    """While there is a gateway that inputs can be sent to."""
    with VirtualGateway(
        policies=_POLICIES,
        workers=lambda name: ScriptedWorker(name=name, policies=("label", "guard"), answer=_answer),
        # A sweep of all connections each 2.5 s of virtual time is often enough, and ten times as fast.
        limits=Limits(overrun_seconds=10.0),
    ) as gateway:
        _worlds.append(_World(gateway))
        yield
        _worlds.clear()


def seeds() -> Iterator[bytes]:
    """Each recorded request, as it was sent and as a body; and each form of a request that is refused."""
    for recording in recordings():
        head = b"POST /%b?timeout=10s HTTP/1.1\r\n" % (b"mutate" if recording.phase == "mutating" else b"validate")
        fields = [(name, value) for name, value in recording.headers if not name.startswith(":")]
        head += b"".join(b"%b: %b\r\n" % (name.encode(), value.encode()) for name, value in fields)
        yield b"\x00" + head + b"\r\n" + recording.body
        yield bytes([4 | (8 if recording.phase == "mutating" else 0)]) + recording.body
    body = recordings()[0].body
    chunks = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    plain = _HEAD % (b"/validate", len(body))
    yield b"\x02" + plain[:20] + b"|" + plain[20:] + b"|" + body[:50] + b"|" + body[50:]
    yield b"\x01" + plain + body[:50]
    yield b"\x01" + plain + body + plain + body  # pipelined
    chunked = b"\x00POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: "
    for field in (b"chunked", b"gzip, chunked", b"chunked\r\nExpect: 100-continue"):
        yield chunked + field + b"\r\n\r\n" + chunks
    yield b"\x00GET /healthz HTTP/1.1\r\n\r\n"
    yield b"\x01\x16\x03\x01\x02\x00"
    yield b"\x00PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def run(data: bytes) -> None:
    """Send the input; see the invariant above."""
    plan, world = _Plan(data), _worlds[0]
    gateway, loop = world.gateway, world.gateway.loop
    world.forget()
    client = gateway.connect()
    for piece in plan.pieces:
        client.send(piece)
        loop.run_until_idle()
    if plan.is_body or plan.stays:
        loop.run_for(5.0)
    if plan.is_body:
        assert _answers(client.received, data), "a whole request has no answer at the end of its budget"
    if plan.stays:
        loop.run_for(SILENT_SECONDS)
        assert client.closed, "a silent client is still connected"
    client.hang_up()
    loop.run_for(0.01)
    answers = _answers(client.received, data)
    replies = [body for status, body in answers if status == 200]
    assert replies == [reply for _, _, reply in world.judged][: len(replies)], "the client got other replies"
    if plan.is_body or plan.stays:
        assert len(replies) == len(world.judged), "a reply was not sent"
    _check_reviews(world)
    _check_nothing_is_left(world)


def _answers(received: bytes | bytearray, data: bytes) -> list[tuple[int, bytes]]:
    """Status and body of the answers, one after another; each is whole."""
    found: list[tuple[int, bytes]] = []
    at = 0
    while at < len(received):
        answer = _ANSWER.match(received, at)
        assert answer is not None, f"no HTTP answer: {bytes(received[at : at + 100])!r}"
        status = int(answer[1])
        assert status in STATUSES, f"status {status}: {bytes(received[at : at + 500])!r}"
        at = answer.end()
        if status == 100:
            found.append((status, b""))
            continue
        length = _LENGTH.search(answer[2])
        assert length is not None, "an answer without Content-Length"
        if received.startswith(b"HTTP/1.", at) or (at == len(received) and b"HEAD" in data):
            found.append((status, b""))
            continue  # the answer to a HEAD request has no body
        found.append((status, bytes(received[at : at + int(length[1])])))
        at += int(length[1])
        assert at <= len(received), "an answer is cut"
    return found


def _check_reviews(world: _World) -> None:
    for phase, body, reply in world.judged:
        review = json.loads(reply)
        response = review.pop("response")
        try:
            sent = json.loads(body)
        except (ValueError, RecursionError):
            continue  # read by msgspec, but not by Python
        request = sent.pop("request")
        expected = {"apiVersion": sent["apiVersion"], "kind": "AdmissionReview"}
        assert review == expected, f"the answer is of {review}, the review of {expected}"
        uid = response["uid"]
        assert uid == request["uid"], f"the answer's uid is {uid!r}, the request's {request['uid']!r}"
        if response["allowed"]:
            allowed = [call for call, answer in world.worker.given if call.uid == uid and isinstance(answer, Allow)]
            assert allowed, "allowed, and no worker has said so"
            _check_object(phase, request, response)
        else:
            assert "patch" not in response


def _check_object(phase: Phase, request: Any, response: Any) -> None:
    """The API server gets the object with the labels that the worker has set, or, validating, no patch at all."""
    if phase is Phase.VALIDATING:
        assert "patch" not in response
        return
    patch = json.loads(base64.b64decode(response["patch"])) if "patch" in response else []
    assert response.get("patchType") == ("JSONPatch" if patch else None)
    before = request["object"]
    expected = {**before, "metadata": {**before["metadata"], "labels": _LABELS}}
    after = jsonpatch.apply_patch(before, patch) if patch else before
    assert strictly_equal(after, expected), f"the patch {patch} of {before} is not that of the worker"


def _check_nothing_is_left(world: _World) -> None:
    gateway = world.gateway
    assert not gateway.errors.found, gateway.errors.found
    load = gateway.server.load
    assert (load.requests, load.reviews, load.body_bytes) == (0, 0, 0), "requests or bytes are still counted"
    assert not gateway.connections.open, "a connection is still counted"
    assert not gateway.handler._drivers, "a review is still driven"
    assert len(gateway.tasks) <= world.own_tasks, f"tasks are left: {gateway.tasks}"
