"""What a review costs the gateway: CPU time per review, over real TLS, with one real gRPC worker.

Starts ``admission-gateway serve`` with one worker in a process of its own, sends recorded reviews of a pod over 32
kept connections, checks every answer, and reads the CPU time (user and system, all threads) that the gateway's process
took. The load generator is a third process' worth of work; figures are CPU time, so that it may share the cores.

The machine is shared and noisy: trust the ratios within one run, not the figures between runs. Rounds are interleaved,
and the median is told. Repeat it with ``make bench``, or ``make bench ARGS="--seconds 5 --rounds 7 -o json"``.
"""

import argparse
import json
import ssl
import statistics
import sys
import tempfile
from pathlib import Path

import uvloop
from served import CONNECTIONS, ROOT, Load, Window, children, encoded, one_window, start

RECORDING = ROOT / "tests" / "recordings" / "kubectl-run.0m.json"

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
- name: cached-judge.bench.example.com
  worker: bench
  policy: judge
  sideEffects: None
  rules: [{operations: [UPDATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]
  inputs: [/object/metadata/labels, "/object/spec/containers/*/securityContext"]
  cache: {ttl: 10m}
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


def main() -> None:
    """Run the benchmark and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2.0, help="length of one window (default 2)")
    parser.add_argument("--rounds", type=int, default=5, help="windows of each kind, interleaved (default 5)")
    parser.add_argument("-o", "--output", choices=["text", "json"], default="text")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        gateway, port, context = start(Path(folder), CONFIGURATION, WORKER)
        try:
            results = uvloop.run(measure(gateway.pid, port, context, arguments.seconds, arguments.rounds))
        finally:
            gateway.terminate()
            gateway.wait(30)
    report(results, as_json=arguments.output == "json")


def loads() -> list[Load]:
    """The kinds of request that are compared."""
    review = json.loads(json.loads(RECORDING.read_text())["body"])
    review["request"]["object"]["metadata"]["labels"] = {"run": "kr"}
    pod = encoded(review)
    review["request"]["operation"] = "UPDATE"
    update = encoded(review)
    review["request"]["operation"] = "DELETE"
    other = encoded(review)
    return [
        Load(name="no policy matches", path="/validate", body=other, expected=b'"allowed":true}'),
        Load(name="validating, one policy", path="/validate", body=pod, expected=b'"allowed":true}'),
        Load(name="validating, from memory", path="/validate", body=update, expected=b'"allowed":true}'),
        Load(name="mutating, one policy", path="/mutate", body=pod, expected=b'"patchType":"JSONPatch"'),
    ]


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
