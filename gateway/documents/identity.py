"""What of the configuration can change a verdict, as 32 bytes: a part of the key under which the verdict is kept.

Inside: the worker (its name, and how it is reached: another program answers otherwise), which of its policies, the
settings, what the policy is shown, what it may change. Phase, version and document are the key's other parts. Over TLS
also the name that the worker has to prove: what anybody may have said in plain text is not reused for somebody proven.

Outside: whatever decides whether and when it is asked, and what becomes of the verdict (rules, selectors, timeouts,
failurePolicy, mode, cache, onConflict); what the policy is called here, and where it is written. "Changing a timeout
flushes nothing". (The cache keeps each policy's verdicts apart all the same, so that they can be purged.)

The bytes are equal on all replicas: nothing in them depends on the process, the order of a file, or the machine. So
the directory of a file counts neither, though a relative path begins there: the mount may differ between replicas. Nor
do authorities and certificates: they are renewed, and the worker stays who it is.

Framing: each part is a netstring (``LENGTH:BYTES,``), a list is the netstring of its elements' netstrings, and a sum is
told by a tag. So no two different configurations are the same bytes.
"""

import hashlib
from collections.abc import Iterable
from typing import Final

from gateway.policies.model import Policy
from gateway.policies.workers.targets import GrpcTarget, HookTarget, WebhookTarget, Worker
from gateway.scopes.inputs import Inputs
from gateway.scopes.pointer import format_pointer
from gateway.scopes.pointer_set import PointerSet
from gateway.scopes.writes import Writes

_FORMAT: Final = b"admission-gateway verdict identity 2"
"""Another number whenever the same configuration comes to mean something else, the default of ``writes`` included."""

_EVERYTHING: Final = b"everything"
_ABSENT: Final = b"absent"


def verdict_identity(policy: Policy, worker: Worker) -> bytes:
    """The identity of what ``policy`` asks ``worker``: a SHA-256, 32 bytes.

    Equal for policies that put the same question to the same worker, and for no others.
    """
    parts = (_FORMAT, _worker(worker), _text(policy.policy), policy.settings, _inputs(policy.inputs))
    return hashlib.sha256(_list((*parts, _writes(policy.writes)))).digest()


def _worker(worker: Worker) -> bytes:
    grpc = _ABSENT if worker.grpc is None else _grpc(worker.grpc)
    webhook = _ABSENT if worker.webhook is None else _webhook(worker.webhook)
    # What came later stands only where it is meant, so that it changes no key of the others.
    queue = () if worker.queue is None else (b"queue", _text(worker.queue.stream))
    hook = () if worker.hook is None else (b"hook", _hook(worker.hook))
    return _list((_text(worker.name), grpc, webhook, *queue, *hook))


def _grpc(target: GrpcTarget) -> bytes:
    proven = () if target.tls is None else (_text(target.tls.server_name),)
    return _list((_text(target.target), _list(map(_text, target.command)), *proven))


def _hook(target: HookTarget) -> bytes:
    kinds = _list(_list(map(_text, each)) for each in target.snapshots_of)
    return _list((_text(target.path), kinds, _list(target.objects)))


def _webhook(target: WebhookTarget) -> bytes:
    service = target.service
    where = (
        _ABSENT
        if service is None
        else _list(map(_text, (service.namespace, service.name, service.path, str(service.port))))
    )
    # In another version of AdmissionReview, the same webhook is sent something else.
    return _list((_text(target.url), where, _list(map(_text, target.review_versions))))


def _inputs(inputs: Inputs) -> bytes:
    return _places(inputs.places)


def _writes(writes: Writes) -> bytes:
    return _list((_places(writes.granted), _places(writes.narrowed), b"protects" if writes.protects else b""))


def _places(places: PointerSet | None) -> bytes:
    """The widest of them, sorted: the same set is the same bytes, however it was written."""
    if places is None:
        return _EVERYTHING
    return _list(_text(format_pointer(pointer)) for pointer in places.pointers)


def _list(parts: Iterable[bytes]) -> bytes:
    return b"".join(b"%d:%b," % (len(part), part) for part in parts)


def _text(text: str) -> bytes:
    # A name in Python may hold half of a surrogate pair, which UTF-8 has no bytes for.
    return text.encode("utf-8", "surrogatepass")
