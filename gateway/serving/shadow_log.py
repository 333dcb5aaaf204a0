"""What is told of shadows: whoever judges otherwise than its policy, and whoever cannot judge.

Both verdicts are told, with what each changes, and with the texts that people would read (of which none makes a
difference). Of failures, the first of a kind is told: a worker that is away would fill the log.
"""

from typing import Any, Final

import structlog

from gateway.deciding.call import Call
from gateway.deciding.verdicts import Deny, Failure
from gateway.policies.model import Phase, Policy
from gateway.review.request import Request
from gateway.review.response import denial_code
from gateway.serving.patch_lines import LOGGED_OPERATIONS, PatchLines, about, cut

_LOG: Final = structlog.get_logger(__name__)


FAILING_KEPT: Final = 1000
"""Policies of which it is known with what their shadows fail. With more of them, what was told is told again."""


class ShadowLog:
    """Writes what came of comparisons as log lines.

    Args:
        key: of the digests that stand for values which must not be read.
    """

    def __init__(self, key: bytes) -> None:
        self._lines = PatchLines(key)
        self._failing: dict[tuple[Phase, str], str] = {}

    def differs(self, request: Request, call: Call, shadow: Call) -> None:
        """The policy of ``call`` came to one verdict, its shadow to another."""
        self.judges(call.policy)
        _LOG.warning(
            "a shadow judges otherwise than its policy",
            source=call.source.value,
            version=call.version,
            verdict=self._told(request, call),
            shadow_version=shadow.version,
            shadow_verdict=self._told(request, shadow),
            **_who(call.policy, shadow.policy),
            **about(request),
        )

    def judges(self, policy: Policy) -> None:
        """The shadow of a policy has judged: should it fail, that is news again."""
        self._failing.pop(_named(policy), None)

    def fails(self, request: Request, policy: Policy, shadow: Policy, failure: Failure) -> None:
        """The shadow of a policy could not judge."""
        if self._failing.get(_named(policy)) == failure.reason.value:
            return
        if len(self._failing) >= FAILING_KEPT:
            self._failing.clear()
        self._failing[_named(policy)] = failure.reason.value
        _LOG.warning(
            "a shadow could not judge what its policy judged; told again when it fails for another reason",
            reason=failure.reason.value,
            why=cut(failure.message),
            **_who(policy, shadow),
            **about(request),
        )

    def _told(self, request: Request, call: Call) -> list[str]:
        answer = call.answer
        assert answer is not None  # noqa: S101 - whoever is compared has judged
        verdict = f"denies ({denial_code(answer.code)}): {answer.message}" if isinstance(answer, Deny) else "allows"
        changes = self._lines.told(request, [call], call.changes or call.would_change)
        warnings = [cut(f"warns: {text}") for text in answer.warnings[:LOGGED_OPERATIONS]]
        return [cut(verdict), *changes, *warnings]


def _named(policy: Policy) -> tuple[Phase, str]:
    return policy.phase, policy.qualified_name


def _who(policy: Policy, shadow: Policy) -> dict[str, Any]:
    return {
        "policy": policy.qualified_name,
        "phase": policy.phase.value,
        "worker": policy.worker,
        "shadow_worker": shadow.worker,
        "shadow_policy": shadow.policy,
    }
