"""Two policies that write the same field are found and named, and the stricter one's word counts."""

import pytest

from gateway.engine.conflicts import Conflict
from gateway.engine.decision import Outcome
from gateway.engine.verdicts import Allow, Failure
from gateway.policies.model import FailurePolicy, Mode, OnConflict, ReinvocationPolicy
from gateway.reasons import Reason
from tests.world import decide, label, patch, policy, request

A, B = "a.test.example.com", "b.test.example.com"
PLACE = "/metadata/labels/one"
IF_NEEDED = {"reinvocation_policy": ReinvocationPolicy.IF_NEEDED}


def pair(first=OnConflict.ALLOW, second=OnConflict.ALLOW, **fields):
    return [policy("a", on_conflict=first, **fields), policy("b", index=1, on_conflict=second, **fields)]


def both(first, second, **fields):
    return decide(pair(first, second, **fields), {"a": label("one"), "b": label("one", "2")})[0]


RULES = [
    (first, second, max(first, second, key=list(OnConflict).index)) for first in OnConflict for second in OnConflict
]


@pytest.mark.parametrize(("first", "second", "rule"), RULES)
def test_the_stricter_ones_word_counts(first, second, rule):
    """Deny is stricter than warn, and warn than allow; the conflict is recorded in any case."""
    decision = both(first, second)
    assert decision.calls[1].conflicts == (Conflict(path=PLACE, with_policies=(A,), rule=rule),)
    assert decision.response.allowed is (rule is not OnConflict.DENY)
    assert any("(onConflict warn)" in text for text in decision.response.warnings) is (rule is OnConflict.WARN)
    assert (f"{B}_conflict" in decision.response.audit_annotations) is (rule is OnConflict.WARN)


def test_under_deny_the_later_change_is_not_applied_and_refuses_whatever_the_failure_policy():
    """Both policies and the place are named, and what to do."""
    decision = both(OnConflict.DENY, OnConflict.ALLOW, failure_policy=FailurePolicy.IGNORE)
    failure = decision.calls[1].answer
    assert (decision.outcome, failure.reason) == (Outcome.FAILED, Reason.PATCH_CONFLICT)
    assert decision.calls[1].changes == ()
    assert f"{B}: PATCH_CONFLICT" in decision.response.status.message
    assert A in failure.message
    assert PLACE in failure.message
    assert "onConflict" in failure.message


def test_under_warn_it_is_applied_and_both_are_named():
    """To the user, and in the audit log."""
    decision = both(OnConflict.WARN, OnConflict.ALLOW)
    assert decision.object["metadata"]["labels"] == {"one": "2"}
    assert decision.response.warnings == (f"{B}: changes metadata.labels.one, which {A} set (onConflict warn)",)
    assert decision.response.audit_annotations[f"{B}_conflict"] == f"{PLACE} with {A}"


@pytest.mark.parametrize(
    "second",
    [label("two"), label("one"), Allow()],
    ids=["another field", "the same value", "nothing"],
)
def test_who_changes_another_field_or_nothing_is_in_no_conflict(second):
    """By the leaf, and by the difference."""
    decision, _ = decide(pair(OnConflict.DENY, OnConflict.DENY), {"a": label("one"), "b": second})
    assert decision.outcome is Outcome.ALLOWED
    assert decision.calls[1].conflicts == ()


@pytest.mark.parametrize("mode", [Mode.WARN, Mode.AUDIT])
def test_a_policy_that_is_not_enforced_has_no_conflicts(mode):
    """It changes nothing, whether it comes before or after."""
    for modes in ({0: mode}, {1: mode}):
        chain = [
            policy(name, index=index, on_conflict=OnConflict.DENY, mode=modes.get(index, Mode.ENFORCE))
            for index, name in enumerate("ab")
        ]
        decision, _ = decide(chain, {"a": label("one"), "b": label("one", "2")})
        assert decision.response.allowed
        assert all(call.conflicts == () for call in decision.calls)


def test_a_policy_that_undoes_anothers_change_in_the_second_round_is_named():
    """Rounds stay two, and the second one of a is in conflict with b."""
    undo = [policy("a", on_conflict=OnConflict.WARN, **IF_NEEDED), policy("b", index=1, **IF_NEEDED)]
    no_label = patch({"op": "remove", "path": PLACE})

    def a(document):
        return no_label if "one" in document["object"]["metadata"]["labels"] else Allow()

    def b(document):
        return Allow() if "one" in document["object"]["metadata"]["labels"] else label("one")

    decision, world = decide(undo, {"a": a, "b": b})
    assert [(call.round, call.label, bool(call.conflicts)) for call in decision.calls] == [
        (0, A, False),
        (0, B, False),
        (1, A, True),
        (1, B, True),
    ]
    assert len(world.calls) + sum(call.source == "memo" for call in decision.calls) == 4
    assert any(
        text == f"{A}: changes metadata.labels.one, which {B} set (onConflict warn)"
        for text in decision.response.warnings
    )


def test_a_policy_is_never_in_conflict_with_itself():
    """Its second round may change what its first one wrote."""
    count = {"op": "add", "path": PLACE}

    def a(document):
        return patch({**count, "value": document["object"]["metadata"]["labels"].get("one", "") + "i"})

    chain = [policy("a", on_conflict=OnConflict.DENY, **IF_NEEDED), policy("b", index=1)]
    decision, _ = decide(chain, {"a": a, "b": label("two")})
    assert decision.object["metadata"]["labels"] == {"one": "ii", "two": "1"}


def test_the_report_of_many_conflicts_is_bounded():
    """A few places, and how many more; not an exact number where more were found than are kept."""
    labels = {f"l{number}": "1" for number in range(500)}
    wipe = patch({"op": "remove", "path": "/metadata/labels"})
    fill = patch({"op": "add", "path": "/metadata/labels", "value": labels})
    decision, _ = decide(pair(OnConflict.WARN), {"a": fill, "b": wipe}, on=request({"metadata": {"name": "p"}}))
    assert len(decision.calls[1].conflicts) == 100
    assert all(len(text) < 1_000 for text in decision.response.warnings)
    assert decision.response.warnings[0].endswith(f"and at least 97 more, which {A} set (onConflict warn)")


def test_what_the_answer_said_besides_is_kept():
    """Its verdict counts, although its change was not applied."""
    said = label("one", "2")
    said = Allow(change=said.change, warnings=("careful",), audit_annotations={"k": "v"})
    decision, _ = decide(pair(OnConflict.DENY), {"a": label("one"), "b": said})
    assert isinstance(decision.calls[1].answer, Failure)
    assert decision.response.warnings == ("careful",)
    assert decision.response.audit_annotations[f"{B}_k"] == "v"
