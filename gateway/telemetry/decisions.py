"""The decision log: a line for each review, with what is needed to explain a denial to the user.

A line has the user and the object (names, never contents); the outcome; each policy that refused, failed or changed the
object, or would have in mode enforce, with its reason code; conflicts; stale verdicts; and the changed fields with the
policies that changed them. Reviews that all policies allowed are logged at debug.

Lines wait in memory until they are written, so their size is bounded, whatever the worker and the request contain.
"""

import logging
from collections.abc import Sequence
from typing import Any, Final

import structlog

from gateway.engine.answer_source import Source
from gateway.engine.decision import Decision
from gateway.engine.invocation_record import InvocationRecord
from gateway.engine.verdicts import Deny, Failure
from gateway.policies.model import Mode
from gateway.reasons import Reason

_TEXTS_OF_OTHERS: Final = ("uid", "group", "version", "resource", "subresource", "namespace", "name")
"""The fields from the request, whose length the client decides."""

_LOG: Final = structlog.get_logger("gateway.decisions")
_SWITCH: Final = logging.getLogger("gateway.decisions")
"""Checked before the fields of an ordinary review are made: debug is nearly always disabled."""

TEXT_CHARACTERS: Final = 1_000
"""How many characters of one text are logged. Kubernetes' longest name has 253; the user has the whole message of a
denial; a worker's message may have 40 MB."""

PATHS: Final = 50
"""How many changed places of one policy are logged; a patch may have 10,000."""


class DecisionLog:
    """Writes decisions as log lines."""

    def decided(self, decision: Decision) -> None:
        """Log a decision, at the level of ``_level``."""
        level = _level(decision.calls)
        if level > logging.DEBUG or _SWITCH.isEnabledFor(level):
            _LOG.log(level, "review decided", **_fields(decision))


def _level(calls: Sequence[InvocationRecord]) -> int:
    """Warning if a policy failed, info if a policy denied or two conflict, debug otherwise.

    Policies in mode warn or audit count as well. A policy with a stale verdict has failed.
    """
    level = logging.DEBUG
    for call in calls:
        if isinstance(call.answer, Failure) or call.source is Source.STALE:
            return logging.WARNING
        if isinstance(call.answer, Deny) or call.would_change or call.conflicts:
            level = logging.INFO
    return level


def _fields(decision: Decision) -> dict[str, Any]:
    request = decision.request
    fields: dict[str, Any] = {
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
        "policies": [],
    }
    if decision.entry is not None:
        fields["entry"] = decision.entry
    for name in _TEXTS_OF_OTHERS:
        if len(fields[name]) > TEXT_CHARACTERS:
            fields[name] = _cut(fields[name])
    for call in decision.calls:
        if _is_logged(call):
            fields["policies"].append(_policy(call))
    if decision.patch:
        changed = [f"{each.op} {each.path} by {each.qualified_name}" for each in decision.field_changes]
        fields.update(_bounded("changed", changed))
    return fields


def _is_logged(call: InvocationRecord) -> bool:
    return bool(
        call.changes
        or call.would_change
        or call.conflicts
        or call.source is Source.STALE
        or isinstance(call.answer, Deny | Failure)
    )


def _policy(call: InvocationRecord) -> dict[str, Any]:
    fields: dict[str, Any] = {"policy": call.policy.qualified_name, "worker": call.policy.worker}
    if call.policy.mode is not Mode.ENFORCE:
        fields |= {"mode": call.policy.mode.value}
    match call.answer:
        case Deny(message=message):
            fields |= {"reason": Reason.DENIED.value, "message": _cut(message)}
        case Failure(reason=reason, message=message, hint=hint):
            reported = f"{message}; {hint}" if hint else message
            fields |= {"reason": reason.value, "message": _cut(reported), "failed_open": call.failed_open}
        case _:
            # Paths only: values may be secret.
            changes, word = (call.changes, "changed") if call.enforced else (call.would_change, "would_change")
            fields |= {word: []} | _bounded(word, [f"{each.op} {each.path}" for each in changes])
    if call.source is Source.STALE:
        fields |= {"stale_seconds": round(call.age, 3)} | _cause(call.instead_of)
    if call.conflicts:
        conflicts = [f"{each.path} of {', '.join(each.with_policies)}" for each in call.conflicts]
        fields |= _bounded("conflicts", conflicts)
    return fields


def _cause(failure: Failure | None) -> dict[str, Any]:
    """The failure that a stale verdict replaces."""
    if failure is None:
        return {}
    return {"instead_of": failure.reason.value, "because": _cut(failure.message)}


def _bounded(word: str, texts: list[str]) -> dict[str, Any]:
    """The first texts under ``word``, and how many more there are; nothing if there are none."""
    if not texts:
        return {}
    more = {f"more_{word}": len(texts) - PATHS} if len(texts) > PATHS else {}
    return {word: [_cut(text) for text in texts[:PATHS]]} | more


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_CHARACTERS else text[:TEXT_CHARACTERS] + "…"
