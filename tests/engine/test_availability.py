"""Which policies are not in force as they are configured: those that cannot be called, each with its reason."""

import pytest

from gateway.engine.availability import unavailable_policies
from gateway.engine.plan import Described, Unavailable, UnavailableReason, make_plan
from gateway.policies.errors import Place
from gateway.policies.model import Phase
from gateway.reasons import Reason
from tests.world import policy

PLACE = Place(file="p.yaml", line=7, path="policies[0]")


def refused(why, hint=""):
    return Unavailable(why=why, message="worker 'labels' says no", hint=hint)


def test_who_can_be_called_is_none_of_them():
    """All others are, in chain order: refused, not described yet, or mistaken."""
    good, bad, new = (policy(name, index=index) for index, name in enumerate(("good", "bad", "new")))
    mistaken = policy("mistaken", index=3, fault="policies[3].rules: Required value", place=PLACE)
    availabilities = {
        good.qualified_name: Described(version="1"),
        bad.qualified_name: refused(UnavailableReason.SETTINGS),
    }
    found = unavailable_policies((good, bad, new, mistaken), availabilities, last_good={bad.qualified_name})
    assert [(each.policy, each.availability.why, each.last_good) for each in found] == [
        (bad, UnavailableReason.SETTINGS, True),
        (new, UnavailableReason.UNDESCRIBED, False),
        (mistaken, UnavailableReason.INVALID, False),
    ]


@pytest.mark.parametrize("why", UnavailableReason)
def test_it_is_an_error_at_its_place(why):
    """In the form of all errors, with what may help; and it is known whether the worker was called."""
    about = policy("judge", place=PLACE)
    (found,) = unavailable_policies((about,), {about.qualified_name: refused(why, "did you mean 'judge'?")})
    (error,) = found.errors
    assert (error.place, error.message, error.hint) == (PLACE, "worker 'labels' says no", "did you mean 'judge'?")
    assert found.answered is (why not in {UnavailableReason.UNDESCRIBED, UnavailableReason.INVALID})


def test_a_line_says_who_and_what_becomes_of_it():
    """The phase, the whole name, the effect, the kind of reason."""
    about = policy("judge", phase=Phase.VALIDATING)
    (found,) = unavailable_policies((about,), {about.qualified_name: refused(UnavailableReason.CLAIMS)})
    assert str(found) == "validating policy test/judge.test.example.com fails (claims): worker 'labels' says no"


def test_its_failure_is_an_ordinary_one():
    """CONFIGURATION, with the worker's words for users, and the rest for operators."""
    about = policy("judge")
    availability = refused(UnavailableReason.UNKNOWN_POLICY, "it holds none")
    (member,) = make_plan(Phase.MUTATING, (about,), {about.qualified_name: availability}).members
    assert member.unavailable == availability.failure
    assert (member.unavailable.reason, member.unavailable.message) == (
        Reason.CONFIGURATION,
        "worker 'labels' says no",
    )
    assert member.unavailable.hint == "it holds none"
