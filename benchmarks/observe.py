"""What observing costs the gateway: CPU time per review, with everything off, with traces, and with everything on.

``everything`` is traces and recordings of 1 % of the reviews, and the decision log in a file, which has those that were
refused; ``and all logged`` has a line for each review. In all kinds, decisions are retained for ``explain`` and metrics
are counted. Each gateway has one worker in a process of its own, and there is an OTLP receiver that reads and forgets.
Windows are interleaved; figures are CPU time of the gateway's process, its writing and exporting threads included.

A window cannot show microseconds, so what a review that is not sampled pays more for traces is measured besides, call
by call, in this process: the header is read, the trace begun, and the decision asked whether it is exported.

The machine is shared and noisy: trust the ratios within one run. Repeat it with ``make bench-observe``.
"""

import argparse
import json
import os
import ssl
import statistics
import subprocess
import sys
import tempfile
import timeit
from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import uvloop
from reviews import CONFIGURATION, WORKER, loads
from served import Window, children, one_window, start

from gateway.engine.trace_context import parent_of
from gateway.telemetry.traces.settings import trace_settings

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

TRACES = ("--traces-endpoint", "ENDPOINT", "--traces-sample-ratio")
EVERYTHING = (
    *(*TRACES, "0.01"),
    *("--recording-dir", "recordings", "--recording-key-file", "key", "--recording-sample-ratio", "0.01"),
    *("--decision-log", "decisions.log"),
)
KINDS = {
    "off": (),
    "traces, not sampled": (*TRACES, "0"),
    "traces, 1 % sampled": (*TRACES, "0.01"),
    "traces, all sampled": (*TRACES, "1"),
    "everything": EVERYTHING,
    "and all logged": (*EVERYTHING, "--decision-log-level", "all"),
}


def main() -> None:
    """Run the benchmark and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2.0, help="length of one window (default 2)")
    parser.add_argument("--rounds", type=int, default=5, help="windows of each kind, interleaved (default 5)")
    parser.add_argument(
        "--load", default="validating, one policy", choices=[load.name for load in loads()], help="which reviews"
    )
    parser.add_argument("-o", "--output", choices=["text", "json"], default="text")
    arguments = parser.parse_args()
    with ExitStack() as stack:
        endpoint = f"http://127.0.0.1:{stack.enter_context(sink())}"
        gateways = {name: stack.enter_context(gateway(endpoint, flags)) for name, flags in KINDS.items()}
        windows: dict[str, list[Window]] = {name: [] for name in KINDS}
        load = next(load for load in loads() if load.name == arguments.load)
        for round_ in range(-1, arguments.rounds):
            for name, (process, port, context) in gateways.items():
                print(f"\r{name:<30} round {max(round_, 0) + 1} of {arguments.rounds} ", end="", file=sys.stderr)
                worker = children(process.pid)[0]
                window = uvloop.run(one_window(process.pid, worker, port, context, load, arguments.seconds))
                if round_ >= 0:
                    windows[name].append(window)
    print("\r" + " " * 60 + "\r", end="", file=sys.stderr)
    report(windows, as_json=arguments.output == "json")


@contextmanager
def sink() -> Iterator[int]:
    """The receiver's port."""
    process = subprocess.Popen([sys.executable, "-c", SINK], stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()


@contextmanager
def gateway(endpoint: str, flags: Sequence[str]) -> Iterator[tuple["subprocess.Popen[bytes]", int, ssl.SSLContext]]:
    """A gateway with these flags; without, nothing is exported, logged or recorded."""
    given = [endpoint if flag == "ENDPOINT" else flag for flag in flags]
    protocol = {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "key").write_text(b64encode(os.urandom(32)).decode())
        (folder / "key").chmod(0o600)
        (folder / "recordings").mkdir()
        log = () if "--decision-log" in flags else ("--decision-log", "none")
        process, port, context = start(folder, CONFIGURATION, WORKER, *log, *given, environment=protocol)
        try:
            yield process, port, context
        finally:
            process.terminate()
            process.wait(30)


def not_sampled() -> dict[str, float]:
    """Microseconds of what a review that is not sampled pays, by whether the API server sends a traceparent."""
    settings = trace_settings({}, endpoint="http://127.0.0.1:4317", ratio=0.0)
    assert settings is not None
    begin = settings.sampler.begin
    trace = begin(None)
    parts = {
        "without traceparent": lambda: begin(None),
        "with traceparent": lambda: begin(parent_of((TRACEPARENT,), ())),
        "whether it is exported": lambda: trace.is_recorded(allowed=True, seconds=0.01),
    }
    number = 50_000
    return {name: 1e6 * min(timeit.repeat(part, number=number, repeat=5)) / number for name, part in parts.items()}


def report(windows: dict[str, list[Window]], *, as_json: bool) -> None:
    """Medians over the rounds; ratios to the first kind; and the parts."""
    cpu = {name: [1e6 * each.gateway_cpu / each.reviews for each in found] for name, found in windows.items()}
    medians = {name: statistics.median(found) for name, found in cpu.items()}
    workers = {
        name: statistics.median(1e6 * each.worker_cpu / each.reviews for each in found)
        for name, found in windows.items()
    }
    first, parts = medians["off"], not_sampled()
    if as_json:
        print(json.dumps({"gateway_cpu_us": medians, "worker_cpu_us": workers, "not_sampled_us": parts}, indent=1))
        return
    print(f"CPU per review; medians of {len(cpu['off'])} windows; gateway, ratio, worker")
    for name, found in cpu.items():
        spread = f"{medians[name]:.0f} µs ({min(found):.0f}-{max(found):.0f})"
        print(f"{name:<26} {spread:>20} {medians[name] / first:>6.2f} {workers[name]:>6.0f} µs")
    print("what a review pays that is not sampled")
    for name, micro in parts.items():
        print(f"{name:<26} {micro:>17.2f} µs")


if __name__ == "__main__":
    main()
