"""A webhook's AdmissionReview on one side, the engine's answers on the other. No connection, no waiting.

What ``messages`` is for workers, this is for existing webhooks: an answer that kube-apiserver would refuse is a failure
of the policy, in kube-apiserver's words. A denial comes first: what else it carries is not looked at, but its warnings
and audit annotations count.
"""

import re
from typing import Any, Final

from msgspec.structs import replace

from gateway.engine.verdicts import Allow, Answer, Change, ChangeKind, Deny, Failure
from gateway.policies.model import Phase
from gateway.reasons import Reason
from gateway.review.answers import JSON_PATCH, AnswerError, WebhookAnswer, read_answer

_NO_OPERATIONS: Final = re.compile(rb"[ \t\r\n]*(?:\[[ \t\r\n]*\]|null)[ \t\r\n]*")
"""A patch of which kube-apiserver says "if len(patchObj) == 0": then nobody asks for its type, or for an object."""


def review_answer(name: str, body: bytes, *, uid: str, api_version: str, phase: Phase) -> Answer:
    """What a webhook's answer with a 2xx status says.

    Args:
        name: the webhook's, for messages.
        body: the whole body.
        uid: of the request that was sent to it.
        api_version: of the review that was sent to it.
        phase: in which it was asked.
    """
    try:
        answer = read_answer(body, uid=uid, api_version=api_version, mutating=phase is Phase.MUTATING)
    except AnswerError as error:
        return _invalid(name, str(error))
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


def _deny(answer: WebhookAnswer) -> Deny:
    status = answer.status
    said: dict[str, Any] = {"warnings": answer.warnings, "audit_annotations": answer.audit_annotations}
    if status is None:
        return Deny(code=0, reason="", **said)
    return Deny(code=status.code, message=status.message, reason=status.reason, details=status.details, **said)


def _invalid(name: str, message: str) -> Failure:
    return Failure(reason=Reason.INVALID_RESPONSE, message=f'failed calling webhook "{name}": {message}')
