"""Converts a webhook's AdmissionReview to the engine's answer, without any input or output.

As ``messages`` does for workers: an answer that kube-apiserver would refuse is a failure of the policy, with
kube-apiserver's message. A denial is checked first: of its other members, only warnings and audit annotations are used.
"""

import re
from typing import Any, Final

from msgspec.structs import replace

from gateway.engine.verdicts import Allow, Answer, Change, ChangeKind, Deny, Failure
from gateway.policies.model import Phase
from gateway.reasons import Reason
from gateway.review.answers import JSON_PATCH, AnswerError, WebhookAnswer, read_answer
from gateway.transports.limits import MOST_STATEMENTS

_NO_OPERATIONS: Final = re.compile(rb"[ \t\r\n]*(?:\[[ \t\r\n]*\]|null)[ \t\r\n]*")
"""A patch for which kube-apiserver's "if len(patchObj) == 0" holds: it then checks neither patchType nor the object."""


def review_answer(name: str, body: bytes, *, uid: str, api_version: str, phase: Phase) -> Answer:
    """The answer in the body of a webhook's response with a 2xx status.

    Args:
        name: the webhook's, for messages.
        body: the whole body.
        uid: of the request that was sent to it.
        api_version: of the review that was sent to it.
        phase: of the review.
    """
    try:
        answer = read_answer(body, uid=uid, api_version=api_version, mutating=phase is Phase.MUTATING)
    except AnswerError as error:
        return _invalid(name, str(error))
    if (statements := _statements(answer)) > MOST_STATEMENTS:
        return _invalid(
            name,
            f"{statements} warnings, audit annotations and causes, more than the gateway's limit of {MOST_STATEMENTS}",
        )
    if not answer.allowed:
        return _deny(answer)
    change = None
    if answer.patch is not None and not _NO_OPERATIONS.fullmatch(answer.patch):
        if answer.patch_type != JSON_PATCH:
            unsupported = _invalid(name, f'unsupported patch type "{answer.patch_type[:_SHOWN]}"')
            return replace(unsupported, warnings=answer.warnings, audit_annotations=answer.audit_annotations)
        change = Change(kind=ChangeKind.KUBERNETES_PATCH, content=answer.patch)
    return Allow(change=change, warnings=answer.warnings, audit_annotations=answer.audit_annotations)


_SHOWN: Final = 63
"""Characters of a patch type that a message repeats: the only one there is has 9."""


def _statements(answer: WebhookAnswer) -> int:
    details = None if answer.status is None else answer.status.details
    causes = (details or {}).get("causes") or ()
    return len(answer.warnings) + len(answer.audit_annotations) + len(causes)


def _deny(answer: WebhookAnswer) -> Deny:
    status = answer.status
    shared: dict[str, Any] = {"warnings": answer.warnings, "audit_annotations": answer.audit_annotations}
    if status is None:
        return Deny(code=0, reason="", **shared)
    return Deny(code=status.code, message=status.message, reason=status.reason, details=status.details, **shared)


def _invalid(name: str, message: str) -> Failure:
    return Failure(reason=Reason.INVALID_RESPONSE, message=f'failed calling webhook "{name}": {message}')
