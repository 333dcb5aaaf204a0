"""Validating policies are sorted into entries as a plain comparison with one entry after another would do it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.policies.model import Configuration, FailurePolicy, Mode, Phase
from gateway.registration import grouping
from gateway.registration.entries import make_entries
from gateway.registration.grouping import NEARNESS, EntryGroup
from tests.registration.chains import RULES, on, policy

POLICIES = st.lists(
    st.tuples(
        st.lists(RULES, min_size=1, max_size=2).map(tuple),
        st.sampled_from(FailurePolicy),
        st.sampled_from([Mode.ENFORCE, Mode.AUDIT]),
    ),
    max_size=10,
)


def plainly(policies):
    """The groups, and why each begins: every policy against every group, in order."""
    groups, splits = [], []
    for each in policies:
        differences = []
        for group in groups:
            difference = group.difference(each)
            if difference is None:
                group.add(each)
                break
            differences.append(difference)
        else:
            groups.append(EntryGroup(each))
            splits.append(max(differences, key=lambda one: NEARNESS.index(one.field), default=None))
    return [tuple(group.policies) for group in groups], splits


def validating(drawn):
    return tuple(
        policy(f"p{n}.b.c", phase=Phase.VALIDATING, index=n, rules=rules, failure_policy=failing, mode=mode)
        for n, (rules, failing, mode) in enumerate(drawn)
    )


@pytest.mark.property
@given(POLICIES)
def test_groups_are_those_of_a_plain_comparison(drawn):
    """The same policies together, and the same reason why each group begins."""
    policies = validating(drawn)
    entries = make_entries(Configuration(validating=policies)).validating
    assert ([entry.policies for entry in entries], [entry.split for entry in entries]) == plainly(policies)


def test_equal_rules_are_compared_once(monkeypatch):
    """However many policies have them: two thousand of five kinds need the rules of five."""
    called = []
    named = grouping._named
    monkeypatch.setattr(grouping, "_named", lambda *what: called.append(what) or named(*what))
    kinds = [on(f"CREATE apps v{n} deployments") for n in range(5)]
    policies = tuple(policy(f"p{n}.b.c", phase=Phase.VALIDATING, index=n, rules=kinds[n % 5]) for n in range(2_000))
    assert len(make_entries(Configuration(validating=policies)).validating) == 5
    assert len(called) < 200
