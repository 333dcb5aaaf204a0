"""The status of an object: a function of what its replicas report."""

import asyncio

from gateway.cluster.errors import ApiError
from gateway.cluster.policy_objects import PolicyObject
from gateway.cluster.policy_status import (
    ENFORCED,
    GONE_SECONDS,
    INVALID,
    MAX_MESSAGE,
    UNAVAILABLE,
    Finding,
    StatusWriter,
    entry,
    summary,
)
from gateway.policies.decoding.texts import SourceText
from tests.cluster import virtual_time

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
    """Replicas that look at the same entries agree, no matter which of them wrote."""
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


def test_messages_of_another_version_are_not_overwritten_by_all():
    """Only one replica words the messages; all write what a condition is."""
    status = {"replicas": [entry("a", 1, USED)]}
    status |= summary(1, status, NOW)
    for condition in status["conditions"]:
        condition["message"] = "worded by another version"
    assert summary(1, status, LATER, words=False) is None
    assert summary(1, status, LATER, words=True)["conditions"][0]["message"] == "the object has no error"
    status["replicas"].append(entry("b", 1, AWAY))
    assert [each["reason"] for each in summary(1, status, LATER, words=False)["conditions"]] == [
        "Accepted",
        AWAY.reason,
    ]


def test_conditions_of_another_version_are_kept():
    """One of a type that this version does not know is no reason to write, and stays when something else is."""
    status = {"replicas": [entry("a", 1, USED)]}
    status |= summary(1, status, NOW)
    newer = {"type": "Newer", "status": "True", "reason": "R", "message": "", "lastTransitionTime": NOW}
    status["conditions"].append(newer)
    assert summary(1, status, LATER) is None
    status["replicas"] = [entry("a", 2, AWAY)]
    assert summary(2, status, LATER)["conditions"][2:] == [newer]


def test_an_entry_of_another_version_is_read():
    """With a reason that this version does not know, with fields that it does not know, and without a message."""
    newer = {"name": "n", "observedGeneration": 1, "reason": "Newer", "newer": [1]}
    assert conditions(1, newer, entry("a", 1, USED)) == [
        ("True", "Accepted", "the object has no error"),
        ("False", "Newer", "1 of 2 replicas do not use it; n: "),
    ]


def test_a_message_is_cut():
    """The definition has a limit."""
    assert len(entry("a", 1, Finding(reason=INVALID, message="x" * 5000))["message"]) == MAX_MESSAGE


class Store:
    """One object, and what replicas apply to its status: each manager's entry, and the conditions."""

    def __init__(self, *entries, generation):
        self.generation = generation
        self.entries = {f"admission-gateway/{each['name']}": each for each in entries}
        self.conditions = {}
        self.writes = []
        self.error = None

    @property
    def object(self):
        status = {"replicas": list(self.entries.values())} | self.conditions if self.entries else None
        text = SourceText(name="Worker/labels", content=b"", in_cluster=True)
        return PolicyObject(kind="Worker", name="labels", text=text, generation=self.generation, status=status)

    async def apply(self, path, body, *, manager):
        assert path == "/apis/admission-gateway.dev/v1alpha1/workers/labels/status"
        if self.error is not None:
            raise self.error
        self.writes.append(manager)
        status = body.get("status", {})
        if manager == "admission-gateway":
            self.conditions = status
        elif status:
            (self.entries[manager],) = status["replicas"]
        else:
            self.entries.pop(manager, None)

    def writer(self, replica):
        return StatusWriter(
            self, replica=replica, objects=lambda: [self.object], findings=lambda: {"Worker/labels": USED}
        )


def names(store):
    return [each["name"] for each in store.object.status["replicas"]]


async def during(writer, look):
    """What ``look`` returns while the writer runs; it is cancelled then."""
    writing = asyncio.create_task(writer.run())
    found = await look()
    writing.cancel()
    await asyncio.gather(writing, return_exceptions=True)
    return found


def test_a_replica_that_is_gone_is_removed_after_a_change():
    """Others remove its entry when it has not reported the change for so long; before, it keeps it."""
    store = Store(entry("gone", 1, USED), generation=2)

    async def look():
        await asyncio.sleep(GONE_SECONDS / 2)
        before = names(store)
        await asyncio.sleep(GONE_SECONDS + 120)
        return before, names(store), store.conditions["conditions"][1]["status"]

    assert virtual_time.run(during(store.writer("a"), look)) == (["gone", "a"], ["a"], "True")


def test_a_replica_that_stops_removes_its_entry():
    """And no other."""
    store = Store(entry("b", 1, USED), generation=1)

    async def look():
        await asyncio.sleep(100)
        return names(store)

    assert virtual_time.run(during(store.writer("a"), look)) == ["b", "a"]
    assert names(store) == ["b"]


def test_nothing_is_written_while_nothing_changes():
    """An hour has one entry, and the conditions."""
    store = Store(generation=1)

    async def look():
        await asyncio.sleep(3600)
        return list(store.writes)

    assert virtual_time.run(during(store.writer("a"), look)) == ["admission-gateway/a", "admission-gateway"]


def test_a_write_that_fails_is_tried_again():
    """The problem is known meanwhile."""
    store = Store(generation=1)
    store.error = ApiError("PATCH", 403, "Forbidden", 'cannot patch resource "workers/status"')
    writer = store.writer("a")

    async def look():
        await asyncio.sleep(100)
        problem, store.error = writer.problem, None
        await asyncio.sleep(100)
        return problem, writer.problem, names(store)

    problem, later, found = virtual_time.run(during(writer, look))
    assert "workers/status" in problem
    assert (later, found) == (None, ["a"])
