"""What observing costs: CPU time per review with everything on, against everything off.

``everything`` is what a gateway in production has on: traces, exported by OTLP over gRPC, of 1 % of the reviews;
recordings of 1 % of them, encrypted, in files; the decision log in a file, at its default level, which has the reviews
that a policy denied or failed. Metrics with exemplars and decisions retained for ``explain`` are there in all kinds,
also in ``off``: they cannot be turned off. In each kind the worker is the Python SDK's with OpenTelemetry's API
installed, as in the image, and without a provider. ``and all logged`` has a line for each review besides, which is no
default, and is not held to the limit.

Each gateway has a worker in a process of its own, and there is an OTLP receiver that reads and forgets. The API server
sends no ``traceparent``: without traces the worker gets none, with them one for each review. Batches of spans go every
second instead of every five, so that every window has one; that costs more, not less.

A machine that others share is faster in one second than in the next. So a kind is measured in pairs of short windows,
one of it and one of ``off``, right after each other, in alternating order; what counts is the median of the ratios of
the pairs. CPU time is that of a process with all its threads, in nanoseconds.

A window cannot show microseconds. So what a review that is not sampled pays for traces is measured besides, part by
part, in this process: the fastest of many short repeats.

``off again`` is a second gateway with everything off. If its ratio is more than 3 % from 1, the machine is too noisy
for a verdict on the others: exit code 2.

Exit code 1: ``everything`` costs more than 10 % above ``off``, in the gateway or in gateway and worker together; or a
review that is not sampled pays more than 3 µs. ``make bench-observe``; ``ARGS="--pairs 41"`` for steadier figures.
"""

import argparse
import asyncio
import json
import os
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
import timeit
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvloop
from reviews import CONFIGURATION, WORKER, loads
from served import CONNECTIONS, Load, children, send, start

from gateway.engine.decision import Decision, Outcome, TimeLedger
from gateway.engine.invocation_record import InvocationRecord
from gateway.engine.plan import Described, make_plan
from gateway.engine.trace_context import NO_TRACE, TraceContext, parent_of
from gateway.engine.verdicts import Allow
from gateway.policies.configuration import load as load_policies
from gateway.policies.decoding.texts import SourceText
from gateway.policies.model import Phase
from gateway.review.request import decode
from gateway.review.response import Response
from gateway.telemetry.events import NoEvents, sampled_trace_id
from gateway.telemetry.traces.settings import trace_settings
from gateway.telemetry.traces.tracer import ReviewTracer
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb

MOST_RATIO = 1.10
"""Of ``everything`` to ``off``."""

MOST_NOISE = 0.03
"""Of ``off again`` to ``off``, from 1: a third of what ``everything`` may cost."""

MOST_MICROSECONDS = 3.0
"""Of a review that is not sampled: 1 % of one with one policy."""

TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"

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

ENVIRONMENT = {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_BSP_SCHEDULE_DELAY": "1000"}

TRACES = ("--traces-endpoint", "ENDPOINT", "--traces-sample-ratio")
EVERYTHING = (
    *(*TRACES, "0.01"),
    *("--recording-dir", "recordings", "--recording-key-file", "key", "--recording-sample-ratio", "0.01"),
    *("--decision-log", "decisions.log"),
)
OFF, CONTROL, JUDGED = "off", "off again", "everything"
KINDS = {
    CONTROL: (),
    JUDGED: EVERYTHING,
    "traces, not sampled": (*TRACES, "0"),
    "traces, 1 % sampled": (*TRACES, "0.01"),
    "traces, all sampled": (*TRACES, "1"),
    "and all logged": (*EVERYTHING, "--decision-log-level", "all"),
}


@dataclass(frozen=True)
class Cost:
    """Microseconds of CPU per review in one window."""

    gateway: float
    worker: float

    @property
    def both(self) -> float:
        """Of gateway and worker together."""
        return self.gateway + self.worker


Pair = tuple[Cost, Cost]
"""Of ``off``, and of another kind right before or after it."""


def main() -> None:
    """Run the benchmark, print it, and exit with 1 if a limit is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1.0, help="length of one window (default 1)")
    parser.add_argument("--pairs", type=int, default=21, help="of windows, for each kind (default 21)")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), help="which (default all)")
    parser.add_argument(
        "--load", default="validating, one policy", choices=[load.name for load in loads()], help="which reviews"
    )
    parser.add_argument("-o", "--output", choices=["text", "json"], default="text")
    arguments = parser.parse_args()
    # First: nothing else of this benchmark runs meanwhile.
    parts = not_sampled()
    load = next(load for load in loads() if load.name == arguments.load)
    pairs: dict[str, list[Pair]] = {}
    with sink() as receiver, gateway(receiver, ()) as off:
        for name in arguments.kinds:
            print(f"\r{name:<30} {arguments.pairs} pairs ", end="", file=sys.stderr)
            with gateway(receiver, KINDS[name]) as other:
                pairs[name] = uvloop.run(measured(off, other, load, arguments.seconds, arguments.pairs))
    print("\r" + " " * 60 + "\r", end="", file=sys.stderr)
    if arguments.output == "json":
        print(json.dumps(as_json(pairs, parts), indent=1))
    else:
        report(pairs, parts)
    noisy, exceeded = [*_noise(pairs)], [*_above_ratio(pairs), *_above_microseconds(parts)]
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
        process, port, context = start(folder, CONFIGURATION, WORKER, *log, *given, environment=ENVIRONMENT)
        try:
            yield Running(process.pid, port, context)
        finally:
            process.terminate()
            process.wait(30)


async def measured(off: Running, other: Running, load: Load, seconds: float, number: int) -> list[Pair]:
    """Pairs of windows, after one that warms both up."""
    pairs = []
    for index in range(-1, number):
        if index % 2:
            later = await window(other, load, seconds)
            pairs.append((await window(off, load, seconds), later))
        else:
            pairs.append((await window(off, load, seconds), await window(other, load, seconds)))
    return pairs[1:]


async def window(running: Running, load: Load, seconds: float) -> Cost:
    """Put the load on a gateway for some seconds, over connections that are open before."""
    pairs = [await asyncio.open_connection("127.0.0.1", running.port, ssl=running.context) for _ in range(CONNECTIONS)]
    head = (
        f"POST {load.path}?timeout=10s HTTP/1.1\r\nHost: gateway.svc:443\r\nUser-Agent: kube-apiserver-admission\r\n"
        f"Content-Length: {len(load.body)}\r\nAccept: application/json, */*\r\nContent-Type: application/json\r\n"
        "Accept-Encoding: gzip\r\n\r\n"
    )
    message, worker = head.encode() + load.body, children(running.pid)[0]
    answered: list[float] = []
    before, worker_before = cpu_seconds(running.pid), cpu_seconds(worker)
    until = time.monotonic() + seconds
    await asyncio.gather(*(send(*pair, message, load.expected, until, answered) for pair in pairs))
    after, worker_after = cpu_seconds(running.pid), cpu_seconds(worker)
    for _, writer in pairs:
        writer.close()
    assert answered, "no review was answered in a window: make it longer, or the machine quieter"
    each = 1e6 / len(answered)
    return Cost(each * (after - before), each * (worker_after - worker_before))


def cpu_seconds(pid: int) -> float:
    """User and system time of a process, all threads. Its clock in Linux has nanoseconds, /proc hundredths of a second,
    too few for a short window. The number is ``MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED)``, which
    clock_getcpuclockid(3) gives.
    """
    return time.clock_gettime(~pid << 3 | 2)


# ------------------------------------------------------------------------------------- a review that is not sampled


def not_sampled() -> dict[str, float]:
    """Microseconds of each thing that a review of one policy pays for traces if it is not sampled.

    What it would pay without traces is not in them: the empty fields of the message are written, too.
    """
    settings = trace_settings({}, endpoint="http://127.0.0.1:4317", ratio=0.0)
    assert settings is not None
    begin = settings.sampler.begin
    trace = begin(None)
    tracer, decision = ReviewTracer(settings, NoEvents()), allowed(trace)
    plain, traced = message(NO_TRACE), message(trace)

    def is_traced() -> None:
        decision.__dict__.clear()  # it is kept there, once for each decision
        assert not decision.is_traced

    parts = {
        "the trace begins": fastest(lambda: begin(None)),
        "traceparent in the message": fastest(traced) - fastest(plain),
        "its read for exemplars": fastest(lambda: sampled_trace_id(trace.traceparent)),
        "is_traced, for exemplars": fastest(is_traced) - fastest(decision.__dict__.clear),
        "decided(): is it exported?": fastest(lambda: tracer.decided(decision)),
    }
    # The same with what the API server sends, if it traces and has not sampled the review.
    sent = fastest(lambda: begin(parent_of((TRACEPARENT,), ())))
    return {**parts, ALL_PARTS: sum(parts.values()), "(begins from a traceparent)": sent}


ALL_PARTS = "all of it"


def fastest(part: Callable[[], object]) -> float:
    """Microseconds, without those of a call: the fastest of many short repeats, which nothing has interrupted."""
    number, repeat = 200, 2_000
    times = [min(timeit.repeat(each, number=number, repeat=repeat)) for each in (part, _nothing)]
    return 1e6 * (times[0] - times[1]) / number


def _nothing() -> None:
    pass


def allowed(trace: TraceContext) -> Decision:
    """A review that one policy has allowed."""
    load = next(load for load in loads() if load.name == "validating, one policy")
    policy = load_policies(
        [SourceText(name="bench.yaml", content=CONFIGURATION.encode(), directory="/nonexistent")]
    ).validating[0]
    turn = InvocationRecord(round=0, index=0, label="bench", policy=policy, matched=True, answer=Allow())
    return Decision(
        phase=Phase.VALIDATING,
        trace=trace,
        plan=make_plan(Phase.VALIDATING, [policy], {policy.qualified_name: Described(version="1")}),
        request=decode(load.body),
        outcome=Outcome.ALLOWED,
        response=Response(allowed=True),
        patch=(),
        changed_object=None,
        calls=(turn,),
        started=0.0,
        ended=0.001,
        ends=10.0,
        ledger=TimeLedger(),
    )


def message(trace: TraceContext) -> Callable[[], object]:
    """Writes the fields of a call that all calls of a review share."""
    uid, traceparent, tracestate = "705ab4f5-6393-11e8-b7cc-42010a800002", trace.traceparent, trace.tracestate
    return lambda: pb.PolicyCall(uid=uid, traceparent=traceparent, tracestate=tracestate).SerializeToString()


# ------------------------------------------------------------------------------------------------------ the report


def ratios(pairs: Sequence[Pair]) -> dict[str, float]:
    """The medians over the pairs, of the gateway, and of gateway and worker."""
    return {
        "gateway": statistics.median(other.gateway / off.gateway for off, other in pairs),
        "gateway+worker": statistics.median(other.both / off.both for off, other in pairs),
    }


def as_json(pairs: dict[str, list[Pair]], parts: dict[str, float]) -> dict[str, object]:
    """The document: medians, and ratios of each pair."""
    return {
        "kinds": {
            name: {
                "ratio": ratios(found),
                "gateway_cpu_us": statistics.median(other.gateway for _, other in found),
                "worker_cpu_us": statistics.median(other.worker for _, other in found),
                "off_gateway_cpu_us": statistics.median(off.gateway for off, _ in found),
                "off_worker_cpu_us": statistics.median(off.worker for off, _ in found),
                "ratios_gateway": [round(other.gateway / off.gateway, 4) for off, other in found],
                "ratios_gateway_and_worker": [round(other.both / off.both, 4) for off, other in found],
            }
            for name, found in pairs.items()
        },
        "not_sampled_us": parts,
    }


def report(pairs: dict[str, list[Pair]], parts: dict[str, float]) -> None:
    """As text."""
    number = len(next(iter(pairs.values())))
    print(f"CPU per review: ratio to {OFF!r}, median of {number} pairs (quartiles); medians in microseconds")
    print(f"{'':<28} {'gateway':>18} {'gateway+worker':>20} {'gateway':>16} {'worker':>13}")
    for name, found in pairs.items():
        gateways = _spread([other.gateway / off.gateway for off, other in found])
        both = _spread([other.both / off.both for off, other in found])
        cpu = "/".join(f"{statistics.median(each.gateway for each in kind):.0f}" for kind in zip(*found, strict=True))
        work = "/".join(f"{statistics.median(each.worker for each in kind):.0f}" for kind in zip(*found, strict=True))
        print(f"{name + ' / ' + OFF:<28} {gateways:>18} {both:>20} {cpu:>13} µs {work:>10} µs")
    print("what a review that is not sampled pays for traces; the fastest of many repeats")
    for name, micro in parts.items():
        print(f"{name:<28} {micro:>15.2f} µs")


def _spread(values: list[float]) -> str:
    low, middle, high = statistics.quantiles(values, n=4) if len(values) > 1 else values * 3
    return f"{middle:.3f} ({low:.2f}-{high:.2f})"


def _noise(pairs: dict[str, list[Pair]]) -> Iterator[str]:
    for column, ratio in ratios(pairs[CONTROL]).items() if CONTROL in pairs else ():
        if abs(ratio - 1) > MOST_NOISE:
            yield f"{column}: {CONTROL} costs {ratio:.3f} times as much as {OFF}; no verdict, the machine is too noisy"


def _above_ratio(pairs: dict[str, list[Pair]]) -> Iterator[str]:
    for column, ratio in ratios(pairs[JUDGED]).items() if JUDGED in pairs else ():
        if ratio > MOST_RATIO:
            yield f"{column}: {JUDGED} costs {ratio:.3f} times as much as {OFF}, the limit is {MOST_RATIO}"


def _above_microseconds(parts: dict[str, float]) -> Iterator[str]:
    if parts[ALL_PARTS] > MOST_MICROSECONDS:
        yield f"a review that is not sampled pays {parts[ALL_PARTS]:.2f} µs, the limit is {MOST_MICROSECONDS} µs"


if __name__ == "__main__":
    main()
