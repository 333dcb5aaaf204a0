"""What the cache stores, for how long, and for which calls: a hit is a fresh verdict of an equal call."""

import pytest

from gateway.caching.limits import CacheLimits
from gateway.engine.answer_source import Source
from gateway.engine.verdicts import Allow, Change, ChangeKind, Deny, Failure
from gateway.policies.model import Cache, Phase
from gateway.reasons import Reason
from gateway.telemetry.labels import LookupResult
from tests.caching.world import ALLOW, Gateway, policy_call, turns

DENY = Deny(code=409, message="no", reason="Conflict", details={"causes": [{"field": "a"}]}, warnings=("w",))
PATCHED = Allow(
    change=Change(kind=ChangeKind.MERGE_PATCH, content=b'{"a":1}'), audit_annotations={"k": "v"}, version="1"
)


@pytest.mark.parametrize("verdict", [ALLOW, DENY, PATCHED])
async def test_a_verdict_is_kept_whole(verdict):
    """Allow, deny and patch come from memory unchanged, with their age."""
    gateway = Gateway(verdict)
    assert await gateway.answer(policy_call()) == (verdict, Source.CALLED)
    gateway.clock.now += 7
    reply, _ = gateway.put(policy_call())
    assert reply.only == (verdict, Source.MEMORY)
    assert reply.answers[0][1].age == 7
    assert gateway.events.results == {LookupResult.MISS: 1, LookupResult.MEMORY: 1}
    assert gateway.events.counts == {"stored": 1}


@pytest.mark.parametrize(
    "verdict",
    [Failure(reason=Reason.WORKER_FAILURE, message="no"), Allow(reuse=0), Deny(reuse=0), Allow(version="2")],
)
async def test_what_is_never_kept(verdict):
    """A failure, a verdict with no-store, and one of another version are not stored."""
    gateway = Gateway(verdict)
    for _ in range(2):
        assert await gateway.answer(policy_call()) == (verdict, Source.CALLED)
    assert gateway.events.sizes == (0, 0)


@pytest.mark.parametrize(
    ("cache", "reuse", "lives"),
    [(Cache(ttl=60), None, 60), (Cache(ttl=60), 5, 5), (Cache(ttl=60), 600, 60), (Cache(ttl=0.5), None, 0.5)],
)
async def test_how_long(cache, reuse, lives):
    """A verdict is fresh for ttl, or for the worker's hint where that is shorter, and not an instant longer."""
    gateway = Gateway(Allow(reuse=reuse))
    call = policy_call(cache=cache)
    await gateway.answer(call)
    gateway.clock.now += lives - 0.1
    assert gateway.policy_caller.known(call) is not None
    gateway.clock.now += 0.1
    assert gateway.policy_caller.known(call) is None


async def test_age_counts_from_the_calling():
    """A worker that took ten seconds may have looked at the world when they began: its verdict is ten seconds old."""
    gateway = Gateway()
    gateway.put(policy_call())
    gateway.clock.now += 10
    gateway.workers.answer(gateway.workers.calls[0], ALLOW)
    known = gateway.policy_caller.known(policy_call())
    assert known is not None
    assert known[1].age == 10


async def test_another_ttl_flushes_nothing():
    """The reader's ttl decides: what is too old under one configuration is fresh under another."""
    gateway = Gateway(ALLOW)
    await gateway.answer(policy_call(cache=Cache(ttl=10, stale_if_error=1000)))
    gateway.clock.now += 100
    assert gateway.policy_caller.known(policy_call(cache=Cache(ttl=10))) is None
    assert gateway.policy_caller.known(policy_call(cache=Cache(ttl=200))) is not None


async def test_stale_is_a_fallback():
    """Past its ttl but within staleIfError a verdict is handed over before the worker answers, never as the answer."""
    gateway = Gateway()
    gateway.workers.verdict = DENY
    call = policy_call(cache=Cache(ttl=10, stale_if_error=100))
    await gateway.answer(call)
    gateway.workers.verdict = None
    gateway.clock.now += 50
    reply, _ = gateway.put(call)
    assert not reply.fallbacks, "never inside call"
    await turns()
    assert [(verdict, origin.source, origin.age) for verdict, origin in reply.fallbacks] == [(DENY, Source.STALE, 50)]
    assert not reply.answers
    gateway.workers.answer(gateway.workers.calls[-1], ALLOW)
    assert reply.only == (ALLOW, Source.CALLED)
    assert gateway.policy_caller.known(call) is not None, "the new verdict is kept"


async def test_stale_has_an_end():
    """Past ttl and staleIfError together, nothing is handed over."""
    gateway = Gateway()
    gateway.workers.verdict = DENY
    call = policy_call(cache=Cache(ttl=10, stale_if_error=100))
    await gateway.answer(call)
    gateway.workers.verdict = None
    gateway.clock.now += 110
    reply, _ = gateway.put(call)
    await turns()
    assert not reply.fallbacks
    assert gateway.events.results == {LookupResult.MISS: 1, LookupResult.EXPIRED: 1}


async def test_a_hint_shortens_staleness_too():
    """staleIfError begins where the worker's hint ends."""
    gateway = Gateway()
    gateway.workers.verdict = Deny(reuse=5)
    call = policy_call(cache=Cache(ttl=60, stale_if_error=10))
    await gateway.answer(call)
    gateway.workers.verdict = None
    gateway.clock.now += 15
    reply, _ = gateway.put(call)
    await turns()
    assert not reply.fallbacks


async def test_mixed_versions_pass_the_cache_by():
    """While live connections report different versions, the cache is neither read nor written nor shared."""
    gateway = Gateway(ALLOW)
    await gateway.answer(policy_call())
    gateway.workers.agreed = False
    for _ in range(2):
        assert await gateway.answer(policy_call()) == (ALLOW, Source.CALLED)
    gateway.workers.verdict = None
    gateway.put(policy_call("[1]"))
    gateway.put(policy_call("[1]"))
    assert len(gateway.workers.calls) == 5
    assert gateway.events.results[LookupResult.BYPASS] == 4


async def test_versions_that_part_while_called():
    """A verdict that comes after the connections came to differ is not kept."""
    gateway = Gateway()
    reply, _ = gateway.put(policy_call())
    gateway.workers.agreed = False
    gateway.workers.answer(gateway.workers.calls[0], ALLOW)
    assert reply.only == (ALLOW, Source.CALLED)
    assert gateway.events.sizes == (0, 0)


async def test_another_version_is_reported():
    """An answer of another version is reported to the workers by its review; if that has left, by the cache."""
    gateway = Gateway()
    gateway.put(policy_call())
    gateway.workers.answer(gateway.workers.calls[0], Allow(version="2"))
    assert gateway.workers.disagreements == []
    _, leave = gateway.put(policy_call())
    gateway.put(policy_call())
    leave()
    gateway.workers.answer(gateway.workers.calls[1], Allow(version="3"))
    assert gateway.workers.disagreements == ["3"]
    gateway.policy_caller.disagreed(policy_call(), "4")
    assert gateway.workers.disagreements == ["3", "4"]


async def test_an_equal_call_of_another_policy_name():
    """A verdict belongs to the policy that called, so that it can be purged with it."""
    gateway = Gateway(ALLOW)
    await gateway.answer(policy_call())
    assert gateway.policy_caller.known(policy_call(name="q")) is None
    assert gateway.policy_caller.known(policy_call(phase=Phase.MUTATING)) is None


async def test_purge_drops_and_goes_on_dropping():
    """After a purge no verdict from before it is used, even one that comes later; other policies keep theirs."""
    gateway = Gateway(ALLOW)
    await gateway.answer(policy_call())
    await gateway.answer(policy_call(name="q"))
    gateway.workers.verdict = None
    gateway.put(policy_call("[1]"))
    assert await gateway.cache.purge(["test/p.test.example.com"]) is None
    gateway.workers.answer(gateway.workers.calls[-1], ALLOW)
    assert gateway.policy_caller.known(policy_call()) is None
    assert gateway.policy_caller.known(policy_call("[1]")) is None
    assert gateway.policy_caller.known(policy_call(name="q")) is not None
    assert gateway.events.sizes[1] == 1
    gateway.clock.now += gateway.limits.clock_skew_seconds + 1
    gateway.workers.verdict = ALLOW
    await gateway.answer(policy_call())
    assert gateway.policy_caller.known(policy_call()) is not None, "a verdict of a later call is stored again"


async def test_a_clock_that_goes_back():
    """A verdict from further in the future than clocks may differ is not used."""
    gateway = Gateway(ALLOW)
    await gateway.answer(policy_call())
    gateway.clock.now -= gateway.limits.clock_skew_seconds
    known = gateway.policy_caller.known(policy_call())
    assert known is not None
    assert known[1].age == 0
    gateway.clock.now -= 1
    assert gateway.policy_caller.known(policy_call()) is None


async def test_no_entry_outlives_the_longest_age():
    """However long ttl and staleIfError are, there is an end that a purge can outlast."""
    gateway = Gateway(ALLOW, limits=CacheLimits(entry_seconds=100))
    call = policy_call(cache=Cache(ttl=1e9, stale_if_error=1e9))
    await gateway.answer(call)
    gateway.clock.now += 99
    assert gateway.policy_caller.known(call) is not None
    gateway.clock.now += 1
    assert gateway.policy_caller.known(call) is None


@pytest.mark.parametrize("verdict", [Allow(warnings=("x" * 2000,)), Deny(details={"n": 2**70})])
async def test_what_cannot_be_kept_is_answered_all_the_same(verdict):
    """A verdict that is too large, or that cannot be written down, reaches who called and is not kept."""
    gateway = Gateway(verdict, limits=CacheLimits(entry_bytes=1000))
    for _ in range(2):
        assert await gateway.answer(policy_call()) == (verdict, Source.CALLED)
    assert gateway.events.counts == {"too_large": 2}
