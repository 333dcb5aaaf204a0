"""What the idempotence patrol tells: who does not leave his own result alone, and both patches."""

from typing import Final

import structlog

from gateway.deciding.call import Call
from gateway.deciding.decision import Decision
from gateway.deciding.verdicts import Deny
from gateway.serving.patch_lines import PatchLines, about, cut

_LOG: Final = structlog.get_logger(__name__)


class PatrolLog:
    """Writes the findings of a patrol as log lines.

    Args:
        key: of the digests.
    """

    def __init__(self, key: bytes) -> None:
        self._lines = PatchLines(key)

    def policy(self, decision: Decision, call: Call, again: Decision) -> None:
        """The policy of ``call``, put its own result, came to ``again``."""
        _LOG.warning(
            "a policy does not leave its own result alone: it is not idempotent",
            policy=call.policy.qualified_name,
            worker=call.policy.worker,
            version=call.version,
            first=self._lines.told(decision.request, [call], call.changes),
            again=self._lines.told(decision.request, again.calls, again.patch) + _denials(again),
            **about(decision.request),
        )

    def chain(self, decision: Decision, again: Decision) -> None:
        """Policies that are stable, each by itself, came to ``again`` as a set."""
        _LOG.warning(
            "policies, each of which leaves its own result alone, change theirs as a set: they are not idempotent",
            policies=list(dict.fromkeys(call.policy.qualified_name for call in again.calls if _disturbs(call))),
            first=self._lines.told(decision.request, decision.calls, decision.patch),
            again=self._lines.told(decision.request, again.calls, again.patch) + _denials(again),
            **about(decision.request),
        )


def _disturbs(call: Call) -> bool:
    return bool(call.changes) or (call.enforced and isinstance(call.answer, Deny))


def _denials(again: Decision) -> list[str]:
    return [cut(f"denies: {call.answer.message}") for call in again.calls if isinstance(call.answer, Deny)]
