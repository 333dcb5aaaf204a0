"""What observing costs: CPU time per review with everything on, against everything off.

``everything`` is what a gateway in production has on: traces, exported by OTLP over gRPC, of 1 % of the reviews;
recordings of 1 % of them, encrypted, in files; the decision log in a file, at its default level, which has the reviews
that a policy denied or failed. Metrics with exemplars and decisions retained for ``explain`` are there in all kinds,
also in ``off``: they cannot be turned off. In each kind the worker is the Python SDK's with OpenTelemetry's API
installed, as in the image, and without a provider. ``and all logged`` has a line for each review besides, which is no
default, and is not held to the limit.

Each gateway has a worker in a process of its own, and there is an OTLP receiver that reads and forgets. The API server
sends no ``traceparent``: without traces the worker gets none, with them one for each review. Each
gateway is loaded for a part of the time only, and exports all the time: that costs more, not less.

A machine that others share is faster in one second than in the next. So the gateways of all kinds run at once, and in
each round every one of them is loaded for a fifth of a second, in an order that changes; gateways have one core,
workers and the load another. What a kind has cost is all CPU time of its process in all rounds, in nanoseconds and with
all its threads, also while another kind is loaded, when spans may go and files be written, divided by all its reviews.
Two processes of one kind differ by some per cent, so all of them are started anew several times.

A window cannot show microseconds: what a review that is not sampled pays for traces is shown by ``not_sampled.py``.

``off again`` is a second gateway with everything off. If its ratio is more than 3 % from 1, or the 95 % interval of a
ratio that is judged wider than 3 % to a side, the machine is too noisy for a verdict: exit code 2.

Exit code 1: ``everything`` costs more than 10 % above ``off``, in the gateway or in gateway and worker together.
``make bench-observe``; ``ARGS="--rounds 200"`` for steadier figures.
"""

import argparse
import asyncio
import json
import os
import random
import ssl
import subprocess
import sys
import tempfile
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvloop
from reviews import CONFIGURATION, WORKER, loads
from served import CONNECTIONS, CORES, Load, children, pin, request, send, start

MOST_RATIO = 1.10
"""Of ``everything`` to ``off``."""

MOST_NOISE = 0.03
"""Of ``off again`` to ``off``, from 1, and of each end of an interval from its ratio: a third of what ``everything``
may cost."""

WARM_UP = 5
"""Rounds that do not count, after each start."""

RESAMPLED = 2_000
"""How often the rounds are drawn again for the interval."""

SINK = """
from concurrent import futures
import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as pb, trace_service_pb2_grpc as service

class Sink(service.TraceServiceServicer):
    def Export(self, request, context):
        return pb.ExportTraceServiceResponse()

server = grpc.server(futures.ThreadPoolExecutor(2))
service.add_TraceServiceServicer_to_server(Sink(), server)
print(server.add_insecure_port("127.0.0.1:0"), flush=True)
server.start()
server.wait_for_termination()
"""

ENVIRONMENT = {
    "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
    "PYTHONHASHSEED": "0",
}

TRACES = ("--traces-endpoint", "ENDPOINT", "--traces-sample-ratio")
EVERYTHING = (
    *(*TRACES, "0.01"),
    *("--recording-dir", "recordings", "--recording-key-file", "key", "--recording-sample-ratio", "0.01"),
    *("--decision-log", "decisions.log"),
)
OFF, CONTROL, JUDGED = "off", "off again", "everything"
KINDS = {
    OFF: (),
    CONTROL: (),
    JUDGED: EVERYTHING,
    "traces, not sampled": (*TRACES, "0"),
    "traces, 1 % sampled": (*TRACES, "0.01"),
    "traces, all sampled": (*TRACES, "1"),
    "and all logged": (*EVERYTHING, "--decision-log-level", "all"),
}


@dataclass(frozen=True)
class Cost:
    """Of one kind in one round, or in several: reviews, and seconds of CPU."""

    reviews: int
    gateway: float
    worker: float

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(self.reviews + other.reviews, self.gateway + other.gateway, self.worker + other.worker)

    @property
    def gateway_us(self) -> float:
        """Microseconds per review."""
        return 1e6 * self.gateway / self.reviews

    @property
    def worker_us(self) -> float:
        """Microseconds per review."""
        return 1e6 * self.worker / self.reviews

    @property
    def both_us(self) -> float:
        """Of gateway and worker together, per review."""
        return self.gateway_us + self.worker_us


NOTHING = Cost(0, 0.0, 0.0)

COLUMNS: dict[str, Callable[[Cost], float]] = {
    "gateway": lambda cost: cost.gateway_us,
    "gateway+worker": lambda cost: cost.both_us,
}

Rounds = list[dict[str, Cost]]
"""By kind."""


def main() -> None:
    """Run the benchmark, print it, and exit with 1 if a limit is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=0.2, help="length of one window (default 0.2)")
    parser.add_argument("--rounds", type=int, default=100, help="after each start (default 100)")
    parser.add_argument("--starts", type=int, default=4, help="of all gateways (default 4)")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=[CONTROL, JUDGED], help="which, besides off")
    parser.add_argument(
        "--load", default="validating, one policy", choices=[load.name for load in loads()], help="which reviews"
    )
    parser.add_argument("-o", "--output", choices=["text", "json"], default="text")
    arguments = parser.parse_args()
    load = next(load for load in loads() if load.name == arguments.load)
    rounds: Rounds = []
    with sink() as receiver:
        for start_number in range(arguments.starts):
            progress = f"\rstart {start_number + 1} of {arguments.starts}, round "
            with ExitStack() as stack:
                running = {
                    name: stack.enter_context(gateway(receiver, KINDS[name])) for name in (OFF, *arguments.kinds)
                }
                rounds += uvloop.run(measured(running, load, arguments.seconds, arguments.rounds, progress))
    print("\r" + " " * 60 + "\r", end="", file=sys.stderr)
    found = {name: compared(rounds, name) for name in arguments.kinds}
    if arguments.output == "json":
        print(json.dumps(as_json(rounds, found), indent=1))
    else:
        report(rounds, found)
    noisy, exceeded = [*_noise(found)], [*_above(found)]
    for each in (*noisy, *exceeded):
        print(each, file=sys.stderr)
    sys.exit(2 if noisy else bool(exceeded))


# ---------------------------------------------------------------------------------------------------- the windows


@contextmanager
def sink() -> Iterator[str]:
    """The receiver's URL."""
    process = subprocess.Popen([sys.executable, "-c", SINK], stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.kill()
        process.wait()


@dataclass(frozen=True)
class Running:
    """A gateway that serves."""

    pid: int
    port: int
    context: ssl.SSLContext


@contextmanager
def gateway(endpoint: str, flags: Sequence[str]) -> Iterator[Running]:
    """A gateway with these flags; without, nothing is exported, logged or recorded."""
    given = [endpoint if flag == "ENDPOINT" else flag for flag in flags]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "key").write_text(b64encode(os.urandom(32)).decode())
        (folder / "key").chmod(0o600)
        (folder / "recordings").mkdir()
        log = () if "--decision-log" in flags else ("--decision-log", "none")
        process, port, context = start(
            folder, CONFIGURATION, WORKER, *log, *given, "--max-connection-age", "0", environment=ENVIRONMENT
        )
        try:
            yield Running(process.pid, port, context)
        finally:
            process.terminate()
            process.wait(30)


async def measured(
    running: dict[str, Running], load: Load, seconds: float, number: int, progress: str
) -> list[dict[str, Cost]]:
    """So many rounds, after some that warm up."""
    workers = {name: children(each.pid)[0] for name, each in running.items()}
    for name, each in running.items():
        pin(each.pid, 0)
        pin(workers[name], -1)
    os.sched_setaffinity(0, {CORES[-1]})
    connections = {
        name: [await asyncio.open_connection("127.0.0.1", each.port, ssl=each.context) for _ in range(CONNECTIONS)]
        for name, each in running.items()
    }
    order, rounds = list(running), []
    seen = {name: (cpu_seconds(each.pid), cpu_seconds(workers[name])) for name, each in running.items()}
    for index in range(WARM_UP + number):
        print(f"{progress}{index + 1} ", end="", file=sys.stderr)
        random.shuffle(order)
        reviews = {name: await window(connections[name], load, seconds) for name in order}
        now = {name: (cpu_seconds(each.pid), cpu_seconds(workers[name])) for name, each in running.items()}
        rounds.append(
            {name: Cost(reviews[name], now[name][0] - seen[name][0], now[name][1] - seen[name][1]) for name in running}
        )
        seen = now
    for pairs in connections.values():
        for _, writer in pairs:
            writer.close()
    os.sched_setaffinity(0, CORES)  # the next gateways start with all of them
    return rounds[WARM_UP:]


async def window(pairs: Sequence[tuple[asyncio.StreamReader, asyncio.StreamWriter]], load: Load, seconds: float) -> int:
    """Put the load on a gateway for some seconds; how many reviews were answered."""
    message = request(load)
    answered: list[float] = []
    until = time.monotonic() + seconds
    await asyncio.gather(*(send(*pair, message, load.expected, until, answered) for pair in pairs))
    assert answered, "no review was answered in a window: make it longer, or the machine quieter"
    return len(answered)


def cpu_seconds(pid: int) -> float:
    """User and system time of a process, all threads. Its clock in Linux has nanoseconds, /proc hundredths of a second,
    too few for a short window. The number is ``MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED)``, which
    clock_getcpuclockid(3) gives.
    """
    return time.clock_gettime(~pid << 3 | 2)


# ------------------------------------------------------------------------------------------------------ the report


@dataclass(frozen=True)
class Ratio:
    """Of the cost of a kind to that of ``off``, with the 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f}-{self.high:.3f})"


def compared(rounds: Rounds, name: str) -> dict[str, Ratio]:
    """The ratios of a kind, by column. The interval is that of the bootstrap: rounds drawn again, with replacement."""
    drawn = random.Random(7)  # noqa: S311 - statistics
    again = [_ratios(drawn.choices(rounds, k=len(rounds)), name) for _ in range(RESAMPLED)]
    found = {}
    for column, value in _ratios(rounds, name).items():
        ordered = sorted(each[column] for each in again)
        found[column] = Ratio(value, ordered[RESAMPLED // 40], ordered[-RESAMPLED // 40])
    return found


def _ratios(rounds: Sequence[dict[str, Cost]], name: str) -> dict[str, float]:
    kind, off = summed(rounds, name), summed(rounds, OFF)
    return {column: of(kind) / of(off) for column, of in COLUMNS.items()}


def summed(rounds: Sequence[dict[str, Cost]], name: str) -> Cost:
    """What a kind has cost in all of the rounds."""
    return sum((each[name] for each in rounds), NOTHING)


def as_json(rounds: Rounds, found: dict[str, dict[str, Ratio]]) -> dict[str, object]:
    """The document: sums, ratios with their intervals."""
    costs = {name: summed(rounds, name) for name in rounds[0]}
    return {
        "kinds": {
            name: {
                "reviews": cost.reviews,
                "gateway_cpu_us": cost.gateway_us,
                "worker_cpu_us": cost.worker_us,
                "ratio": {column: vars(ratio) for column, ratio in found.get(name, {}).items()},
            }
            for name, cost in costs.items()
        },
    }


def report(rounds: Rounds, found: dict[str, dict[str, Ratio]]) -> None:
    """As text."""
    print(f"CPU per review: microseconds, and ratio to {OFF!r} (95 % interval); {len(rounds)} rounds")
    print(f"{'':<28} {'gateway':>8} {'ratio':>22} {'with worker':>12} {'ratio':>22} {'reviews':>9}")
    for name in rounds[0]:
        cost, ratios = summed(rounds, name), found.get(name, {})
        gateways, both = (str(ratios.get(column, "")) for column in COLUMNS)
        print(f"{name:<28} {cost.gateway_us:>8.1f} {gateways:>22} {cost.both_us:>12.1f} {both:>22} {cost.reviews:>9}")


def _noise(found: dict[str, dict[str, Ratio]]) -> Iterator[str]:
    for column, ratio in found.get(CONTROL, {}).items():
        if abs(ratio.value - 1) > MOST_NOISE:
            yield f"{column}: {CONTROL} costs {ratio} times as much as {OFF}; no verdict, the machine is too noisy"
    for column, ratio in found.get(JUDGED, {}).items():
        if max(ratio.high - ratio.value, ratio.value - ratio.low) > MOST_NOISE:
            yield f"{column}: {JUDGED} has too wide an interval, {ratio}; no verdict: more rounds, or a quieter machine"


def _above(found: dict[str, dict[str, Ratio]]) -> Iterator[str]:
    for column, ratio in found.get(JUDGED, {}).items():
        if ratio.value > MOST_RATIO:
            yield f"{column}: {JUDGED} costs {ratio} times as much as {OFF}, the limit is {MOST_RATIO}"


if __name__ == "__main__":
    main()
