"""A hash of the configuration that can change a verdict: 32 bytes, part of the verdict's cache key.

Included: the worker (its name and how it is reached, since another program may answer differently), its policy, the
settings, the policy's inputs and writes. Phase, version and document are the key's other parts. With TLS, the name that
the worker must prove is included too, so that an answer received in plain text is never reused for a verified worker.

Not included: what decides whether and when the policy is called and how its verdict is used (rules, selectors,
timeouts, failurePolicy, mode, cache, onConflict); the policy's name in the configuration, and its file. "Changing a
timeout flushes nothing". (The cache still keeps each policy's verdicts apart, so that they can be purged.)

The bytes are equal on all replicas: they do not depend on the process, the order of a file, or the machine. The
directory of a file is not included, although relative paths start there: the mount may differ between replicas. CA
bundles and certificates are not included either: they are renewed while the worker stays the same.

Framing: each part is a netstring (``LENGTH:BYTES,``), a list is the netstring of its elements' netstrings, and variants
have a tag. So no two different configurations have the same bytes.
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
"""The number changes whenever the same configuration gets another meaning, including the default of ``writes``."""

_EVERYTHING: Final = b"everything"
_ABSENT: Final = b"absent"


def verdict_identity(policy: Policy, worker: Worker) -> bytes:
    """The identity of ``policy`` at ``worker``: a SHA-256, 32 bytes.

    Equal only for policies that call the same policy of the same worker with the same settings, inputs and writes.
    """
    parts = (_FORMAT, _worker(worker), _text(policy.policy), policy.settings, _inputs(policy.inputs))
    return hashlib.sha256(_list((*parts, _writes(policy.writes)))).digest()


def _worker(worker: Worker) -> bytes:
    grpc = _ABSENT if worker.grpc is None else _grpc(worker.grpc)
    webhook = _ABSENT if worker.webhook is None else _webhook(worker.webhook)
    # Fields added later are included only where they are set, so that the keys of other workers stay the same.
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
    # The same webhook receives other content in another version of AdmissionReview.
    return _list((_text(target.url), where, _list(map(_text, target.review_versions))))


def _inputs(inputs: Inputs) -> bytes:
    return _places(inputs.places)


def _writes(writes: Writes) -> bytes:
    return _list((_places(writes.granted), _places(writes.narrowed), b"protects" if writes.protects else b""))


def _places(places: PointerSet | None) -> bytes:
    """The widest pointers, sorted: equal sets have equal bytes, however they are written."""
    if places is None:
        return _EVERYTHING
    return _list(_text(format_pointer(pointer)) for pointer in places.pointers)


def _list(parts: Iterable[bytes]) -> bytes:
    return b"".join(b"%d:%b," % (len(part), part) for part in parts)


def _text(text: str) -> bytes:
    # A Python string may have a lone surrogate, which UTF-8 cannot encode.
    return text.encode("utf-8", "surrogatepass")
