"""Where the time of a decision went: the members of its document about time and calls, in milliseconds from the arrival
of the request's header.
"""

from typing import Any, Final

from gateway.engine.answer_source import Source
from gateway.engine.call_tracker import has_side_effects
from gateway.engine.decision import Decision
from gateway.engine.invocation_record import InvocationRecord
from gateway.telemetry.labels import LookupResult

_LOOKUPS: Final = {
    LookupResult.MEMORY: "this process had a fresh verdict",
    LookupResult.REDIS: "Redis had a fresh verdict",
    LookupResult.SHARED: "an equal call was open, and its verdict was shared",
    LookupResult.STALE: "the worker was called; a stale verdict was there in case it failed",
    LookupResult.MISS: "no usable verdict was cached; the worker was called",
    LookupResult.EXPIRED: "the cached verdict was too old; the worker was called",
    LookupResult.UNSHARED: "an equal call was open, but gave no verdict to share; the worker was called",
    LookupResult.BYPASS: "not all connections of the worker have the same version; the worker was called",
}


def milliseconds(seconds: float) -> float:
    """Rounded to a microsecond."""
    return round(1000 * seconds, 3)


def ledger_member(decision: Decision) -> dict[str, Any]:
    """``ledger``. A stage that was not measured is left out; the next one has its time."""
    ledger, started, ends = decision.ledger, decision.started, decision.ends
    dispatched = None if ledger.dispatched is None else min(ledger.dispatched, decision.ended)
    times = {
        "read": ledger.read,
        "decode": ledger.decoded,
        "match": dispatched,
        "calls": decision.ended,
        "encode": ledger.encoded,
    }
    stages = []
    before = started
    for name, ended in times.items():
        if ended is not None:
            stages.append(
                {
                    "name": name,
                    "startMs": milliseconds(before - started),
                    "spentMs": milliseconds(ended - before),
                    "leftMs": milliseconds(ends - ended),
                }
            )
            before = ended
    return {"budgetMs": milliseconds(ends - started), "spentMs": milliseconds(before - started), "stages": stages}


def turn_members(decision: Decision, call: InvocationRecord) -> dict[str, Any]:
    """The members of ``policies[]`` about its time and its call."""
    started, made = decision.started, call.call
    return {
        "cache": _cache(decision, call),
        "document": {"key": call.document_key.hex(), "size": call.document_size} if call.document_key else None,
        "startedMs": milliseconds(call.started - started) if call.matched else None,
        "endedMs": milliseconds(call.ended - started) if call.matched else None,
        "leftMs": milliseconds(decision.ends - call.ended) if call.matched else None,
        "call": None
        if made is None
        else {
            "calledMs": milliseconds(made.called_at - started),
            "answeredMs": None if made.answered_at is None else milliseconds(made.answered_at - started),
            "prefetched": call.prefetched,
        },
    }


def _cache(decision: Decision, call: InvocationRecord) -> dict[str, str] | None:
    """Whether the answer came from a cache, and why or why not."""
    if call.call is None:
        return None
    if call.source is Source.MEMO:
        return {"result": "memo", "why": "an equal call earlier in this review had the verdict"}
    if call.source is Source.SHARED:
        return {"result": "shared", "why": _LOOKUPS[LookupResult.SHARED]}
    if call.call.lookup:
        result = LookupResult(call.call.lookup)
        return {"result": result.value, "why": _LOOKUPS[result]}
    if call.policy.cache is None:
        why = "the policy has no cache"
    elif has_side_effects(call.policy, decision.request):
        why = "the call has side effects for this request"
    else:
        why = "the call ended before the cache was asked, or answered"
    return {"result": "none", "why": why}
