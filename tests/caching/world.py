"""Workers that answer when the test decides, reviews that wait, and a clock that the test sets."""

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gateway.caching.cache import VerdictCache
from gateway.caching.caller import CachingCaller
from gateway.caching.limits import CacheLimits
from gateway.documents.documents import hashed
from gateway.documents.verdict_key import key_prefix
from gateway.engine.answer_source import CALLED, Origin, Source
from gateway.engine.policy_call import PolicyCall
from gateway.engine.verdicts import Allow, Answer, Verdict
from gateway.policies.model import Cache, Phase
from gateway.redis.faults import RedisFault
from gateway.telemetry.labels import LookupResult
from gateway.telemetry.table import (
    CACHE_LOOKUPS,
    CACHE_MEMORY_BYTES,
    CACHE_PURGED_POLICIES,
    CACHE_REDIS_ERRORS,
    CACHE_REDIS_SKIPPED,
    CACHE_SEAL_FAILURES,
)
from tests.world import policy

START = 1_700_000_000.0
IDS = itertools.count(1)
WAIT_SECONDS = 60
"""Seconds. A Sentinel that has stood still for two seconds looks on for thirty, and does nothing (TILT)."""


def policy_call(document: str = "{}", *, name: str = "p", phase: Phase = Phase.VALIDATING, **fields: Any) -> PolicyCall:
    """A call of policy NAME with a document; cached for 60 s by default."""
    defaults: dict[str, Any] = {
        "id": next(IDS),
        "policy": policy(name, phase=phase),
        "document": hashed(document.encode()),
        "deadline": 1e12,
        "uid": "u1",
        "cancellable": True,
        "version": "1",
        "cache": Cache(ttl=60.0),
    }
    given = defaults | fields
    given["key_prefix"] = key_prefix(phase=phase, identity=given.pop("identity", b"i"), version=given["version"])
    return PolicyCall(**given)


@dataclass
class Clock:
    """Seconds since 1970."""

    now: float = START

    def __call__(self) -> float:
        return self.now


@dataclass
class Events:
    """Counts everything."""

    results: Counter[LookupResult] = field(default_factory=Counter)
    faults: Counter[RedisFault] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    sizes: tuple[int, int] = (0, 0)

    def count(self, metric, *labels, amount=1):
        if metric is CACHE_LOOKUPS:
            self.results[labels[-1]] += amount
        elif metric is CACHE_REDIS_ERRORS:
            self.faults[labels[0]] += amount
        else:
            word = {CACHE_SEAL_FAILURES: "seal_failed", CACHE_PURGED_POLICIES: "purged"}.get(metric) or labels[0].value
            self.counts[word] += amount

    def set(self, metric, value):
        if metric is CACHE_REDIS_SKIPPED:
            self.counts["skipped" if value else "used"] += 1
        elif metric is CACHE_MEMORY_BYTES:
            self.sizes = value, self.sizes[1]
        else:
            self.sizes = self.sizes[0], value


@dataclass
class Reply:
    """A review that waits for one answer."""

    answers: list[tuple[Answer, Origin]] = field(default_factory=list)
    fallbacks: list[tuple[Verdict, Origin]] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    then: Callable[[], object] = lambda: None

    def answered(self, call: PolicyCall, answer: Answer, origin: Origin = CALLED) -> None:
        self.answers.append((answer, origin))
        self.arrived.set()
        self.then()

    def fallback(self, call: PolicyCall, verdict: Verdict, origin: Origin) -> None:
        assert not self.answers, "a fallback after the answer"
        self.fallbacks.append((verdict, origin))

    @property
    def only(self) -> tuple[Answer, Source]:
        """The one answer, and where it came from."""
        assert len(self.answers) == 1, self.answers
        return self.answers[0][0], self.answers[0][1].source

    async def wait(self) -> tuple[Answer, Source]:
        """The one answer; a test that waits so long has failed."""
        async with asyncio.timeout(WAIT_SECONDS):
            await self.arrived.wait()
        return self.only


@dataclass
class Workers:
    """Keeps calls open until a test answers them, or answers with ``verdict`` at once."""

    verdict: Callable[[PolicyCall], Answer] | Answer | None = None
    agreed: bool = True
    calls: list[PolicyCall] = field(default_factory=list)
    open: dict[int, Any] = field(default_factory=dict)
    cancelled: list[int] = field(default_factory=list)
    disagreements: list[str] = field(default_factory=list)

    def known(self, policy_call: PolicyCall) -> None:
        return None

    def call(self, policy_call: PolicyCall, reply: Any) -> Callable[[], object]:
        self.calls.append(policy_call)
        self.open[policy_call.id] = reply
        if self.verdict is not None:
            verdict = self.verdict(policy_call) if callable(self.verdict) else self.verdict
            asyncio.get_running_loop().call_soon(self.answer, policy_call, verdict)
        return lambda: self._cancel(policy_call)

    def answer(self, policy_call: PolicyCall, answer: Answer) -> None:
        reply = self.open.pop(policy_call.id, None)
        if reply is not None:
            reply.answered(policy_call, answer)

    def settled(self, policy_call: PolicyCall) -> bool:
        return self.agreed

    def disagreed(self, policy_call: PolicyCall, version: str) -> None:
        self.disagreements.append(version)

    def _cancel(self, policy_call: PolicyCall) -> None:
        if self.open.pop(policy_call.id, None) is not None:
            self.cancelled.append(policy_call.id)


class Gateway:
    """One process: its cache, and workers that answer ``verdict`` (None: the test answers)."""

    def __init__(self, verdict: Any = None, *, limits: CacheLimits | None = None, redis: Any = None, now: Any = None):
        self.clock = now or Clock()
        self.events = Events()
        self.limits = limits or CacheLimits()
        self.workers = Workers(verdict)
        self.store = redis(self.limits, self.events, self.clock) if redis is not None else None
        self.cache = VerdictCache(self.limits, self.events, self.store, self.clock)
        self.policy_caller = CachingCaller(self.workers, self.cache)

    def put(self, call: PolicyCall) -> tuple[Reply, Callable[[], object]]:
        """Make a call as the driver does; the answer comes later."""
        reply = Reply()
        known = self.policy_caller.known(call)
        if known is not None:
            reply.answered(call, *known)
            return reply, lambda: None
        return reply, self.policy_caller.call(call, reply)

    async def answer(self, call: PolicyCall) -> tuple[Answer, Source]:
        """Make a call and wait for its answer."""
        return await self.put(call)[0].wait()


async def turns(count: int = 5) -> None:
    """Let everything happen that is due."""
    for _ in range(count):
        await asyncio.sleep(0)


async def until(condition: Callable[[], object]) -> None:
    """Wait until something holds that another process brings about; a test that waits so long has failed."""
    async with asyncio.timeout(WAIT_SECONDS):
        while not condition():  # noqa: ASYNC110 - another process causes it, so no Event can be set
            await asyncio.sleep(0.005)


ALLOW = Allow()
