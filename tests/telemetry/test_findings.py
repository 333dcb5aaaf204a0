"""What a process finds for an explanation: the decisions of a uid, and the others about the same request."""

import pytest
from msgspec.structs import replace

from gateway.engine.trace_context import TraceContext
from gateway.engine.verdicts import Allow, Deny
from gateway.policies.model import Phase
from gateway.telemetry.decision_memory import DecisionMemory
from gateway.telemetry.findings import Query, find, subject_of
from tests.world import decide, label, policy, request

JANE = {"username": "jane"}
TRACE = f"00-{'a' * 32}-{'b' * 16}-01"


def decision(uid, phase=Phase.MUTATING, answer=None, *, traceparent="", later=0.0, **members):
    """A decision about jane's pod."""
    on = request(uid=uid, **({"name": "p", "userInfo": JANE} | members))
    made, _ = decide([policy("a", phase=phase)], {"a": answer or Allow()}, on=on)
    times = {"started": made.started + later, "ended": made.ended + later}
    return replace(made, trace=TraceContext(traceparent=traceparent), **times)


def memory_of(*decisions):
    """A memory that has them."""
    memory = DecisionMemory()
    for each in decisions:
        memory.decided(each)
    return memory


def uids(documents):
    """Of which reviews."""
    return sorted(each["uid"] for each in documents)


def test_both_phases_of_a_request_are_found_by_the_uid_of_one():
    """kube-apiserver gives each call a uid of its own."""
    memory = memory_of(decision("m", answer=label("x")), decision("v", Phase.VALIDATING, Deny(message="no")))
    found = find(memory, Query(uid="v"), replica="gw")
    assert (uids(found.decisions), uids(found.related)) == (["v"], ["m"])
    assert found.related[0]["changedBy"][0]["path"] == "/metadata/labels/x"
    assert (found.replica, found.retained) == ("gw", 2)


@pytest.mark.parametrize(
    "other",
    [
        {"name": "q"},
        {"namespace": "other"},
        {"operation": "UPDATE"},
        {"subResource": "status"},
        {"dryRun": True},
        {"userInfo": {"username": "joe"}},
        {"kind": {"group": "x", "version": "v1", "kind": "Pod"}},
        {"later": 40.0},
        {"name": ""},
    ],
    ids=str,
)
def test_decisions_about_other_requests_are_not_related(other):
    """Another object, user or operation, or another time."""
    assert find(memory_of(decision("m", **other), decision("v")), Query(uid="v")).related == []


def test_decisions_of_one_trace_are_related():
    """Also about an object that had no name yet."""
    memory = memory_of(
        decision("m", name="", traceparent=TRACE),
        decision("other", name="q", traceparent=TRACE.replace("a", "c")),
        decision("v", traceparent=TRACE),
    )
    assert uids(find(memory, Query(uid="v")).related) == ["m"]


def test_another_process_finds_what_is_related_by_the_subject():
    """The decision itself is elsewhere."""
    first = find(memory_of(decision("v")), Query(uid="v"))
    elsewhere = memory_of(decision("m"), decision("x", name="q"))
    found = find(elsewhere, Query(uid="v", subject=subject_of(first.decisions[0])))
    assert (found.decisions, uids(found.related)) == ([], ["m"])


def test_an_unknown_uid_finds_nothing():
    """Nothing is related to nothing."""
    found = find(memory_of(decision("v")), Query(uid="u"))
    assert (found.decisions, found.related, found.retained) == ([], [], 1)
