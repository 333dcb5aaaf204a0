"""The one record of a review: what was asked, matched, answered, changed, and what went out.

The demonstration prints it, telemetry renders it; nothing else records. It is a value: complete when it is made, and
never changed afterwards. Times are seconds on the driver's clock; only differences mean something.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import msgspec

from gateway.deciding.verdicts import Answer, Failure
from gateway.patching import Operation, encode_patch
from gateway.policies import FailurePolicy, Phase, Policy
from gateway.review import Request, Response


class Source(StrEnum):
    """Where an answer came from."""

    ASKED = "asked"
    """The worker was asked for this turn."""

    MEMO = "memo"
    """The same question had its verdict already, in this review."""

    SHARED = "shared"
    """The same question was open in this review, and its verdict served both."""

    NOBODY = "nobody"
    """Nobody was asked: the failure was known without (configuration, budget, namespace, version)."""


class Outcome(StrEnum):
    """How the review ended."""

    ALLOWED = "allowed"
    """Nobody said no, and everybody who must be heard could judge."""

    DENIED = "denied"
    """At least one worker said no."""

    FAILED = "failed"
    """No worker said no, but a policy that must be heard (failurePolicy Fail) could not judge."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """One policy's turn in one round, called or not.

    ``round`` is 0, or 1 when reinvoked; ``index`` is the policy's place in the plan. ``matched`` False: ``why`` names
    what said no (rules, objectSelector, namespaceSelector, reinvocation), and all that follows is empty.
    ``document_key`` and ``document_size`` are the SHA-256 and the bytes of the document put to the policy, 0 where
    nobody was asked; the document itself is not kept: a chain of twenty would hold the object twenty times.
    ``answer`` is what the turn came to, a failure found while applying included; ``changes`` is what it changed, as our
    own difference.
    """

    round: int
    index: int
    label: str
    policy: Policy
    matched: bool
    why: str = ""
    source: Source = Source.NOBODY
    document_key: bytes = b""
    document_size: int = 0
    started: float = 0.0
    ended: float = 0.0
    answer: Answer | None = None
    changes: tuple[Operation, ...] = ()

    @property
    def failed_open(self) -> bool:
        """A failure that the policy's failurePolicy let pass."""
        return isinstance(self.answer, Failure) and self.policy.failure_policy is FailurePolicy.IGNORE

    @property
    def failed_closed(self) -> bool:
        """A failure that refuses the request."""
        return isinstance(self.answer, Failure) and self.policy.failure_policy is FailurePolicy.FAIL


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """A decided review.

    ``response`` is what goes out. ``patch`` is the difference between the object that came and ``object``, empty
    unless the request is allowed. ``changed_object`` is None where nobody changed anything. ``ends`` is when the
    budget would have ended.
    """

    phase: Phase
    request: Request
    outcome: Outcome
    response: Response
    patch: tuple[Operation, ...]
    changed_object: Any
    calls: tuple[Call, ...]
    started: float
    ended: float
    ends: float

    @property
    def object(self) -> Any:
        """The object after all changes; None where the request has none."""
        return self.request.object if self.changed_object is None else self.changed_object

    def kubernetes_annotations(self) -> dict[str, str]:
        """The audit annotations that kube-apiserver itself would write, were each policy a webhook of its own.

        ``round_R_index_I``: I counts all webhooks while mutating, and those that matched while validating.
        """
        if self.phase is Phase.MUTATING:
            return dict(pair for call in self.calls if call.matched for pair in _mutating_annotations(call))
        matched = [call for call in self.calls if call.matched]
        return {
            f"failed-open.validating.webhook.admission.k8s.io/round_0_index_{index}": call.policy.name
            for index, call in enumerate(matched)
            if call.failed_open
        }


def _mutating_annotations(call: Call) -> list[tuple[str, str]]:
    place = f"round_{call.round}_index_{call.index}"
    who: dict[str, Any] = {"configuration": call.policy.configuration, "webhook": call.policy.name}
    pairs = [(f"mutation.webhook.admission.k8s.io/{place}", _json({**who, "mutated": bool(call.changes)}))]
    if call.changes:
        patch = msgspec.Raw(encode_patch(call.changes))
        pairs.append(
            (f"patch.webhook.admission.k8s.io/{place}", _json({**who, "patch": patch, "patchType": "JSONPatch"}))
        )
    if call.failed_open:
        pairs.append((f"failed-open.mutation.webhook.admission.k8s.io/{place}", call.policy.name))
    return pairs


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
