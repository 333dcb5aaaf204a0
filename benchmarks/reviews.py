"""What a review costs the gateway: CPU time per review, over real TLS, with one real gRPC worker.

Starts ``admission-gateway serve`` with one worker in a process of its own, sends recorded reviews of a pod over 32
kept connections, checks every answer, and reads the CPU time (user and system, all threads) that the gateway's process
took. The load generator is a third process' worth of work; figures are CPU time, so that it may share the cores.

The machine is shared and noisy: trust the ratios within one run, not the figures between runs. Rounds are interleaved,
and the median is told. Repeat it with ``make bench``, or ``make bench ARGS="--seconds 5 --rounds 7 -o json"``.
"""

import argparse
import asyncio
import json
import os
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import uvloop

ROOT = Path(__file__).resolve().parents[1]
RECORDING = ROOT / "tests" / "recordings" / "kubectl-run.0m.json"
CONNECTIONS = 32
TICKS = os.sysconf("SC_CLK_TCK")

CONFIGURATION = """
apiVersion: admission-gateway.dev/v1alpha1
kind: Worker
metadata: {name: bench}
spec: {grpc: {target: "unix:bench.sock", command: [python, bench_worker.py]}}
---
apiVersion: admission-gateway.dev/v1alpha1
kind: MutatingPolicyConfiguration
metadata: {name: bench}
policies:
- name: add-label.bench.example.com
  worker: bench
  sideEffects: None
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]
---
apiVersion: admission-gateway.dev/v1alpha1
kind: ValidatingPolicyConfiguration
metadata: {name: bench}
policies:
- name: judge.bench.example.com
  worker: bench
  sideEffects: None
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]
"""

# Two required labels, no privileged container; the mutation adds one label: what the peers were measured with.
WORKER = """
from admission_worker import Worker, allow, deny, patch

worker = Worker("bench", version="1")

@worker.mutating("add-label")
def add_label(request):
    return patch([{"op": "add", "path": "/metadata/labels/seen", "value": "yes"}])

@worker.validating("judge")
def judge(request):
    labels = request.object["metadata"].get("labels") or {}
    if not {"run", "tier"} >= set(labels):
        return deny("labels run and tier are required")
    for container in request.object["spec"]["containers"]:
        if (container.get("securityContext") or {}).get("privileged"):
            return deny("no privileged containers")
    return allow()

worker.main()
"""


@dataclass(frozen=True, kw_only=True)
class Load:
    """One kind of request, and what its answer must hold."""

    name: str
    path: str
    body: bytes
    expected: bytes


@dataclass(frozen=True, kw_only=True)
class Window:
    """What was measured in one window: counts, seconds of CPU, seconds of latency."""

    reviews: int
    gateway_cpu: float
    worker_cpu: float
    wall: float
    latencies: list[float]


def main() -> None:
    """Run the benchmark and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2.0, help="length of one window (default 2)")
    parser.add_argument("--rounds", type=int, default=5, help="windows of each kind, interleaved (default 5)")
    parser.add_argument("-o", "--output", choices=["text", "json"], default="text")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        gateway, port, context = start(Path(folder))
        try:
            results = uvloop.run(measure(gateway.pid, port, context, arguments.seconds, arguments.rounds))
        finally:
            gateway.terminate()
            gateway.wait(30)
    report(results, as_json=arguments.output == "json")


def start(folder: Path) -> tuple["subprocess.Popen[bytes]", int, ssl.SSLContext]:
    """A gateway that serves, where it listens, and how to trust it."""
    (folder / "policies.yaml").write_text(CONFIGURATION)
    (folder / "bench_worker.py").write_text(WORKER)
    port, admin = free_port(), free_port()
    gateway = subprocess.Popen(
        [
            Path(sys.executable).parent / "admission-gateway",
            *("serve", "--policies", folder / "policies.yaml", "--tls-dev-dir", folder / "tls"),
            *("--listen", f"127.0.0.1:{port}", "--admin-listen", f"127.0.0.1:{admin}", "--log-level", "error"),
            *("--worker-wait", "20"),
        ],
        stdout=subprocess.PIPE,
        cwd=folder,
    )
    assert gateway.stdout is not None
    while not (line := gateway.stdout.readline()).startswith(b"serving"):
        assert line, "the gateway ended before it served"
    return gateway, port, ssl.create_default_context(cafile=str(folder / "tls" / "ca.crt"))


def free_port() -> int:
    """A port that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def loads() -> list[Load]:
    """The kinds of request that are compared."""
    review = json.loads(json.loads(RECORDING.read_text())["body"])
    review["request"]["object"]["metadata"]["labels"] = {"run": "kr"}
    pod = encoded(review)
    review["request"]["operation"] = "UPDATE"
    other = encoded(review)
    return [
        Load(name="no policy matches", path="/validate", body=other, expected=b'"allowed":true}'),
        Load(name="validating, one policy", path="/validate", body=pod, expected=b'"allowed":true}'),
        Load(name="mutating, one policy", path="/mutate", body=pod, expected=b'"patchType":"JSONPatch"'),
    ]


def encoded(review: object) -> bytes:
    """As kube-apiserver writes it: no blanks, a newline at the end."""
    return json.dumps(review, separators=(",", ":")).encode() + b"\n"


async def measure(
    pid: int, port: int, context: ssl.SSLContext, seconds: float, rounds: int
) -> list[tuple[Load, list[Window]]]:
    """All windows of all kinds, interleaved."""
    kinds = loads()
    results: list[tuple[Load, list[Window]]] = [(load, []) for load in kinds]
    worker = children(pid)[0]
    for round_ in range(-1, rounds):
        for load, windows in results:
            print(f"\r{load.name:<30} round {max(round_, 0) + 1} of {rounds} ", end="", file=sys.stderr)
            window = await one_window(pid, worker, port, context, load, seconds)
            if round_ >= 0:
                windows.append(window)
    print("\r" + " " * 60 + "\r", end="", file=sys.stderr)
    return results


async def one_window(pid: int, worker: int, port: int, context: ssl.SSLContext, load: Load, seconds: float) -> Window:
    """Send one kind of request over all connections for some seconds."""
    latencies: list[float] = []
    connections = [await asyncio.open_connection("127.0.0.1", port, ssl=context) for _ in range(CONNECTIONS)]
    head = (
        f"POST {load.path}?timeout=10s HTTP/1.1\r\nHost: gateway.svc:443\r\nUser-Agent: kube-apiserver-admission\r\n"
        f"Content-Length: {len(load.body)}\r\nAccept: application/json, */*\r\nContent-Type: application/json\r\n"
        "Accept-Encoding: gzip\r\n\r\n"
    )
    message = head.encode() + load.body
    cpu, worker_cpu, began = cpu_seconds(pid), cpu_seconds(worker), time.monotonic()
    await asyncio.gather(*(send(*pair, message, load.expected, began + seconds, latencies) for pair in connections))
    wall = time.monotonic() - began
    window = Window(
        reviews=len(latencies),
        gateway_cpu=cpu_seconds(pid) - cpu,
        worker_cpu=cpu_seconds(worker) - worker_cpu,
        wall=wall,
        latencies=latencies,
    )
    for _, writer in connections:
        writer.close()
    return window


async def send(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    message: bytes,
    expected: bytes,
    until: float,
    latencies: list[float],
) -> None:
    """One request after another on one connection; every answer is checked."""
    while (began := time.monotonic()) < until:
        writer.write(message)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        answer = await reader.readexactly(length)
        assert b" 200 " in head[:20], head
        assert expected in answer, answer
        latencies.append(time.monotonic() - began)


def cpu_seconds(pid: int) -> float:
    """User and system time of a process, all threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def report(results: list[tuple[Load, list[Window]]], *, as_json: bool) -> None:
    """Medians over the rounds; ratios to the first kind."""
    rows: list[dict[str, object]] = []
    for load, windows in results:
        micro = [1e6 * window.gateway_cpu / window.reviews for window in windows]
        rows.append(
            {
                "kind": load.name,
                "body_bytes": len(load.body),
                "gateway_cpu_us": round(statistics.median(micro), 1),
                "gateway_cpu_us_min": round(min(micro), 1),
                "gateway_cpu_us_max": round(max(micro), 1),
                "worker_cpu_us": round(statistics.median(1e6 * w.worker_cpu / w.reviews for w in windows), 1),
                "reviews_per_second": round(statistics.median(w.reviews / w.wall for w in windows)),
                "p50_ms": round(1000 * statistics.median(statistics.median(w.latencies) for w in windows), 2),
                "p99_ms": round(
                    1000 * statistics.median(statistics.quantiles(w.latencies, n=100)[98] for w in windows), 2
                ),
            }
        )
    first = statistics.median(1e6 * window.gateway_cpu / window.reviews for window in results[0][1])
    for row in rows:
        row["ratio"] = round(float(str(row["gateway_cpu_us"])) / first, 2)
    if as_json:
        print(json.dumps({"connections": CONNECTIONS, "rounds": len(results[0][1]), "rows": rows}, indent=1))
        return
    print(f"{CONNECTIONS} connections, TLS, {rows[0]['body_bytes']} bytes; medians of {len(results[0][1])} windows")
    print(f"{'':<26} {'gateway CPU':>20} {'ratio':>6} {'worker CPU':>11} {'reviews/s':>10} {'p50':>8} {'p99':>8}")
    for row in rows:
        spread = f"{row['gateway_cpu_us']:.0f} µs ({row['gateway_cpu_us_min']:.0f}-{row['gateway_cpu_us_max']:.0f})"
        print(
            f"{row['kind']:<26} {spread:>20} {row['ratio']:>6} {row['worker_cpu_us']:>8.0f} µs "
            f"{row['reviews_per_second']:>10} {row['p50_ms']:>5} ms {row['p99_ms']:>5} ms"
        )


if __name__ == "__main__":
    main()
