"""The pending deliveries of a consumer, in any order of events."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.transports.proto.admission.queue.v1 import queue_pb2 as q
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from gateway.transports.queue import pending_deliveries as module
from gateway.transports.queue.pending_deliveries import Key, PendingDeliveries, PendingEntry

STEPS = st.lists(
    st.tuples(st.sampled_from(["receive", "answer", "refuse", "drop", "write", "remove"]), st.integers(0, 5)),
    max_size=60,
)


def key(number, deadline=1):
    return Key("g", b"%d" % number, deadline)


def reply(number, size=1):
    return q.Reply(id=b"%d" % number, verdict=pb.Outcome(version="v" * size))


class Played:
    """PendingDeliveries, and a model of what they contain."""

    def __init__(self):
        self.deliveries = PendingDeliveries(1000, 1000)
        self.came, self.done, self.called, self.open = 0, [], [], []

    def _entry(self):
        self.came += 1
        return PendingEntry("lane", b"%d" % (self.came - 1))

    def receive(self, number):
        entry = self._entry()
        if not self.deliveries.repeat(key(number), entry, 0.0):
            self.deliveries.take(key(number), entry, until=10.0, size=7)
            self.called.append(number)
            self.open.append(number)

    def refuse(self, number):
        self.deliveries.put(key(100 + self.came), self._entry(), reply(number), 10.0)

    def drop(self, number):
        self.deliveries.drop(self._entry())

    def answer(self, number):
        if self.open:
            self.deliveries.answer(key(self.open.pop(number % len(self.open))), reply(number), 0.0)

    def write(self, number):
        due = self.deliveries.due(number * 10)
        self.done += [entry for answer in due for entry in answer.entries]
        self.deliveries.done(due)

    def remove(self, number):
        removed = self.deliveries.dropped(number)
        self.done += removed
        self.deliveries.removed(removed)

    def end(self):
        while self.open:
            self.answer(0)
        while self.deliveries.due(1):
            self.write(100)
        self.remove(1000)


@pytest.mark.property
@given(STEPS)
def test_every_entry_is_done_once(steps):
    """Each entry is in hand until it is written or removed; the bytes end at zero; no call reaches a worker twice."""
    played = Played()
    for step, number in steps:
        getattr(played, step)(number)
        assert len(played.deliveries.entries) == played.came - len(played.done)
        assert played.deliveries.in_flight == len(played.open)
    played.end()
    assert sorted(played.done) == sorted(PendingEntry("lane", b"%d" % index) for index in range(played.came))
    assert len(played.called) == len(set(played.called))
    assert (played.deliveries.bytes, played.deliveries.in_hand, played.deliveries.is_empty) == (0, 0, True)


def test_room():
    """Calls at the worker and unwritten replies are limited in number and bytes."""
    deliveries = PendingDeliveries(3, 100)
    assert deliveries.room == 3
    deliveries.take(key(1), PendingEntry("l", b"1"), until=1.0, size=10)
    deliveries.put(key(2), PendingEntry("l", b"2"), reply(2), 1.0)
    assert deliveries.room == 1
    deliveries.answer(key(1), reply(1, 200), 0.0)
    assert deliveries.room == 0
    deliveries.done(deliveries.due(1000))
    assert deliveries.room == 3


def test_what_is_due_is_bounded_in_bytes():
    """The oldest replies come first, and at least one."""
    deliveries = PendingDeliveries(10, 1000)
    for number in range(4):
        deliveries.put(key(number), PendingEntry("l", b"%d" % number), reply(number, 100), 1.0)
    assert [answer.key for answer in deliveries.due(1)] == [key(0)]
    assert [answer.key for answer in deliveries.due(230)] == [key(0), key(1)]


def test_late_answers():
    """Replies are late when their deadline is over, in any order."""
    deliveries = PendingDeliveries(10, 1000)
    for number, until in enumerate((5.0, 1.0, 3.0)):
        deliveries.put(key(number), PendingEntry("l", b"%d" % number), reply(number), until)
    late = deliveries.late(3.0)
    assert [answer.key for answer in late] == [key(1), key(2)]
    deliveries.done(late)
    assert [answer.key for answer in deliveries.due(1000)] == [key(0)]


def test_an_answer_is_remembered_until_its_deadline():
    """A reply is remembered until its deadline, and only for the same call."""
    deliveries = PendingDeliveries(10, 1000)
    deliveries.take(key(1), PendingEntry("l", b"1"), until=5.0, size=1)
    deliveries.answer(key(1), reply(1), 0.0)
    deliveries.done(deliveries.due(1))
    assert not deliveries.repeat(key(1, deadline=2), PendingEntry("l", b"2"), 1.0)
    assert deliveries.repeat(key(1), PendingEntry("l", b"3"), 4.0)
    assert [answer.reply for answer in deliveries.due(1)] == [reply(1)]
    assert not deliveries.repeat(key(1), PendingEntry("l", b"4"), 5.0)


def test_what_is_remembered_is_bounded(monkeypatch):
    """Remembered replies are limited in number, in bytes, and in size each."""
    monkeypatch.setattr(module, "REMEMBERED", 3)
    monkeypatch.setattr(module, "REMEMBERED_BYTES", 900)
    monkeypatch.setattr(module, "LONGEST_REMEMBERED", 500)
    deliveries = PendingDeliveries(100, 1_000_000)

    def answered(number, size):
        deliveries.take(key(number), PendingEntry("l", b"%d" % number), until=9.0, size=1)
        deliveries.answer(key(number), reply(number, size), 0.0)

    def known():
        return [
            number for number in range(20) if deliveries.repeat(key(number), PendingEntry("x", b"%d" % number), 1.0)
        ]

    for number in range(5):
        answered(number, 1)
    assert known() == [2, 3, 4]
    answered(5, 600)
    assert known() == [2, 3, 4]
    answered(6, 480)
    answered(7, 480)
    assert known() == [7]
