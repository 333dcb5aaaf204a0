"""The status of an object: a function of what its replicas report."""

from gateway.cluster.policy_status import ENFORCED, INVALID, MAX_MESSAGE, UNAVAILABLE, Finding, entry, summary

NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"
USED = Finding(reason=ENFORCED)
BROKEN = Finding(reason=INVALID, message="policies: Required value")
AWAY = Finding(reason=UNAVAILABLE, message="no connection")


def conditions(generation, *entries):
    """(status, reason, message) of both."""
    found = summary(generation, {"replicas": list(entries)}, NOW)["conditions"]
    return [(each["status"], each["reason"], each["message"]) for each in found]


def test_all_replicas_use_it():
    """It is accepted and enforced."""
    assert conditions(2, entry("a", 2, USED), entry("b", 2, USED)) == [
        ("True", "Accepted", "the object has no error"),
        ("True", "Enforced", "all replicas use it"),
    ]


def test_a_replica_that_has_not_reported_is_named():
    """The state is not known, and never enforced."""
    waiting = "not reported by 1 of 2 replicas: b"
    assert conditions(2, entry("a", 2, USED), entry("b", 1, USED)) == [
        ("Unknown", "Pending", waiting),
        ("False", "Pending", waiting),
    ]


def test_an_error_counts_whoever_found_it():
    """With its message, and the name of the replica."""
    assert conditions(2, entry("a", 2, USED), entry("b", 2, BROKEN)) == [
        ("False", "Invalid", "policies: Required value"),
        ("False", "Invalid", "1 of 2 replicas do not use it; b: policies: Required value"),
    ]


def test_a_worker_that_is_away_is_no_error_of_the_object():
    """It is accepted, and not enforced."""
    accepted, enforced = conditions(1, entry("a", 1, AWAY))
    assert (accepted[:2], enforced[:2]) == (("True", "Accepted"), ("False", "Unavailable"))


def test_what_follows_already_is_not_written():
    """Replicas that look at the same entries agree, whoever wrote."""
    status = {"replicas": [entry("a", 1, USED)]}
    status |= summary(1, status, NOW)
    assert summary(1, status, LATER) is None


def test_a_transition_has_the_time_of_its_status():
    """Not of its reason or generation."""
    status = {"replicas": [entry("a", 1, USED)]}
    status |= summary(1, status, NOW)
    status["replicas"] = [entry("a", 2, AWAY)]
    accepted, enforced = summary(2, status, LATER)["conditions"]
    assert (accepted["lastTransitionTime"], enforced["lastTransitionTime"]) == (NOW, LATER)


def test_a_message_is_cut():
    """The definition has a limit."""
    assert len(entry("a", 1, Finding(reason=INVALID, message="x" * 5000))["message"]) == MAX_MESSAGE
