"""What a review pays for traces if it is not sampled: microseconds of CPU, in place.

One gateway serves in this process, over TLS, with a gRPC worker in a process of its own; a client in another sends one
recorded review after the other. Of ten reviews, drawn for each, eight are traced and not sampled, as all are in a
gateway that traces; two pass on what the API server sent, which is nothing, as without traces. A review's cost is the
CPU time of this process, all threads, from where its trace begins to where that of the next one does. So both kinds
meet the same machine and the same caches, and their means differ by what traces cost among everything else that a
review does. Of each kind the tenth that took longest is left out: something interrupted it.

A client that waits for each answer makes that the dearest case: the gateway has slept before each review, and most of
what it needs has left the processor's caches. The interval is that of one run on a quiet machine; beside other work it
is too narrow.

``control`` is one of the two that are not traced, against the other: noise. Exit 2 if it is more than 1 µs, or a 95 %
interval wider than 1 µs to a side; else 1 if a review that is not sampled pays more than 3 µs. ``make bench-observe``
runs it first; alone: ``python benchmarks/not_sampled.py --reviews 100000``.
"""

import argparse
import asyncio
import io
import json
import math
import os
import random
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import uvloop
from msgspec.structs import replace
from path import connected
from reviews import CONFIGURATION, WORKER, loads
from served import children, here, pin, request

from gateway.engine.trace_context import Parent, TraceContext
from gateway.serving.route_table import passed_on
from gateway.telemetry.logs import configure_logs
from gateway.telemetry.traces.sampling import HeadSampler
from gateway.telemetry.traces.settings import trace_settings

MOST_MICROSECONDS = 3.0
MOST_NOISE = 1.0
LEFT_OUT = 0.1
WARM_UP = 500
OFF, CONTROL, TRACED = "off", "control", "not sampled"
KINDS = (OFF, CONTROL, TRACED)
WEIGHTS = (1, 1, 8)

CLIENT = """
import sys
from pathlib import Path
from not_sampled import send
send(int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
"""


@dataclass(frozen=True)
class Difference:
    """Of the means of two kinds, in microseconds, with half of its 95 % interval."""

    value: float
    margin: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ± {self.margin:.2f} µs"


def main() -> None:
    """Run the benchmark, print it, and exit with 1 if the limit is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reviews", type=int, default=150_000, help="in all (default 150,000: two to three minutes)")
    parser.add_argument("-o", "--output", choices=["text", "json"], default="text")
    arguments = parser.parse_args()
    stop_logs = configure_logs(stream=io.StringIO())
    with tempfile.TemporaryDirectory() as folder:
        costs = uvloop.run(measured(Path(folder), arguments.reviews))
    stop_logs()
    off = costs[OFF]
    found = {CONTROL: difference(costs[CONTROL], off), TRACED: difference(costs[TRACED], off + costs[CONTROL])}
    if arguments.output == "json":
        document = {kind: vars(each) for kind, each in found.items()}
        print(json.dumps({"off_us": statistics.fmean(off), **document}, indent=1))
    else:
        print(f"CPU of a review without traces: {statistics.fmean(off):.1f} µs ({len(off)} reviews)")
        for kind, each in found.items():
            print(f"{kind}: {each} more")
    control, traced = found[CONTROL], found[TRACED]
    if abs(control.value) > MOST_NOISE or max(control.margin, traced.margin) > MOST_NOISE:
        print("no verdict: the machine is too noisy, or there are too few reviews", file=sys.stderr)
        sys.exit(2)
    if traced.value > MOST_MICROSECONDS:
        print(f"a review that is not sampled pays {traced}, the limit is {MOST_MICROSECONDS} µs", file=sys.stderr)
        sys.exit(1)


class Coin:
    """A sampler that traces some of the reviews, and measures what each of them costs."""

    def __init__(self, sampler: HeadSampler) -> None:
        self.costs: dict[str, list[float]] = {kind: [] for kind in KINDS}
        self._begin = sampler.begin
        self._costs: list[float] = []  # of the review before, which the first has not
        self._since = 0

    def begin(self, parent: Parent | None) -> TraceContext:
        """The trace of a review, or what goes on without traces."""
        self._costs.append((time.process_time_ns() - self._since) / 1000)
        (kind,) = random.choices(KINDS, WEIGHTS)  # noqa: S311 - statistics
        self._costs, self._since = self.costs[kind], time.process_time_ns()
        return self._begin(parent) if kind is TRACED else passed_on(parent)


async def measured(folder: Path, reviews: int) -> dict[str, list[float]]:
    """The microseconds of each review, by kind."""
    settings = trace_settings({}, endpoint="http://127.0.0.1:4317", ratio=0.0)
    assert settings is not None
    coin = Coin(settings.sampler)
    traces = replace(settings, sampler=coin)
    gateway = here(folder, CONFIGURATION, WORKER, max_connection_age_seconds=0, traces=traces)
    (_, port), _ = await gateway.start()
    pin(os.getpid(), 0)
    pin(children(os.getpid())[0], -1)
    client = begun(port, folder / "ca.crt", reviews)
    while client.poll() is None:
        print(f"\r{sum(map(len, coin.costs.values()))} of {reviews} reviews ", end="", file=sys.stderr)
        await asyncio.sleep(1)
    print("\r" + " " * 40 + "\r", end="", file=sys.stderr)
    await gateway.stop(drain=False)
    assert client.returncode == 0, "the client ended with an error"
    return {kind: kept(costs[WARM_UP:]) for kind, costs in coin.costs.items()}


def begun(port: int, authority: Path, reviews: int) -> "subprocess.Popen[bytes]":
    """The client, in a process of its own."""
    arguments = (str(port), str(authority), str(reviews))
    client = subprocess.Popen([sys.executable, "-c", CLIENT, *arguments], cwd=Path(__file__).parent)
    pin(client.pid, -1)
    return client


def send(port: int, authority: Path, reviews: int) -> None:
    """Send so many reviews, each when the answer to the one before is there."""
    load = next(load for load in loads() if load.name == "validating, one policy")
    message = request(load)
    client = connected(("127.0.0.1", port), ssl.create_default_context(cafile=authority))
    for _ in range(reviews):
        client.sendall(message)
        answer = b""
        while load.expected not in answer:
            piece = client.recv(65_536)
            assert piece, answer
            answer += piece


def kept(costs: list[float]) -> list[float]:
    """Without those that took longest."""
    return sorted(costs)[: round(len(costs) * (1 - LEFT_OUT))]


def difference(costs: list[float], off: list[float]) -> Difference:
    """Of two kinds."""
    variance = sum(statistics.variance(each) / len(each) for each in (costs, off))
    return Difference(statistics.fmean(costs) - statistics.fmean(off), 1.96 * math.sqrt(variance))


if __name__ == "__main__":
    main()
