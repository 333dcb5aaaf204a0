"""Whatever a webhook answers: media type, status and body, compressed or not, become an answer or a failure.

Never another exception, and no more memory than the limit allows. What becomes of the answer: see ``judging``.

An input is the status (one byte), a line with the Content-Type, and the body.
"""

import base64
import gzip
import json
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from gateway.transports.webhook.content import GzipError, TooLargeError, read_content
from gateway.transports.webhook.media import MediaTypeError, media_type
from gateway.transports.webhook.statuses import status_message
from gateway.transports.webhook_answers import review_answer
from tests.fuzz import judging

RECORDED = Path(__file__).parents[1] / "conformance" / "agnhost_webhook_io.jsonl"
LIMIT = 1 << 20
UID = "7d3c6e3f"
WORDS = (
    b'"response" | "allowed":true | "uid":"7d3c6e3f" | "patch" | "patchType":"JSONPatch" | "status" | "code" | '
    b'"auditAnnotations" | "warnings" | null | \\ud800 | \\u0000 | 1e400 | admission.k8s.io/v1beta1 | '
    b'application/json | charset= | ;;; | \x1f\x8b\x08 | "details":{"causes":[ | "kind":"AdmissionReview"'
).split(b" | ")


def seeds() -> Iterator[bytes]:
    """Answers that are right, and some that are not; and what Kubernetes' own test webhook has answered."""
    patch = base64.b64encode(json.dumps([{"op": "add", "path": "/metadata/labels/b", "value": "2"}]).encode()).decode()
    responses = [
        {"uid": UID, "allowed": True},
        {"uid": UID, "allowed": True, "patch": patch, "patchType": "JSONPatch", "warnings": ["w"]},
        {"uid": UID, "allowed": False, "status": {"code": 403, "message": "no", "reason": "Forbidden"}},
        {"uid": UID, "allowed": False, "status": {"details": {"causes": [{"field": "f", "message": "m"}]}}},
        {"uid": UID, "allowed": True, "auditAnnotations": {"key": "value"}},
        {"uid": "other", "allowed": True},
        None,
    ]
    for version in ("v1", "v1beta1"):
        for response in responses:
            review = {"apiVersion": f"admission.k8s.io/{version}", "kind": "AdmissionReview", "response": response}
            body = json.dumps(review).encode()
            yield b"\x01application/json\n" + body
            yield b"\x81application/json; charset=utf-8\n" + body
            yield b"\x82\n" + gzip.compress(body, mtime=0)
    yield b"\x03text/plain\noh no"
    yield b'\x04application/json\n{"kind":"Status","message":"no"}'
    for content_type, body in recorded():
        ours = body | {"response": body["response"] | {"uid": UID}} if body.get("response") else body
        for review in (body, ours):
            for bits in b"\x01\x81":
                yield bytes([bits]) + content_type + b"\n" + json.dumps(review).encode()


def recorded() -> Iterator[tuple[bytes, Any]]:
    """Content-Type and review of each recorded answer."""
    for line in RECORDED.read_text().splitlines()[1:]:
        expected = json.loads(line)["expected"]
        if isinstance(expected.get("body"), dict):
            yield expected.get("contentType", "").encode(), expected["body"]


def run(data: bytes) -> None:
    """See the invariant above."""
    phase, rest = judging.phase_of(data)
    bits = data[0] if data else 0
    content_type, _, body = rest.partition(b"\n")
    with suppress(MediaTypeError):
        media_type(content_type.decode("latin-1"))
    if bits & 2:
        body = _decompressed(body)
    status_message(400 + bits % 200, content_type.decode("latin-1"), body)
    for version in ("v1", "v1beta1"):
        answer = review_answer("w.example.com", body, uid=UID, api_version=f"admission.k8s.io/{version}", phase=phase)
        judging.check(answer, phase)


def _decompressed(body: bytes) -> bytes:
    pieces: list[bytes] = []
    with suppress(TooLargeError, GzipError):
        _run(_read(body, pieces))
    assert sum(map(len, pieces)) <= LIMIT, "more than the limit is in memory"
    return b"".join(pieces)


async def _read(body: bytes, pieces: list[bytes]) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for at in range(0, len(body), 100):
            yield body[at : at + 100]

    async for piece in read_content(chunks(), gzip=True, limit=LIMIT):
        pieces.append(piece)  # noqa: PERF401 - those before an error count


def _run(coroutine: Coroutine[Any, Any, None]) -> None:
    """A coroutine that waits for nothing but its turn."""
    with suppress(StopIteration):
        while True:
            coroutine.send(None)
