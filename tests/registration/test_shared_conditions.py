"""The registered condition of an entry of several policies is false where no policy of it matches, and only there."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.cel.match_conditions import compile_condition
from gateway.matching.conditions import FINISHED_AT_ONCE, by_conditions
from gateway.matching.outcomes import MATCHED, NotMatched, Undecidable
from gateway.policies.model import FailurePolicy, MatchCondition, Mode, Requirement, Selector
from gateway.registration.shared_conditions import shared_conditions
from tests.world import policy, request


def conditions(*expressions):
    return tuple(
        MatchCondition(name=f"c{index}", condition=compile_condition(text)) for index, text in enumerate(expressions)
    )


def having(*expressions, name="a", **fields):
    """A policy with these conditions."""
    return policy(name, match_conditions=conditions(*expressions), **fields)


def expression(*policies):
    """The expression of their condition; None: there is none."""
    made = shared_conditions(policies)
    return made[0].condition.expression if made else None


def test_the_disjunction():
    """Of the conjunctions; equal ones once; a comment ends with its line."""
    one, two = having("request.name == 'a' // a", "true"), having("has(object.spec)", name="b")
    assert expression(one, two, having("has(object.spec)", name="c")) == (
        "((request.name == 'a' // a\n) && (true\n)) || ((has(object.spec)\n))"
    )


def test_equal_conditions():
    """They are registered as they are, so that an error is worded as Kubernetes does."""
    one = having("request.name == 'a'", "true")
    assert shared_conditions([one]) == one.match_conditions
    assert shared_conditions([one, having("request.name == 'a'", "true", name="b")]) == one.match_conditions


OTHER = {
    "no conditions": {"match_conditions": ()},
    "other rules": {"rules": ()},
    "another namespaceSelector": {
        "namespace_selector": Selector(requirements=(Requirement(key="a", operator="Exists"),))
    },
    "another objectSelector": {"object_selector": Selector(requirements=(Requirement(key="a", operator="Exists"),))},
    "Ignore": {"failure_policy": FailurePolicy.IGNORE},
    "a mode that refuses nothing": {"mode": Mode.WARN},
    "an error": {"match_conditions": conditions("request.nothing")},
}


@pytest.mark.parametrize("name", OTHER)
def test_where_an_error_would_mean_something_else(name):
    """There is no condition."""
    one = having("true")
    assert expression(one, policy("b", **({"match_conditions": conditions("true")} | OTHER[name]))) is None


@pytest.mark.parametrize(
    "text",
    [
        "object.spec.list.all(x, x > 1)",
        "object.metadata.name.matches('a+')",
        "object.metadata.name.contains('a')",
        "authorizer.group('').resource('pods').check('get').allowed()",
        "object.spec == oldObject.spec",
        "'a' in object.spec.list",
        "request.name in object.spec.list",
        "object.metadata.name.startsWith(request.name)",
        "object.?spec.orValue(1) == 1",
        "object.spec[request.name] == 1",
        f"request.name == '{'a' * 10_000}'",
    ],
)
def test_what_is_not_simple(text):
    """It may cost more than Kubernetes' limit for one expression, or another answer elsewhere."""
    assert compile_condition(text).error is None
    assert expression(having(text), having("true", name="b")) is None


@pytest.mark.parametrize(
    "text",
    [
        "request.operation in ['CREATE', 'UPDATE']",
        "'team' in object.metadata.labels",
        "object.metadata.labels['team'] != 'a'",
        "object.metadata.name.startsWith('kube-')",
        "!(request.userInfo.username.endsWith(':a')) ? true : has(oldObject.spec)",
        "object.spec.containers[0].image == 'a' && object.spec.replicas > 3",
    ],
)
def test_what_is_simple(text):
    """It costs what its text says, however large the object is."""
    assert expression(having(text), having("true", name="b")) is not None


TEXTS = st.sampled_from(
    [
        "true",
        "false",
        "object.metadata.name == 'p'",
        "object.spec.missing == 1",
        "has(object.spec) && object.spec.missing == 1",
        "object.spec.list[3] == 'x'",
        "object.metadata.labels['team'] == 'a' || object.spec.replicas > 2",
        "'team' in object.metadata.labels",
        "request.operation in ['CREATE']",
        "object.spec.text || false",
        "object.spec.flag && true",
        "!object.spec.text // odd",
    ]
)
OBJECTS = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries(
            {"name": st.sampled_from(["p", "q"])}, optional={"labels": st.just({"team": "a"})}
        )
    },
    optional={
        "spec": st.fixed_dictionaries(
            {},
            optional={
                "list": st.just(["x"] * 4),
                "replicas": st.integers(0, 4),
                "text": st.just("t"),
                "flag": st.booleans(),
                "missing": st.integers(0, 1),
            },
        )
    },
)


@pytest.mark.property
@given(st.lists(st.lists(TEXTS, min_size=1, max_size=3), min_size=1, max_size=4), OBJECTS)
def test_it_is_false_exactly_if_no_policy_matches(drawn, obj):
    """True if one matches; an error if none matches and one has an error."""
    policies = [having(*texts, name=f"p{index}") for index, texts in enumerate(drawn)]
    asked = request(obj)

    def outcome(one):
        return by_conditions(one, asked, lambda: obj, {}, {}, FINISHED_AT_ONCE)

    each = [outcome(one) for one in policies]
    made = shared_conditions(policies)
    assert made
    shared = outcome(policy("entry", match_conditions=made))
    if MATCHED in each:
        assert shared is MATCHED
    elif all(isinstance(one, NotMatched) for one in each):
        assert isinstance(shared, NotMatched)
    else:
        assert isinstance(shared, Undecidable)
