"""Plans are made when they are wanted, of what is in force then."""

from gateway.engine.plan import Described
from gateway.policies.model import Configuration, Phase
from gateway.registration.entries import make_entries
from gateway.serving.plans import UNKNOWN_REVISION, Plans, PoliciesInForce, Target
from tests.world import policy, request

PHASE = Phase.VALIDATING


class Standings:
    """What is in force, and how often that was called."""

    def __init__(self):
        self.called = 0
        self.known = {}
        self.versions = {}

    def __call__(self, phase):
        self.called += 1
        return PoliciesInForce(availabilities=self.known, versions=self.versions)


def plans_of(*policies):
    configuration = Configuration(validating=policies)
    return Plans(configuration, make_entries(configuration), shadows=lambda _: {})


def test_a_change_of_standings_makes_no_plan():
    """However many standings change, a plan is made once, when it is wanted next."""
    in_force = Standings()
    plans = plans_of(policy("a", phase=PHASE), policy("b", phase=PHASE))
    for _ in range(100):
        plans.availabilities_changed()
    assert in_force.called == 0
    first = plans.of(Target(PHASE), in_force)
    assert plans.of(Target(PHASE), in_force) is first
    assert in_force.called == 1


def test_a_plan_has_the_standings_of_its_moment():
    """A plan that is wanted after a change says what the worker has said meanwhile."""
    in_force = Standings()
    (one,) = policies = (policy("a", phase=PHASE),)
    plans = plans_of(*policies)
    assert plans.of(Target(PHASE), in_force).members[0].unavailable is not None
    in_force.known = {one.qualified_name: Described(version="7")}
    plans.availabilities_changed()
    assert plans.of(Target(PHASE), in_force).members[0].version == "7"


def test_the_index_is_made_once():
    """It depends on the configuration alone; but not on that alone where a policy runs in its last good version."""
    in_force = Standings()
    one = policy("a", phase=PHASE)
    plans = plans_of(one)
    first = plans.of(Target(PHASE), in_force)
    plans.availabilities_changed()
    again = plans.of(Target(PHASE), in_force)
    assert again is not first
    assert again.index is first.index
    in_force.versions = {one.qualified_name: policy("a", phase=PHASE, rules=())}
    plans.availabilities_changed()
    assert not plans.of(Target(PHASE), in_force).index.concerned(request())
    in_force.versions = {}
    plans.availabilities_changed()
    assert plans.of(Target(PHASE), in_force).index.concerned(request())


def test_what_is_no_target_has_no_plan():
    """There are targets for the phases and for the entries, and no others."""
    one = policy("a", phase=PHASE)
    plans = plans_of(one)
    (entry,) = make_entries(Configuration(validating=(one,))).validating
    assert plans.of(Target(PHASE, "group.a"), Standings()) is None
    assert set(plans.targets) == {
        Target(Phase.MUTATING),
        Target(Phase.VALIDATING),
        *(Target(PHASE, "group.a.test.example.com", revision) for revision in ("", entry.revision, UNKNOWN_REVISION)),
    }
