"""What kube-apiserver still calls by an old registration is judged by the present policies: each of them, once."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gateway.policies.model import Configuration, FailurePolicy, Phase
from gateway.registration.entries import make_entries
from gateway.registration.former_entries import former_entries
from tests.world import policy

IGNORE = {"failure_policy": FailurePolicy.IGNORE}


def configured(*policies, phase=Phase.MUTATING):
    """A configuration of one phase: policies, or the names of policies."""
    chain = [policy(each, phase=phase) if isinstance(each, str) else replace(each, phase=phase) for each in policies]
    chain = tuple(replace(each, index=index) for index, each in enumerate(chain))
    configuration = Configuration(**{phase.value: chain})
    return configuration, make_entries(configuration)


def after(*generations):
    """The former entries of the last of these configurations: for each name, the names of the policies it has now."""
    former = ()
    for before, then in pairwise(generations):
        former = former_entries(former, before, then)
    return {
        each.name.removesuffix(".test.example.com"): [
            member.name.removesuffix(".test.example.com")
            for member in each.members(generations[-1][0].policies(each.phase))
        ]
        for each in former
    }


def test_a_renamed_first_policy():
    """The old path has the policy under its new name, wherever it is renamed to next."""
    assert after(configured("a", "b"), configured("a2", "b")) == {"chain.a": ["a2", "b"]}
    assert after(configured("a", "b"), configured("a2", "b"), configured("a3", "b")) == {
        "chain.a2": ["a3", "b"],
        "chain.a": ["a3", "b"],
    }


def test_what_has_the_same_policies_is_not_former():
    """Neither other settings nor the way back to the old name."""
    assert after(configured("a"), configured(policy("a", settings=b'{"n":1}'))) == {}
    assert after(configured("a", "b"), configured("a2", "b"), configured("a", "b")) == {"chain.a2": ["a", "b"]}


def test_a_split_entry():
    """The old path has the policies of both, although the first of them has kept its name."""
    assert after(configured("a", "b"), configured("a", policy("b", **IGNORE))) == {"chain.a": ["a", "b"]}


def test_merged_entries():
    """Each old path has its own policies: none is judged twice."""
    before = configured("a", policy("b", **IGNORE))
    assert after(before, configured("a", "b")) == {"chain.a": ["a"], "chain.b": ["b"]}


def test_a_renamed_configuration():
    """Its policies are found again by their names, in whatever order."""
    renamed = configured(policy("b", configuration="new"), policy("a", configuration="new", **IGNORE))
    assert after(configured("a", policy("b", **IGNORE)), renamed) == {"chain.a": ["a"], "chain.b": ["b"]}


def test_a_new_policy():
    """It is judged where its neighbour is; in an entry of its own, it is not registered yet."""
    assert after(configured("b", "c"), configured("a", "b", "c", "d")) == {"chain.b": ["a", "b", "c", "d"]}
    assert after(configured("a"), configured("a", policy("b", **IGNORE))) == {}
    assert after(configured("a", policy("b", rules=())), configured("a", "b")) == {"chain.a": ["a", "b"]}


def test_a_policy_that_is_renamed_and_moved():
    """It takes the place of one that has gone: an old registration would not call it elsewhere."""
    then = configured(policy("b", **IGNORE), policy("c"), policy("z", **IGNORE, isolate=True))
    assert after(configured("a", policy("b", **IGNORE), policy("c")), then) == {"chain.a": ["z"]}


def test_a_removed_policy():
    """The path of an entry without policies is known, and has none."""
    assert after(configured("a", policy("b", **IGNORE)), configured("a")) == {"chain.b": []}


def test_an_isolated_policy_is_former_when_other_requests_match():
    """What the API server matched by is part of the path; the gateway matches what has changed of it."""
    before = configured(policy("a", isolate=True))
    same = before[0].mutating[0]
    for change, rules, conditions in (
        ({"rules": ()}, None, None),
        ({"rules": (*same.rules, *same.rules)}, False, True),
        ({"name": "other.test.example.com"}, True, True),
        ({"isolate": False}, False, False),
    ):
        then = configured(replace(same, **change))
        (entry,) = former_entries((), before, then)
        policies = entry.members(then[0].mutating)
        if rules is not None:
            assert (entry.has_registered_rules(policies), entry.has_registered_conditions(policies)) == (
                rules,
                conditions,
            )
    assert former_entries((), before, configured(replace(same, settings=b'{"n":1}'))) == ()


NAMES = st.lists(st.integers(0, 9), unique=True, max_size=6)
KINDS = st.lists(st.sampled_from([{}, IGNORE, {"isolate": True}]), min_size=10, max_size=10)


@pytest.mark.property
@pytest.mark.parametrize("phase", Phase)
@given(first=NAMES, kinds=KINDS, changes=st.lists(st.tuples(NAMES, KINDS), max_size=4))
def test_each_policy_is_judged_once(phase, first, kinds, changes):
    """By each registration there has been, if it had the policy, however often the configuration has changed since."""

    def made(names, kinds):
        # A name is never used again for another policy: its number is part of it.
        chain = (policy(f"p{name}", **kinds[name % 10]) for name in names)
        return configured(*chain, phase=phase)

    seen, last, generations, former = set(first), first, [made(first, kinds)], ()
    for names, changed in changes:
        # What has been and gone comes as another.
        last = [name if name in last or name not in seen else name + 10 * (1 + len(seen)) for name in names]
        seen.update(last)
        generations.append(made(last, changed))
        former = former_entries(former, generations[-2], generations[-1])
    configuration, entries = generations[-1]
    members = {each.key: each.members(configuration.policies(phase)) for each in former}
    members |= {(phase, entry.name, entry.revision): entry.policies for entry in entries.of(phase)}
    for number, (_, registered) in enumerate(generations):
        keys = [(phase, entry.name, entry.revision) for entry in registered.of(phase)]
        names = [each.name for key in keys for each in members[key]]
        assert len(names) == len(set(names))
        always = {each.name for entry in registered.of(phase) for each in entry.policies}
        for later, _ in generations[number:]:
            always &= {each.name for each in later.policies(phase)}
        assert always <= set(names)
