"""A user is warned of an ignored failure at most once a minute for each policy; all else is there each time."""

from gateway.engine.engine import Engine
from gateway.engine.open_warnings import POLICIES_KEPT, WARNING_SECONDS, FailOpenWarnings
from gateway.engine.verdicts import Failure
from gateway.policies.model import FailurePolicy, Phase
from gateway.reasons import Reason
from tests.world import plan, policy, request

A = policy("a")


def reviewed(warnings, now):
    """The response of a review in which the only policy fails, and is ignored."""
    ignored = policy("a", phase=Phase.VALIDATING, failure_policy=FailurePolicy.IGNORE)
    overloaded = plan(ignored).failing(Failure(reason=Reason.OVERLOADED, message="m"))
    step = Engine(request(), overloaded, ends=now + 9, open_warnings=warnings).start(now)
    return step.decision.response


def test_a_minute_has_one_warning_and_each_review_has_its_annotation():
    """Of two reviews at the same time one has the warning, and so has one a minute later."""
    warnings = FailOpenWarnings()
    responses = [reviewed(warnings, now) for now in (0.0, 0.0, WARNING_SECONDS - 1, WARNING_SECONDS, 100.0)]
    assert [len(each.warnings) for each in responses] == [1, 0, 0, 1, 0]
    assert all(each.allowed and each.audit_annotations for each in responses)


def test_each_policy_has_a_minute_of_its_own():
    """Also two of the same name in both phases."""
    warnings = FailOpenWarnings()
    others = [A, policy("b"), policy("a", phase=Phase.VALIDATING)]
    assert [warnings.due(each, 5.0) for each in others] == [True] * 3
    assert [warnings.due(each, 6.0) for each in others] == [False] * 3


def test_what_is_remembered_is_bounded():
    """Whatever policies come and go: the one that was warned of longest ago is forgotten."""
    warnings = FailOpenWarnings()
    kept = [policy(f"p{number}") for number in range(POLICIES_KEPT)]
    for number, each in enumerate(kept):
        assert warnings.due(each, number / POLICIES_KEPT)
    assert warnings.due(kept[0], WARNING_SECONDS)
    assert warnings.due(policy("new"), WARNING_SECONDS)
    assert len(warnings._last) == POLICIES_KEPT
    assert not warnings.due(kept[0], WARNING_SECONDS)
    assert not warnings.due(kept[2], WARNING_SECONDS)
    assert warnings.due(kept[1], WARNING_SECONDS)
