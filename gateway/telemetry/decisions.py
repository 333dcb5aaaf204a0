"""The decision log: a line for each review that was not simply allowed, enough to answer the one who was denied.

It holds who asked for what (names, never contents), the outcome, and each policy that refused, failed or changed
something, or would have under another mode, with its reason code. Reviews that all policies allowed are logged at
debug.

Lines wait in memory until they are written, so a line is bounded, whatever a worker says and a request is called.
"""

import logging
from typing import Any, Final

import structlog

from gateway.deciding import Call, Decision, Deny, Failure
from gateway.reasons import Reason

_LOG: Final = structlog.get_logger("gateway.decisions")
_SWITCH: Final = logging.getLogger("gateway.decisions")
"""Asked before the fields of an ordinary review are made: nearly always nobody wants them."""

TEXT_CHARACTERS: Final = 1_000
"""How much of one text is logged. Kubernetes' longest name has 253 characters, and whoever was denied has the whole
message; a worker's may have 40 MB."""

PATHS: Final = 50
"""How many changed places of one policy are logged; a patch may have 10,000."""


class DecisionLog:
    """Writes decisions as log lines."""

    def decided(self, decision: Decision) -> None:
        """Log a decision: warning where a policy could not judge, info where one denied, debug otherwise.

        A policy that is not enforced counts as well: to be seen is all that it is for.
        """
        if any(isinstance(call.answer, Failure) for call in decision.calls):
            _LOG.warning("review decided", **self._fields(decision))
        elif any(isinstance(call.answer, Deny) or call.would_change for call in decision.calls):
            _LOG.info("review decided", **self._fields(decision))
        elif _SWITCH.isEnabledFor(logging.DEBUG):
            _LOG.debug("review decided", **self._fields(decision))

    def _fields(self, decision: Decision) -> dict[str, Any]:
        request = decision.request
        return {
            "uid": _cut(request.uid),
            "phase": decision.phase.value,
            "outcome": decision.outcome.value,
            "operation": request.operation,
            "group": _cut(request.resource.group),
            "version": _cut(request.resource.version),
            "resource": _cut(request.resource.resource),
            "subresource": _cut(request.sub_resource),
            "namespace": _cut(request.namespace),
            "name": _cut(request.name),
            "dry_run": request.dry_run,
            "milliseconds": round(1000 * (decision.ended - decision.started), 3),
            "policies": [
                _policy(call)
                for call in decision.calls
                if call.changes or call.would_change or isinstance(call.answer, Deny | Failure)
            ],
        }


def _policy(call: Call) -> dict[str, Any]:
    fields: dict[str, Any] = {"policy": call.policy.qualified_name, "worker": call.policy.worker}
    if not call.enforced:
        fields |= {"mode": call.policy.mode.value}
    match call.answer:
        case Deny(message=message):
            fields |= {"reason": Reason.DENIED.value, "message": _cut(message)}
        case Failure(reason=reason, message=message, hint=hint):
            told = f"{message}; {hint}" if hint else message
            fields |= {"reason": reason.value, "message": _cut(told), "failed_open": call.failed_open}
        case _:
            # Paths say what was touched; values may be secret.
            changes, word = (call.changes, "changed") if call.enforced else (call.would_change, "would_change")
            fields |= {word: [_cut(f"{each.op} {each.path}") for each in changes[:PATHS]]}
            if len(changes) > PATHS:
                fields |= {f"more_{word}": len(changes) - PATHS}
    return fields


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_CHARACTERS else text[:TEXT_CHARACTERS] + "…"
