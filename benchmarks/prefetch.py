"""What prefetched calls save: the latency of a mutating chain whose worker takes 10 ms for each call.

Three chains, each with prefetched calls and without (``--no-prefetch``): one policy; eight that read nothing that
another one writes; eight of which each reads what those before it have written. One review at a time, over real TLS;
every answer is checked. The worker sleeps, in threads of its own, so that it uses no CPU time and the latency is that
of the chain.

The output has medians of the latency, the ratio to one policy in the same mode, and the gateway's CPU time. Run it
with ``make bench-prefetch``, or ``make bench-prefetch ARGS="--seconds 5 --rounds 7 -o json"``.
"""

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

import uvloop
from served import ROOT, Load, Window, children, encoded, one_window, start

RECORDING = ROOT / "tests" / "recordings" / "kubectl-run.0m.json"
POLICIES = 8
MODES = {"early": (), "serial": ("--no-prefetch",)}

HEAD = """
apiVersion: admission-gateway.dev/v1alpha1
kind: Worker
metadata: {name: bench}
spec: {grpc: {target: "unix:bench.sock", command: [python, bench_worker.py]}}
"""

CHAIN = """
---
apiVersion: admission-gateway.dev/v1alpha1
kind: MutatingPolicyConfiguration
metadata: {name: NAME}
policies:
"""

POLICY = """
- name: p{index}.{chain}.example.com
  worker: bench
  policy: add-label
  sideEffects: None
  settings: {{label: l{index}}}
  inputs: {inputs}
  writes: [/metadata/labels/l{index}]
  rules: [{{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}}]
  objectSelector: {{matchLabels: {{chain: {chain}}}}}
"""

WORKER = """
import time

import msgspec
from admission_worker import Worker, patch

worker = Worker("bench", version="1")


class Settings(msgspec.Struct):
    label: str


@worker.mutating("add-label", settings=Settings, blocking=True)
def add_label(request, settings):
    time.sleep(0.01)
    return patch([{"op": "add", "path": "/metadata/labels/" + settings.label, "value": "1"}])


worker.main()
"""


def configuration() -> str:
    """The three chains, selected by the label ``chain`` of the pod."""
    text = HEAD
    for chain, count in (("one", 1), ("independent", POLICIES), ("dependent", POLICIES)):
        text += CHAIN.replace("NAME", chain)
        for index in range(count):
            # A dependent policy sees the label that the one before it writes, and all its predecessors' with it.
            seen = [f"/object/metadata/labels/l{other}" for other in range(index)] if chain == "dependent" else []
            inputs = json.dumps([f"/object/metadata/labels/l{index}", *seen])
            text += POLICY.format(index=index, chain=chain, inputs=inputs)
    return text


def loads() -> list[Load]:
    """A pod for each chain."""
    review = json.loads(json.loads(RECORDING.read_text())["body"])
    made = []
    for chain, name in (("one", "one policy"), ("independent", "eight independent"), ("dependent", "eight dependent")):
        review["request"]["object"]["metadata"]["labels"] = {"run": "kr", "chain": chain}
        made.append(Load(name=name, path="/mutate", body=encoded(review), expected=b'"patchType":"JSONPatch"'))
    return made


def main() -> None:
    """Run the benchmark and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2.0, help="length of one window (default 2)")
    parser.add_argument("--rounds", type=int, default=5, help="windows of each kind, interleaved (default 5)")
    parser.add_argument("-o", "--output", choices=["text", "json"], default="text")
    arguments = parser.parse_args()
    found: dict[tuple[str, str], list[Window]] = {}
    for round_ in range(arguments.rounds):
        for mode, flags in MODES.items():
            print(f"\r{mode:<8} round {round_ + 1} of {arguments.rounds} ", end="", file=sys.stderr)
            for name, window in measured(flags, arguments.seconds):
                found.setdefault((name, mode), []).append(window)
    print("\r" + " " * 60 + "\r", end="", file=sys.stderr)
    report(found, as_json=arguments.output == "json")


def measured(flags: tuple[str, ...], seconds: float) -> list[tuple[str, Window]]:
    """One window of each chain, by a gateway of its own; a short one before, which warms everything."""
    with tempfile.TemporaryDirectory() as folder:
        gateway, port, context = start(Path(folder), configuration(), WORKER, *flags)
        try:
            worker = children(gateway.pid)[0]
            windows = []
            for load in loads():
                taken = [
                    uvloop.run(one_window(gateway.pid, worker, port, context, load, length, connections=1))
                    for length in (seconds / 4, seconds)
                ]
                windows.append((load.name, taken[-1]))
            return windows
        finally:
            gateway.terminate()
            gateway.wait(30)


def report(found: dict[tuple[str, str], list[Window]], *, as_json: bool) -> None:
    """Medians over the rounds; ratios to one policy in the same mode."""
    rows: list[dict[str, object]] = []
    alone: dict[str, float] = {}
    for (name, mode), windows in found.items():
        latency = 1000 * statistics.median(statistics.median(window.latencies) for window in windows)
        alone.setdefault(mode, latency)
        cpu = statistics.median(1e6 * window.gateway_cpu / window.reviews for window in windows)
        rows.append(
            {
                "chain": name,
                "walk": mode,
                "p50_ms": round(latency, 2),
                "ratio": round(latency / alone[mode], 2),
                "gateway_cpu_us": round(cpu),
            }
        )
    if as_json:
        print(json.dumps({"policies": POLICIES, "rows": rows}, indent=1))
        return
    print(f"{'chain':<20} {'walk':<8} {'p50':>9} {'to one policy':>14} {'gateway CPU':>12}")
    for row in rows:
        took = f"{row['p50_ms']:>6} ms {row['ratio']:>14} {row['gateway_cpu_us']:>9} µs"
        print(f"{row['chain']:<20} {row['walk']:<8} {took}")


if __name__ == "__main__":
    main()
