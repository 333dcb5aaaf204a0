"""Refusals of Redis are recorded by command, until the command succeeds again."""

from redis import exceptions

from gateway.caching.refusals import Refusals

GET, SET = ("GETRANGE", "n", 0, 9), ("SET", "n", b"")
FULL = exceptions.OutOfMemoryError("hunter2")


def test_a_kind_is_refused_where_one_of_a_pipeline_is():
    """Of a cluster, one node may be full; the other kind that was done is not refused."""
    refusals = Refusals("redis")
    refusals.note([SET, SET, GET], [True, FULL, b""])
    assert list(refusals.now) == ["SET"]
    refusals.note([GET], [b""])
    assert list(refusals.now) == ["SET"]
    refusals.note([SET], [True])
    assert refusals.now == {}


def test_what_is_lost_is_not_refused():
    """An unreachable node neither records nor clears a refusal."""
    refusals = Refusals("redis")
    refusals.note([SET], [exceptions.ConnectionError("gone")])
    assert refusals.now == {}
    refusals.note([SET], [FULL])
    refusals.note([SET], [exceptions.ConnectionError("gone")])
    assert list(refusals.now) == ["SET"]


def test_the_log_says_it_once_while_up(logs):
    """For each command and reason; never in Redis' own words. After the link came up, once more."""
    refusals = Refusals("redis")
    for _ in range(2):
        refusals.note([SET, GET], [FULL, FULL])
        refusals.note([SET], [True])
    assert [entry["command"] for entry in logs] == ["SET", "GETRANGE"]
    refusals.renew()
    refusals.note([SET], [FULL])
    assert [entry["command"] for entry in logs] == ["SET", "GETRANGE", "SET"]
    assert "hunter2" not in str(logs)
