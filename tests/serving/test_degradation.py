"""Reports of policies that are not in force as configured: one at the begin, one at the end."""

from types import SimpleNamespace

from structlog.testing import capture_logs

from gateway.engine.availability import UnavailablePolicy
from gateway.engine.plan import Unavailable, UnavailableReason
from gateway.serving.degradation import LISTED, SHOWN, Degradation
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.table import FAILURE, LAST_GOOD
from tests.samples import sample_value
from tests.world import policy


def refused(name, why=UnavailableReason.SETTINGS, *, last_good=False, message="no"):
    return UnavailablePolicy(
        policy=policy(name), availability=Unavailable(why=why, message=message), last_good=last_good
    )


def loaded(*unavailable, configured=True):
    """A configuration of which these policies cannot be called."""
    return SimpleNamespace(unavailable=lambda: unavailable, has=lambda policy: configured)


def reported(*configurations):
    """The log of one after another: the message's first words, policy, reason and effect."""
    degradation = Degradation(Metrics())
    with capture_logs() as entries:
        for each in configurations:
            degradation.update(each)
    return [(entry["event"], entry.get("reason"), entry.get("effect")) for entry in entries]


BEGINS, ENDS = (
    "a policy is not in force as it is configured",
    "a policy is in force as it is configured, again or at last",
)


def test_the_log_hears_of_it_once():
    """When it begins, when it is of another kind, and when it ends; not when only the words change."""
    kept = refused("a", last_good=True)
    assert reported(
        loaded(refused("a")), loaded(refused("a", message="not so")), loaded(kept), loaded(kept), loaded(), loaded()
    ) == [
        (BEGINS, "settings", "failure"),
        (BEGINS, "settings", "last_good"),
        (ENDS, None, None),
    ]


def test_a_policy_that_is_removed_has_an_end_too():
    """It is not said to be in force."""
    ((_, *_), (ended, *_)) = reported(loaded(refused("a")), loaded(configured=False))
    assert ended == "a policy that was not in force as it was configured is no longer configured"


def test_the_gauge_has_every_reason_from_the_start():
    """0 without any, and again when it is over."""
    metrics = Metrics()
    degradation = Degradation(metrics)

    def values():
        return {
            (why.value, effect): sample_value(
                metrics, "admission_gateway_degraded_policies", {"reason": why.value, "effect": effect}
            )
            for why in UnavailableReason
            for effect in (FAILURE, LAST_GOOD)
        }

    nothing = values()
    assert set(nothing.values()) == {0}
    unknown = refused("c", UnavailableReason.UNKNOWN_POLICY, last_good=True)
    degradation.update(loaded(refused("a"), refused("b"), unknown))
    assert values() == nothing | {("settings", "failure"): 2, ("unknown_policy", "last_good"): 1}
    degradation.update(loaded())
    assert values() == nothing


def test_what_is_listed_is_bounded():
    """In policies and in characters, each on one line; how many more there are is said."""
    degradation = Degradation(Metrics())
    many = [refused(f"p{number}", message="x\n" * 10_000) for number in range(LISTED + 3)]
    degradation.update(loaded(*many))
    *lines, last = degradation.lines
    assert len(lines) == LISTED
    assert max(map(len, lines)) <= SHOWN + 3
    assert "\n" not in "".join(lines)
    assert last == "3 more policies are not in force as they are configured; see the log"
