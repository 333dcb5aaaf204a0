"""The audit annotations that kube-apiserver would write if each policy were a webhook of its own.

========================================================================  ==============================================
key                                                                       written
========================================================================  ==============================================
``mutation.webhook.admission.k8s.io/round_R_index_I``                     for each mutating webhook called, ``mutated``
                                                                          or not
``patch.webhook.admission.k8s.io/round_R_index_I``                        for each patch applied that has operations,
                                                                          even if they changed nothing
``failed-open.mutation.webhook.admission.k8s.io/round_R_index_I``         for each call that failed open
``failed-open.validating.webhook.admission.k8s.io/round_0_index_J``       the same while validating
========================================================================  ==============================================

I counts all mutating webhooks, including skipped ones; J counts only those that are called. A webhook whose matching
fails is not called. The API server's webhooks support neither merge patches nor whole objects: for these the patch is
the difference that the gateway computes. What a policy in mode warn or audit would have changed was not applied.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from gateway.engine.invocation_record import InvocationRecord
from gateway.engine.verdicts import Allow, ChangeKind
from gateway.patching.difference import encode_patch
from gateway.policies.model import Phase

_operations: Final = msgspec.json.Decoder(list[dict[str, msgspec.Raw]] | None)


def kubernetes_annotations(phase: Phase, calls: Sequence[InvocationRecord]) -> dict[str, str]:
    """The annotations of these turns, in chain order."""
    called = [record for record in calls if record.called]
    if phase is Phase.MUTATING:
        return dict(pair for record in called for pair in _mutating(record))
    return {
        f"failed-open.validating.webhook.admission.k8s.io/round_0_index_{index}": record.policy.name
        for index, record in enumerate(called)
        if record.failed_open
    }


def _mutating(record: InvocationRecord) -> Iterator[tuple[str, str]]:
    place = f"round_{record.round}_index_{record.index}"
    who: dict[str, Any] = {"configuration": record.policy.configuration, "webhook": record.policy.name}
    yield f"mutation.webhook.admission.k8s.io/{place}", _json({**who, "mutated": bool(record.changes)})
    patch = _patch(record)
    if patch is not None:
        text = _json({**who, "patch": msgspec.Raw(patch), "patchType": "JSONPatch"})
        yield f"patch.webhook.admission.k8s.io/{place}", text
    if record.failed_open:
        yield f"failed-open.mutation.webhook.admission.k8s.io/{place}", record.policy.name


def _patch(record: InvocationRecord) -> bytes | None:
    """The patch as the API server decodes it: the worker's own operations with sorted members, even if they change
    nothing.
    """
    if not record.enforced or not isinstance(record.answer, Allow) or record.answer.change is None:
        return None
    if record.answer.change.kind not in {ChangeKind.JSON_PATCH, ChangeKind.KUBERNETES_PATCH}:
        return encode_patch(record.changes) if record.changes else None
    operations = _operations.decode(record.answer.change.content)
    if not operations:
        return None
    return msgspec.json.format(msgspec.json.encode([dict(sorted(each.items())) for each in operations]), indent=-1)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
