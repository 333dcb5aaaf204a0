"""Whatever bytes a body is: they are an AdmissionReview, or ReviewError.

* What is decoded lazily raises ReviewError too, and nothing else; its message is one line that quotes nothing.
* A document made of it is JSON, has no uid, and holds no more than its inputs grant.
* The beginning of the same bytes gives an envelope with the same uid, or none (``oversized``).
"""

import json
from collections.abc import Iterator
from contextlib import suppress

from gateway.documents.documents import DocumentBuilder
from gateway.review.request import Request, ReviewError, decode
from gateway.scopes.inputs import Inputs
from gateway.scopes.pointer_set import PointerSet
from gateway.serving.oversized import envelope
from tests.traffic import recordings

WORDS = (
    b'"uid" | "request" | "kind" | "object" | "oldObject" | "options" | "userInfo" | "dryRun" | null | '
    b'admission.k8s.io/v1beta1 | "CONNECT" | [[[[[[[[ | {"a":{"a":{"a": | 1e999 | -0 | \\ud800 | '
    b"\xed\xa0\x80"
).split(b" | ")

_LABELS = Inputs(places=PointerSet([("object", "metadata", "labels")]))
_ALWAYS = {"kind", "resource", "subResource", "operation", "dryRun", "object"}


def seeds() -> Iterator[bytes]:
    """Each recorded body."""
    for recording in recordings():
        yield recording.body


def run(data: bytes) -> None:
    """See the invariant above."""
    found = envelope(data[:4096])
    try:
        request = decode(data)
    except ReviewError as error:
        _check_message(error, data)
        return
    if found is not None:
        assert found.uid == request.uid or _has_duplicates(data), (found.uid, request.uid)
    for read in (_object, _old_object, _rest, _documents):
        try:
            read(request)
        except ReviewError as error:
            _check_message(error, data)


def _object(request: Request) -> None:
    assert request.object is None or isinstance(request.object, dict)


def _old_object(request: Request) -> None:
    assert request.old_object is None or isinstance(request.old_object, dict)


def _rest(request: Request) -> None:
    for name in dir(type(request)):
        if not name.startswith("_") and isinstance(getattr(type(request), name), property):
            getattr(request, name)


def _documents(request: Request) -> None:
    for inputs in (Inputs.EVERYTHING, _LABELS):
        document = DocumentBuilder(request).of(inputs, None, changed=False)
        members = json.loads(document.content)
        assert "uid" not in members
        if inputs is _LABELS:
            assert set(members) <= _ALWAYS
            assert set(members.get("object") or ()) <= {"metadata"}
            assert set((members.get("object") or {}).get("metadata") or ()) <= {"labels"}


def _check_message(error: ReviewError, data: bytes) -> None:
    text = str(error)
    assert text.isprintable(), repr(text)
    assert len(text) < 500


def _has_duplicates(data: bytes) -> bool:
    """Whether an object has two members of one name: the envelope takes the first uid, the decoder the last."""
    duplicates = False

    def pairs(members):
        nonlocal duplicates
        duplicates = duplicates or len({name for name, _ in members}) < len(members)
        return dict(members)

    with suppress(ValueError, RecursionError):
        json.loads(data, object_pairs_hook=pairs)
    return duplicates
