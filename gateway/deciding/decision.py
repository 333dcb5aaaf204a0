"""The one record of a review: what was asked, matched, answered, changed, and what went out.

The demonstration prints it, telemetry renders it; nothing else records. It is a value: complete when it is made, and
never changed afterwards. Times are seconds on the driver's clock; only differences mean something.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from gateway.deciding.annotations import kubernetes_annotations
from gateway.deciding.call import Call
from gateway.patching import Operation
from gateway.policies import Phase
from gateway.review import Request, Response


class Outcome(StrEnum):
    """How the review ended."""

    ALLOWED = "allowed"
    """Nobody said no, and everybody who must be heard could judge."""

    DENIED = "denied"
    """At least one worker said no."""

    FAILED = "failed"
    """No worker said no, but a policy that must be heard (failurePolicy Fail) could not judge."""


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
        """The audit annotations that kube-apiserver itself would write, were each policy a webhook of its own."""
        return kubernetes_annotations(self.phase, self.calls)
