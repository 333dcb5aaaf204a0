"""Which policies share a call, what it is called, and how long it may take."""

import random
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gateway.policies.model import (
    Configuration,
    FailurePolicy,
    MatchPolicy,
    Mode,
    Phase,
    ReinvocationPolicy,
    SideEffects,
)
from gateway.policies.names import fully_qualified
from gateway.registration.entries import make_entries
from tests.registration.chains import CONFIGURATIONS, GROUPS, REQUESTS, VERSIONS, chains, matched, on, policy

FAIL, IGNORE = FailurePolicy.FAIL, FailurePolicy.IGNORE
IF_NEEDED = ReinvocationPolicy.IF_NEEDED
MUTATING, VALIDATING = Phase.MUTATING, Phase.VALIDATING
PHASES = st.sampled_from(Phase)
PAIRS = [(group, version) for group in GROUPS for version in VERSIONS]


def entries_of(*policies):
    """The entries of one phase with these policies, in this order."""
    placed = tuple(replace(each, index=index) for index, each in enumerate(policies))
    mutating = tuple(each for each in placed if each.phase is MUTATING)
    validating = tuple(each for each in placed if each.phase is VALIDATING)
    return make_entries(Configuration(mutating=mutating, validating=validating))


def members(entries):
    """The first letters of the policies in each entry."""
    return [" ".join(each.name[0] for each in entry.policies) for entry in entries]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"failure_policy": IGNORE}, "failurePolicy"),
        ({"reinvocation_policy": IF_NEEDED}, "reinvocationPolicy"),
        ({"match_policy": MatchPolicy.EXACT}, "matchPolicy"),
        ({"mode": Mode.WARN}, "mode"),
        ({"mode": Mode.AUDIT}, "mode"),
        ({"rules": on("CREATE core v1beta1 pods")}, "rules"),
        ({"isolate": True}, None),
    ],
)
def test_what_splits_a_run(fields, field):
    """A policy that differs ends the run, one that is like those before begins another, and the reason is known."""
    entries = entries_of(policy("a.x.y"), policy("b.x.y"), policy("c.x.y", **fields), policy("d.x.y")).mutating
    assert members(entries) == ["a b", "c", "d"]
    first, second, third = entries
    assert (first.split, second.split and second.split.field) == (None, field)
    assert third.split.field == field or (field is None and third.split.field == "isolate")
    assert (third.split.policy.name, third.split.other.name) == ("d.x.y", "c.x.y")


def test_sets_are_not_runs():
    """In the validating phase, a policy joins those it agrees with wherever they stand."""
    chain = [
        policy("a.x.y", phase=VALIDATING),
        policy("b.x.y", phase=VALIDATING, failure_policy=IGNORE),
        policy("c.x.y", phase=VALIDATING, isolate=True),
        policy("d.x.y", phase=VALIDATING),
        policy("e.x.y", phase=VALIDATING, failure_policy=IGNORE),
    ]
    assert members(entries_of(*chain).validating) == ["a d", "b e", "c"]


def test_modes_that_do_not_enforce_agree():
    """warn and audit share an entry, which is registered with Ignore although both say Fail."""
    (entry,) = entries_of(policy("a.x.y", mode=Mode.WARN), policy("b.x.y", mode=Mode.AUDIT)).mutating
    assert (entry.enforcing, entry.failure_policy) == (False, IGNORE)


@pytest.mark.parametrize(
    ("one", "other", "resource"),
    [
        ("CREATE apps v1 deployments", "CREATE apps v1beta1 deployments", "deployments"),
        ("CREATE apps v1 deployments", "CREATE extensions v1 deployments", "deployments"),
        ("CREATE apps v1 deployments", "CREATE apps v1,v2 deployments", "deployments"),
        ("CREATE apps v1 deployments", "* apps * deployments", "deployments"),
        ("CREATE apps v1 deployments", "CREATE * v1 deployments", "deployments"),
        ("CREATE apps v1 deployments", "CREATE apps v2 *", "deployments"),
        ("CREATE apps v1 *", "CREATE apps v2 deployments", "deployments"),
        ("CREATE apps v1 *", "CREATE apps v2 */*", "*"),
        ("UPDATE apps v1 deployments/scale", "UPDATE apps v2 */scale", "deployments/scale"),
        ("UPDATE apps v1 deployments/*", "UPDATE apps v2 deployments/status", "deployments/status"),
        ("UPDATE apps v1 deployments/*", "UPDATE apps v2 */*", "deployments/*"),
        ("CREATE apps v1 x Namespaced", "CREATE apps v2 x", "x"),
        ("CREATE apps v1 x Cluster", "CREATE apps v2 x", "x"),
        ("CONNECT apps v1 x", "* apps v2 x", "x"),
    ],
)
def test_versions_that_clash(one, other, resource):
    """Policies that name different groups or versions where both can match are kept apart, in either order."""
    first, second = policy("a.x.y", rules=on(one)), policy("b.x.y", rules=on(other))
    for pair in ((first, second), (second, first)):
        split = entries_of(*pair).mutating[1].split
        assert (split.field, split.resource) == ("rules", resource)


def test_unknown_subresources_clash():
    """Rules can agree on each resource and subresource that they name, and clash on the others."""
    one = policy("a.x.y", rules=on("* apps v1 x/*", "* apps v2 x"))
    other = policy("b.x.y", rules=on("* apps v1,v2 x/*"))
    assert entries_of(one, other).mutating[1].split.resource == "x/*"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("CREATE apps v1 deployments", "UPDATE apps v1 deployments"),
        ("CREATE apps v1 deployments", "CREATE batch v2 jobs"),
        ("CREATE apps v1 deployments", "CREATE apps v2 deployments/scale"),
        ("CREATE apps v1 *", "CREATE apps v2 */scale"),
        ("CREATE apps v1,v2 deployments", "CREATE apps v2,v1 deployments,replicasets"),
        ("CREATE * * *", "UPDATE,CREATE * * deployments"),
        ("CREATE apps v1 x Cluster", "CREATE apps v2 x Namespaced"),
        ("CREATE apps v1 x", "DELETE apps v2 x"),
    ],
)
def test_versions_that_agree(one, other):
    """Policies that name the same groups and versions, or match no request both, share an entry."""
    assert len(entries_of(policy("a.x.y", rules=on(one)), policy("b.x.y", rules=on(other))).mutating) == 1


def test_every_member_counts():
    """A policy is compared with all of a run, and the one it clashes with is named."""
    run = [policy(f"{name}.x.y", rules=on(f"CREATE g v1 {name}")) for name in "abc"]
    split = entries_of(*run, policy("d.x.y", rules=on("CREATE g v2 b"))).mutating[1].split
    assert str(split) == "x/d.x.y: rules: g/v2 for CREATE of b, where x/b.x.y has g/v1"


def test_no_rules_no_entry():
    """A policy without rules is in no entry and splits no run; one with a fault stays where it is."""
    chain = [
        policy("a.x.y"),
        policy("b.x.y", rules=(), failure_policy=IGNORE),
        policy("c.x.y", fault="spec: wrong"),
    ]
    entries = entries_of(*chain)
    assert (members(entries.mutating), [each.name for each in entries.idle]) == (["a c"], ["b.x.y"])


@pytest.mark.parametrize(
    ("chain", "worst", "registered"),
    [
        ([policy("a.x.y", timeout=0.5)], 0.5, 2),
        ([policy("a.x.y", timeout=1), policy("b.x.y", timeout=2.5)], 3.5, 5),
        ([policy(f"{name}.x.y", timeout=2, reinvocation_policy=IF_NEEDED) for name in "ab"], 8, 9),
        # No later policy changes anything, so the gateway calls it once.
        ([policy("a.x.y", timeout=10, reinvocation_policy=IF_NEEDED)], 10, 11),
        ([policy("a.x.y", timeout=10, isolate=True)], 10, 11),
        ([policy("a.x.y", timeout=29)], 29, 30),
        ([policy("a.x.y", timeout=30)], 30, 30),
        ([policy(f"{name}.x.y", timeout=20) for name in "ab"], 40, 30),
        (
            [
                policy(f"{name}.x.y", phase=VALIDATING, timeout=seconds)
                for name, seconds in zip("ab", (3, 7), strict=True)
            ],
            7,
            8,
        ),
        # As decimals these are 3; the sum must not be a hair above it and cost a second.
        ([policy(f"{name}.x.y", timeout=0.1) for name in "abcdefghij"], 1, 2),
    ],
)
def test_timeouts(chain, worst, registered):
    """The sum of a run, twice under IfNeeded, the largest of a set; a second more for the API server's rounding."""
    entries = entries_of(*chain)
    (entry,) = entries.mutating + entries.validating
    assert (entry.worst_seconds, entry.timeout_seconds) == (worst, registered)


def test_a_phase_may_take():
    """Mutating entries are called one after another, validating ones at once."""
    chain = [
        policy(name, phase=phase, timeout=seconds, isolate=True)
        for phase in Phase
        for name, seconds in (("a.x.y", 1), ("b.x.y", 2.5))
    ]
    entries = entries_of(*chain)
    assert [(entries.worst_seconds(phase), entries.wait_seconds(phase)) for phase in Phase] == [(3.5, 6), (2.5, 4)]
    nothing = entries_of()
    assert [(nothing.worst_seconds(phase), nothing.wait_seconds(phase)) for phase in Phase] == [(0, 0), (0, 0)]


@pytest.mark.parametrize("effects", SideEffects)
def test_side_effects(effects):
    """An entry has none only if no member has any; a dry run that a member forbids is refused by the gateway."""
    (entry,) = entries_of(policy("a.x.y"), policy("b.x.y", side_effects=effects)).mutating
    assert entry.side_effects is (SideEffects.NONE if effects is SideEffects.NONE else SideEffects.NONE_ON_DRY_RUN)


def test_names_say_what_they_are():
    """A run is chain.FIRST, a set group.FIRST, an isolated policy keeps its own name."""
    entries = entries_of(
        policy("a.x.y"), policy("b.x.y"), policy("i.x.y", isolate=True), policy("v.x.y", phase=VALIDATING)
    )
    assert [entry.path.rpartition("/")[0] for entry in entries.mutating + entries.validating] == [
        "/mutate/chain.a.x.y",
        "/mutate/i.x.y",
        "/validate/group.v.x.y",
    ]


def test_names_in_two_configurations():
    """Where two entries would have one name, both are qualified by their configurations."""
    chain = [policy("i.x.y", configuration=configuration, isolate=True) for configuration in ("c", "d")]
    assert [entry.name for entry in entries_of(*chain).mutating] == ["i.x.y.c", "i.x.y.d"]


def test_names_in_both_phases():
    """Where both phases would have one name, each says which it is."""
    chain = [policy("i.x.y", phase=phase, isolate=True) for phase in Phase]
    entries = entries_of(*chain)
    assert [entries.of(phase)[0].name for phase in Phase] == ["mutate.i.x.y", "validate.i.x.y"]


def test_long_names_are_cut():
    """A name that would be longer than 253 bytes is cut, has three segments still, and a digest of the whole."""
    long = ["n" * 245 + ending for ending in (".x.y", ".x.z")]
    names = [entry.name for entry in entries_of(*(policy(name, phase=VALIDATING) for name in long[:1])).validating]
    names += [entry.name for entry in entries_of(*(policy(name, phase=VALIDATING) for name in long[1:])).validating]
    assert [(len(name), name.count("."), fully_qualified(name)) for name in names] == [(253, 3, [])] * 2
    assert names[0] != names[1]


@pytest.mark.property
@given(CONFIGURATIONS)
def test_each_policy_is_in_an_entry(configuration):
    """Each policy that has rules is in one entry, in chain order; entries are in the order of their first members."""
    entries = make_entries(configuration)
    for phase in Phase:
        chain = [each for each in configuration.policies(phase) if each.rules]
        placed = [each for entry in entries.of(phase) for each in entry.policies]
        order = [[chain.index(each) for each in entry.policies] for entry in entries.of(phase)]
        assert sorted(map(chain.index, placed)) == list(range(len(chain)))
        assert all(indices == sorted(indices) for indices in order)
        assert all(one[0] < two[0] for one, two in pairwise(order))
        assert placed == chain or phase is VALIDATING
        assert all(entry.isolated == each.isolate for entry in entries.of(phase) for each in entry.policies)
        assert all(len(entry.policies) == 1 for entry in entries.of(phase) if entry.isolated)


@pytest.mark.property
@given(CONFIGURATIONS)
def test_names(configuration):
    """All names are legal for a webhook, and no two are equal, not even in different phases."""
    entries = make_entries(configuration)
    every = entries.mutating + entries.validating
    assert [problem for entry in every for problem in fully_qualified(entry.name)] == []
    assert len({entry.name for entry in every}) == len(every)
    for entry in every:
        assert entries.find(entry.phase, entry.name) is entry
        assert all(entries.find(phase, entry.name) is None for phase in Phase if phase is not entry.phase)


@pytest.mark.property
@given(PHASES.flatmap(chains), st.data())
def test_joining_renames_no_entry(chain, data):
    """A policy that joins an entry at its end changes no name (but those of namesakes)."""
    chain = [each for each in chain if not each.namesake]
    before = entries_of(*chain)
    joinable = [entry for entry in before.mutating + before.validating if not entry.isolated]
    if not joinable:
        return
    entry = data.draw(st.sampled_from(joinable))
    at = entry.policies[-1].index
    joined = [*chain[: at + 1], replace(chain[at], name="late.b.c"), *chain[at + 1 :]]
    after = entries_of(*joined)
    assert [each.name for each in before.of(entry.phase)] == [each.name for each in after.of(entry.phase)]
    assert len(after.find(entry.phase, entry.name).policies) == len(entry.policies) + 1


@pytest.mark.property
@given(PHASES.flatmap(chains), st.integers())
def test_validating_members_agree(chain, seed):
    """Policies that are alike in everything share an entry, whatever stands between them in the validating phase."""
    validating = [replace(each, phase=VALIDATING, isolate=False, namesake=False) for each in chain if each.rules]
    shuffled = random.Random(seed).sample(validating + validating, 2 * len(validating))
    twins = [replace(each, name=f"p{index}.b.c") for index, each in enumerate(shuffled)]
    where = {each.name: entry.name for entry in entries_of(*twins).validating for each in entry.policies}
    for one in twins:
        for two in twins:
            if replace(one, name=two.name, index=0, place=two.place) == replace(two, index=0):
                assert where[one.name] == where[two.name]


def delivered(rules, request, equivalents):
    """As which (group, version) kube-apiserver sends a request to a webhook with matchPolicy Equivalent; None: not."""
    for group, version in (request[1:3], *equivalents):
        if matched(rules, (request[0], group, version, *request[3:])):
            return group, version
    return None


@pytest.mark.property
@given(PHASES.flatmap(chains), st.data())
def test_no_way_around_a_member(chain, data):
    """Whatever resources are equivalent: a policy that would be called by itself is called by its entry, and is handed
    a group and version that its own rules name.
    """
    alike = [
        replace(
            each,
            failure_policy=FAIL,
            match_policy=MatchPolicy.EQUIVALENT,
            mode=Mode.ENFORCE,
            reinvocation_policy=ReinvocationPolicy.NEVER,
        )
        for each in chain
    ]
    entries = entries_of(*alike)
    equivalents = data.draw(st.lists(st.sampled_from(PAIRS), max_size=4, unique=True))
    requests = data.draw(st.lists(st.sampled_from(REQUESTS), min_size=20, max_size=20))
    for entry in entries.mutating + entries.validating:
        for request in requests:
            version = delivered(entry.rules, request, equivalents)
            for member in entry.policies:
                alone = delivered(member.rules, request, equivalents)
                handed = version is not None and matched(member.rules, (request[0], *version, *request[3:]))
                assert handed == (alone is not None)


@pytest.mark.parametrize("seed", range(5))
def test_order_of_files(load_documents, worker, policy, configuration, seed):
    """The order in which files are given changes no entry and no name."""
    names = [f"p{index}.example.com.x" for index in range(4)]
    documents = [
        configuration(*(policy({"name": name}) for name in names), phase=phase, name=name)
        for phase in ("Mutating", "Validating")
        for name in ("b", "a")
    ]
    shuffled = random.Random(seed).sample(documents, len(documents))

    def shown(*documents):
        entries = make_entries(load_documents(worker(), *documents))
        every = entries.mutating + entries.validating
        return [(entry.path, [each.qualified_name for each in entry.policies]) for entry in every]

    assert shown(*shuffled) == shown(*documents)


@pytest.mark.property
@given(CONFIGURATIONS)
def test_time_is_paid_for(configuration):
    """What is registered covers what the policies may take and the second that the API server rounds up, up to 30 s."""
    entries = make_entries(configuration)
    for entry in entries.mutating + entries.validating:
        needed = Fraction(entry.worst_seconds) + 1
        assert min(needed, 30) <= entry.timeout_seconds <= 30
        assert entry.timeout_seconds < needed + 1
