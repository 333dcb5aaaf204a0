"""Fewer rules, the same requests."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.registration.narrowing import covers, narrowed, without_groups
from tests.registration.chains import REQUESTS, RULES, matched, on

SEVERAL = st.lists(RULES, max_size=5)


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (["CREATE core v1 pods", "CREATE core v1 pods"], ["CREATE core v1 pods"]),
        (["CREATE core v1 pods", "CREATE core v1 services"], ["CREATE core v1 pods,services"]),
        (["CREATE core v1 pods", "UPDATE core v1 pods"], ["CREATE,UPDATE core v1 pods"]),
        (["CREATE apps v1 x", "CREATE apps v2 x"], ["CREATE apps v1,v2 x"]),
        (["CREATE apps v1 x", "CREATE batch v1 x"], ["CREATE apps,batch v1 x"]),
        (["CREATE apps v1 x Cluster", "CREATE apps v1 x Namespaced"], ["CREATE apps v1 x"]),
        (["CREATE apps v1 x Cluster", "CREATE apps v1 x"], ["CREATE apps v1 x"]),
        # Two fields differ: one rule of both would match CREATE of services too.
        (["CREATE core v1 pods", "UPDATE core v1 services"], ["CREATE core v1 pods", "UPDATE core v1 services"]),
        (["* * * */*", "CREATE core v1 pods"], ["* * * */*"]),
        (["CREATE core v1 pods/log", "CREATE,UPDATE core v1 pods/*"], ["CREATE,UPDATE core v1 pods/*"]),
        (["CREATE core v1 pods/log", "CREATE core v1 pods/*"], ["CREATE core v1 pods/*"]),
        (["CREATE core v1 pods", "CREATE core v1 *"], ["CREATE core v1 *"]),
        (["CREATE core v1 pods/log", "CREATE core v1 *"], ["CREATE core v1 pods/log,*"]),
        (["CREATE core v1 pods/scale", "CREATE core v1 */scale"], ["CREATE core v1 */scale"]),
        (
            ["CREATE core v1 a", "CREATE core v1 b", "UPDATE core v1 a", "UPDATE core v1 b"],
            ["CREATE,UPDATE core v1 a,b"],
        ),
        (["UPDATE,CREATE core v1 a", "CREATE,UPDATE core v1 b"], ["UPDATE,CREATE core v1 a,b"]),
        ([], []),
    ],
)
def test_narrowed(rules, expected):
    """What another rule covers is dropped, and what differs in one list only is merged, in the order of its coming."""
    assert narrowed(on(*rules)) == on(*expected)


@pytest.mark.property
@given(SEVERAL)
def test_the_same_requests(rules):
    """Of all requests, the narrowed rules match those that some of the rules matches, and no other."""
    fewer = narrowed(rules)
    assert [matched(fewer, request) for request in REQUESTS] == [matched(rules, request) for request in REQUESTS]


@pytest.mark.property
@given(SEVERAL)
def test_narrow_enough(rules):
    """What came out cannot be narrowed again, and no rule in it is covered by another."""
    fewer = narrowed(rules)
    assert narrowed(fewer) == fewer
    assert len(fewer) <= len(rules)
    assert not [one for one in fewer for other in fewer if one is not other and covers(other, one)]


@pytest.mark.property
@given(RULES, RULES)
def test_covering(wider, rule):
    """A rule that is said to cover another matches whatever that matches."""
    if covers(wider, rule):
        assert all(matched([wider], request) for request in REQUESTS if matched([rule], request))


@pytest.mark.property
@given(SEVERAL)
def test_without_groups(rules):
    """Without a group, the rules match everything else as before; it is matched by wildcards only."""
    left = without_groups(rules, {"apps"})
    assert not any("apps" in rule.api_groups for rule in left)
    others = [request for request in REQUESTS if request[1] != "apps"]
    assert [matched(left, request) for request in others] == [matched(rules, request) for request in others]
