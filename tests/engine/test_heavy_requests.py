"""An object of more values than the gateway parses: who needs no part of it judges it, who does fails by name."""

import json

import pytest

from gateway.engine.decision import Outcome
from gateway.engine.verdicts import Allow, Deny
from gateway.policies.model import FailurePolicy, Phase, Requirement, Selector
from gateway.review.request import READABLE_VALUES, decode
from gateway.scopes.inputs import Inputs
from gateway.scopes.pointer_set import PointerSet
from tests.world import condition, decide, label, policy, request

PARTS = Inputs(places=PointerSet([("object", "metadata", "labels")]))


@pytest.fixture(scope="module")
def heavy():
    """A request about an object of nested brackets."""
    small = request({"metadata": {"name": "p"}, "spec": "@"})
    members = b",".join(b'"%s":%s' % (name.encode(), bytes(raw)) for name, raw in small.members.items())
    spec = b"[" + b"[],[[]]," * (READABLE_VALUES // 5 + 10) + b"0]"
    return decode(
        b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{%s}}' % members.replace(b'"@"', spec)
    )


def fails(decision):
    return decision.outcome is Outcome.FAILED and "REQUEST_TOO_LARGE: " in decision.response.status.message


@pytest.mark.parametrize("phase", list(Phase))
@pytest.mark.parametrize("answer", [Allow(), Deny(message="no")], ids=["allow", "deny"])
def test_a_policy_that_is_sent_the_whole_object_judges_it(heavy, phase, answer):
    """Its document is the API server's own bytes; nothing is parsed."""
    decision, world = decide([policy("a", phase=phase)], {"a": answer}, on=heavy)
    assert decision.response.allowed is isinstance(answer, Allow)
    assert len(world.calls[0][1].document.content) > READABLE_VALUES
    assert not heavy.is_parsed


@pytest.mark.parametrize("phase", list(Phase))
@pytest.mark.parametrize("prefetch", [False, True])
def test_a_policy_that_is_sent_a_part_fails_by_its_failure_policy(heavy, phase, prefetch):
    """REQUEST_TOO_LARGE under Fail; loud under Ignore; the other policy judges."""
    fail = policy("a", phase=phase, inputs=PARTS)
    decision, world = decide([fail, policy("b", phase=phase, index=1)], {"b": Allow()}, on=heavy, prefetch=prefetch)
    assert fails(decision)
    assert "a" not in world.called()

    ignore = policy("a", phase=phase, inputs=PARTS, failure_policy=FailurePolicy.IGNORE)
    decision, world = decide([ignore, policy("b", phase=phase, index=1)], {"b": Allow()}, on=heavy, prefetch=prefetch)
    assert decision.response.allowed
    assert world.called() == ["b"]
    assert decision.response.audit_annotations == {"a.test.example.com_failed-open": "REQUEST_TOO_LARGE"}
    assert not heavy.is_parsed


def test_a_policy_that_changes_it_fails(heavy):
    """Nothing of the change is applied, and the object is not parsed for it."""
    decision, _ = decide([policy("a")], {"a": label("x")}, on=heavy)
    assert fails(decision)
    assert decision.response.patch is None
    assert not heavy.is_parsed


@pytest.mark.parametrize(
    "reading",
    [
        {"object_selector": Selector(requirements=(Requirement(key="a", operator="In", values=("b",)),))},
        {"match_conditions": (condition(lambda variables, _: variables.object is None),)},
    ],
    ids=["objectSelector", "matchConditions"],
)
@pytest.mark.parametrize("phase", list(Phase))
def test_a_policy_that_selects_by_it_fails(heavy, phase, reading):
    """Not knowing whether it matches is not a match, and no reason to skip it."""
    decision, _ = decide([policy("a", phase=phase, **reading)], {}, on=heavy)
    assert fails(decision)
    assert not heavy.is_parsed


def test_what_is_not_read_matters_to_no_policy(heavy):
    """A policy of other members is sent those."""
    inputs = Inputs(places=PointerSet([("userInfo",), ("operation",)]))
    decision, world = decide([policy("a", inputs=inputs)], {"a": Allow()}, on=heavy)
    assert decision.response.allowed
    assert "object" not in json.loads(world.calls[0][1].document.content)
