"""The index over rules finds what calling each policy would find."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.matching.equivalents import EMPTY
from gateway.matching.index import RuleIndex
from gateway.matching.outcomes import MATCHED, NotMatched, WrongVersion
from gateway.matching.versions import by_rules
from gateway.policies.model import MatchPolicy, Rule
from gateway.review.request import ReviewError
from tests.matching.test_properties import CHAINS, ENTRIES, GROUPS, TABLES, TRAFFIC
from tests.world import policy, request

WRITTEN = st.lists(st.tuples(CHAINS, st.sampled_from(MatchPolicy)), max_size=8)
VERSIONS = st.sampled_from(["v1", "v2", "*"])
RESOURCES = st.sampled_from([*ENTRIES, "pods/", "jobs"])


def linear(policies, on, table=EMPTY):
    """What calling each policy comes to."""
    outcomes = {place: by_rules(each, on, table) for place, each in enumerate(policies)}
    return {place: ruled for place, ruled in outcomes.items() if not isinstance(ruled, NotMatched)}


@st.composite
def requests(draw):
    """A request about any resource, delivered as it was sent or converted."""
    named = {}
    for prefix, sub in (("", "subResource"), ("request", "requestSubResource")):
        resource, _, sub_resource = draw(RESOURCES).partition("/")
        group, version = draw(st.sampled_from(GROUPS)), draw(VERSIONS)
        name = "requestResource" if prefix else "resource"
        named[name] = {"group": group, "version": version, "resource": resource}
        named[sub] = sub_resource
    if draw(st.booleans()):
        del named["requestResource"], named["requestSubResource"]
    operation = draw(st.sampled_from(["CREATE", "UPDATE", "DELETE", "CONNECT"]))
    return request({}, operation=operation, namespace=draw(st.sampled_from(["", "t"])), **named)


def policies_of(written):
    return [policy(f"p{n}", rules=tuple(rules), match_policy=how) for n, (rules, how) in enumerate(written)]


@pytest.mark.property
@given(WRITTEN, st.lists(requests() | TRAFFIC, min_size=1, max_size=6), TABLES, st.sampled_from([0, 20, 1000]))
def test_a_look_up_is_what_calling_each_policy_comes_to(written, called, table, kept):
    """For any rules and requests, in chain order, whether or not the answer was kept from a request before."""
    policies = policies_of(written)
    index = RuleIndex(policies, table, kept=kept)
    for on in [*called, *called]:
        assert list(index.concerned(on).items()) == list(linear(policies, on, table).items())


def test_only_policies_that_a_bucket_names_are_called(monkeypatch):
    """A request calls no policy that names another group or resource, and no policy once it was answered."""
    called = []

    def counted(each, *rest):
        called.append(each)
        return by_rules(each, *rest)

    monkeypatch.setattr("gateway.matching.index.by_rules", counted)
    others = [
        policy(f"o{n}", rules=(Rule(operations=("*",), api_groups=("*",), api_versions=("*",), resources=(f"r{n}",)),))
        for n in range(100)
    ]
    pods = policy("pods")
    index = RuleIndex([*others, pods])
    for _ in range(3):
        assert index.concerned(request({})) == {100: MATCHED}
    assert called == [pods]


def test_answers_are_bounded():
    """Whatever is called, no more is kept than may be, and what is kept stays right."""
    index = RuleIndex([policy("pods")], kept=50)
    for number in range(1000):
        name = f"r{number}"
        assert not index.concerned(request({}, resource={"group": "", "version": "v1", "resource": name}))
        assert index.concerned(request({})) == {0: MATCHED}
    assert len(index._answers) <= 5


def test_long_names_are_not_kept():
    """The texts of a key count: names that a client made long are found by the rules each time."""
    index = RuleIndex([policy("pods")], kept=50)
    for number in range(4):
        name = str(number) * 10_000
        assert not index.concerned(request({}, resource={"group": "", "version": "v1", "resource": name}))
    assert not index._answers


def test_the_clients_own_resource_is_read_for_exact_policies_only():
    """An unreadable field that no policy needs fails no review."""
    on = request({}, requestResource=7)
    assert RuleIndex([policy("a")]).concerned(on) == {0: MATCHED}
    with pytest.raises(ReviewError):
        RuleIndex([policy("a", match_policy=MatchPolicy.EXACT)]).concerned(on)


def test_a_wrong_version_is_reported_in_the_request_s_own_words():
    """Of two requests that differ in the client's own kind, each has its answer."""
    exact = policy("a", match_policy=MatchPolicy.EXACT)
    index = RuleIndex([exact])
    for kind in ("One", "Other"):
        on = request(
            {},
            resource={"group": "apps", "version": "v1", "resource": "pods"},
            requestResource={"group": "", "version": "v1", "resource": "pods"},
            requestKind={"group": "", "version": "v1", "kind": kind},
        )
        ruled = index.concerned(on)[0]
        assert isinstance(ruled, WrongVersion)
        assert ruled.kind == on.request_kind
