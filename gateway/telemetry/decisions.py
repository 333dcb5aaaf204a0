"""The decision log: a line for each review that was not simply allowed, enough to answer the one who was denied.

It holds who asked for what (names, never contents), the outcome, and each policy that refused, failed or changed
something with its reason code. Reviews that all policies allowed are logged at debug.
"""

import logging
from typing import Any, Final

import structlog

from gateway.deciding import Call, Decision, Deny, Failure, Outcome
from gateway.reasons import Reason

_LOG: Final = structlog.get_logger("gateway.decisions")
_SWITCH: Final = logging.getLogger("gateway.decisions")
"""Asked before the fields of an ordinary review are made: nearly always nobody wants them."""


class DecisionLog:
    """Writes decisions as log lines."""

    def decided(self, decision: Decision) -> None:
        """Log a decision: warning where a policy could not judge, info where one denied, debug otherwise."""
        if any(isinstance(call.answer, Failure) for call in decision.calls):
            _LOG.warning("review decided", **self._fields(decision))
        elif decision.outcome is not Outcome.ALLOWED:
            _LOG.info("review decided", **self._fields(decision))
        elif _SWITCH.isEnabledFor(logging.DEBUG):
            _LOG.debug("review decided", **self._fields(decision))

    def _fields(self, decision: Decision) -> dict[str, Any]:
        request = decision.request
        return {
            "uid": request.uid,
            "phase": decision.phase.value,
            "outcome": decision.outcome.value,
            "operation": request.operation,
            "group": request.resource.group,
            "version": request.resource.version,
            "resource": request.resource.resource,
            "subresource": request.sub_resource,
            "namespace": request.namespace,
            "name": request.name,
            "dry_run": request.dry_run,
            "milliseconds": round(1000 * (decision.ended - decision.started), 3),
            "policies": [
                _policy(call) for call in decision.calls if call.changes or isinstance(call.answer, Deny | Failure)
            ],
        }


def _policy(call: Call) -> dict[str, Any]:
    fields: dict[str, Any] = {"policy": call.policy.qualified_name, "worker": call.policy.worker}
    match call.answer:
        case Deny(message=message):
            fields |= {"reason": Reason.DENIED.value, "message": message}
        case Failure(reason=reason, message=message):
            fields |= {"reason": reason.value, "message": message, "failed_open": call.failed_open}
        case _:
            # Paths say what was touched; values may be secret.
            fields |= {"changed": [f"{operation.op} {operation.path}" for operation in call.changes]}
    return fields
