"""What is retained of decisions: the newest, the refused longest, within bytes; never the bytes of the largest."""

import json
import time
from base64 import b64encode

import pytest
from msgspec.structs import replace

from gateway.engine.verdicts import Allow, Deny, Failure
from gateway.policies.model import FailurePolicy
from gateway.reasons import Reason
from gateway.scopes.inputs import Inputs
from gateway.scopes.pointer_set import PointerSet
from gateway.telemetry import decision_memory
from gateway.telemetry.decision_document import decision_document, encoded
from gateway.telemetry.decision_memory import NOT_RETAINED, DecisionMemory
from gateway.telemetry.events import NoEvents
from gateway.telemetry.table import REDUCED_DECISIONS
from tests.world import canceled, decide, patch, policy, request


def decision(uid, answer=None, obj=None, **options):
    """A decision about a pod."""
    made, _ = decide([policy("a", **options)], {"a": answer or Allow()}, on=request(obj, uid=uid))
    return made


def memory_of(*decisions, **limits):
    """A memory after these decisions."""
    memory = DecisionMemory(**limits)
    for each in decisions:
        memory.decided(each)
    return memory


class Counts(NoEvents):
    """What was counted."""

    def __init__(self):
        self.counted = []

    def count(self, metric, *labels, amount=1):
        self.counted.append(metric)


def uids(decisions):
    """Of which reviews they are."""
    return [each.request.uid for each in decisions]


def test_a_decision_is_found_by_its_uid():
    """kube-apiserver's retries have the uid of the first attempt: all of them are found, in order."""
    twice = [decision("u1", Failure(reason=Reason.WORKER_UNAVAILABLE, message="away")), decision("u1")]
    memory = memory_of(decision("u0"), *twice, decision("u2"))
    assert {id(each) for each in memory.find("u1")} == {id(each) for each in twice}
    assert memory.find("u9") == []
    assert len(memory) == 4


def test_the_refused_do_not_make_room_for_the_allowed():
    """Each kind has half; a failure that was ignored is one to ask about, too."""
    ignored = decision("i", Failure(reason=Reason.WORKER_TIMEOUT, message="m"), failure_policy=FailurePolicy.IGNORE)
    memory = memory_of(decision("d", Deny()), ignored, *(decision(f"a{number}") for number in range(9)), decisions=4)
    assert sorted(uids(memory.newest())) == ["a7", "a8", "d", "i"]


def test_the_canceled_do_not_make_room_for_each_other_among_the_refused():
    """A client may hang up as often as it likes: what was refused stays."""
    gone = [canceled([policy("a")], on=request(uid=f"c{number}")) for number in range(9)]
    memory = memory_of(decision("d", Deny()), *gone, decisions=4)
    assert sorted(uids(memory.newest())) == ["c7", "c8", "d"]


def test_all_refused_decisions_are_retained_since_the_last_that_was_evicted():
    """Since the start, if none was; allowed ones do not count, and a new process does not claim what others had."""
    before = time.time()
    memory = memory_of(*(decision(f"a{number}") for number in range(9)), decisions=4)
    assert before - 1 <= memory.since <= time.time()
    denied = [replace(decision(f"d{number}", Deny()), ended=time.monotonic() + number) for number in range(4)]
    for each in denied:
        memory.decided(each)
    assert memory.since - (time.time() - time.monotonic()) == pytest.approx(denied[1].ended, abs=0.5)


def test_an_empty_memory_has_nothing():
    """No decision and no bytes."""
    memory = memory_of()
    assert (len(memory), memory.size, memory.find("u")) == (0, 0, [])


def test_the_bytes_are_bounded():
    """The estimate is more than the request's own bytes."""
    obj = {"metadata": {"name": "p", "annotations": {"a": "x" * 6_000}}}
    memory = memory_of(*(decision(f"u{number}", obj=obj) for number in range(100)), size=1_000_000)
    assert 10 < len(memory) < 50
    assert memory.size <= 500_000
    assert uids(memory.newest())[-1] == f"u{100 - len(memory)}"


def test_a_parsed_object_is_charged_by_its_values():
    """Brackets occupy more than any other text of their length."""
    inputs = Inputs(places=PointerSet([("object", "spec", "*", "a")]))
    of = [{"metadata": {}, "spec": spec} for spec in ([[]] * 3_000, ["x" * 12_000])]
    nested, text = (decide([policy("a", inputs=inputs)], {"a": Allow()}, on=request(each))[0] for each in of)
    assert memory_of(nested).size > 400_000 > memory_of(text).size > 100_000


def test_a_large_review_is_retained_without_its_objects():
    """Who denied is known all the same, and which fields were changed, but no byte of the body stays."""
    large = {"metadata": {"name": "p", "annotations": {"a": "x" * 100_000}}}
    change = patch({"op": "add", "path": "/spec", "value": "y" * 100_000}, warnings=("w" * 100_000,))
    events = Counts()
    decisions = decision("c", change, large), decision("d", Deny(message="m" * 100_000))
    memory = memory_of(*decisions, size=1_000_000, events=events)
    assert events.counted == [REDUCED_DECISIONS] * 2
    changed, denied = memory.find("c")[0], memory.find("d")[0]
    assert changed.object is None
    assert [each.value for each in changed.patch] == [NOT_RETAINED]
    kept = sum(memoryview(raw).nbytes for raw in changed.request.members.values())
    assert kept < 1_000
    assert changed.request.user_info.username == ""
    for each in (changed, denied):
        document = decision_document(each)
        assert len(encoded(document)) < 20_000
    assert document["policies"][0]["message"].startswith("mmm")
    assert decision_document(changed)["policies"][0]["changes"] == [
        {"op": "add", "path": "/spec", "value": NOT_RETAINED}
    ]


def test_a_large_secret_has_no_texts():
    """Without its values they cannot be looked for."""
    secret = {"group": "", "version": "v1", "kind": "Secret"}
    coded = b64encode(b"hunter2").decode()
    on = request({"metadata": {"name": "s"}, "data": {"a": coded, "b": "x" * 100_000}}, kind=secret)
    made, _ = decide([policy("a")], {"a": Deny(message="hunter2 is weak")}, on=on)
    memory = memory_of(made, size=1_000_000)
    document = decision_document(memory.find("u1")[0])
    assert "hunter2" not in json.dumps(document)
    assert (document["uid"], document["policies"][0]["reason"]) == ("u1", "DENIED")


def test_old_configurations_are_not_retained_without_end(monkeypatch):
    """Each decision keeps its plan alive."""
    monkeypatch.setattr(decision_memory, "POLICIES", 10)
    memory = memory_of(*(decision(f"u{number}") for number in range(50)))
    assert uids(memory.newest()) == [f"u{number}" for number in range(49, 39, -1)]
