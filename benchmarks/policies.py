"""What policies cost that a review does not match: CPU per review, and until ready, by how many are loaded.

Starts ``admission-gateway serve`` with 3, 200 and 2,000 policies, of which the same three match a recorded review of a
pod: one mutating and two validating, served by one gRPC worker. Half of the others are mutating, half validating; they
name 50 resources of ten groups, have settings of their own, and some have selectors and matchConditions. The reviews
come over TLS, and each answer is checked. ``check`` is measured over the same files.

Figures are CPU time of the gateway's process (user and system, all threads); windows are interleaved, and the median is
told with its ratio to the gateway with the fewest policies. Repeat it with ``make bench-policies``, or
``make bench-policies ARGS="--policies 3 2000 --rounds 7 -o json"``.
"""

import argparse
import json
import resource
import ssl
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import uvloop
from served import CONNECTIONS, ROOT, Load, Window, children, cpu_seconds, encoded, one_window, start

RECORDING = ROOT / "tests" / "recordings" / "kubectl-run.0m.json"

WORKER_DOCUMENT = """
apiVersion: admission-gateway.dev/v1alpha1
kind: Worker
metadata: {name: bench}
spec: {grpc: {target: "unix:bench.sock", command: [python, bench_worker.py]}}
"""

CONFIGURATION = """---
apiVersion: admission-gateway.dev/v1alpha1
kind: %sPolicyConfiguration
metadata: {name: team-%03d}
policies:
"""

PODS = """- name: %s.example.com
  worker: bench
  policy: %s
  sideEffects: None
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]
"""

OTHER = """- name: other-%d.example.com
  worker: bench
  policy: %s
  sideEffects: None
  failurePolicy: %s
  settings: {team: %d}
  rules:
  - {operations: [CREATE, UPDATE], apiGroups: [group-%d.example.com], apiVersions: [v1], resources: [things-%d]}
"""
SELECTOR = """  objectSelector: {matchLabels: {team: team-%d}}
"""
CONDITION = """  matchConditions:
  - {name: not-nodes, expression: "!('system:nodes' in request.userInfo.groups)"}
  - {name: team, expression: "object.metadata.?labels.team.orValue('') == 'team-%d'"}
"""

OF_ONE_TEAM = 20
"""Policies in one configuration."""

WORKER = """
import msgspec

from admission_worker import Worker, allow, deny, patch


class Settings(msgspec.Struct):
    team: int = 0


worker = Worker("bench", version="1")

@worker.mutating("label", settings=Settings)
def label(request, settings):
    return patch([{"op": "add", "path": "/metadata/labels/seen", "value": "yes"}])

@worker.validating("judge", settings=Settings)
def judge(request, settings):
    return allow() if request.object["metadata"].get("labels") else deny("labels are required")

worker.main()
"""


@dataclass(frozen=True, kw_only=True)
class Gateway:
    """A gateway that serves so many policies."""

    policies: int
    pid: int
    worker: int
    port: int
    context: ssl.SSLContext
    ready: float
    check: float
    windows: dict[str, list[Window]] = field(default_factory=dict)


def configuration(policies: int) -> str:
    """So many policies, the same three of which match a pod: the last ones of their chains."""
    others = policies - 3
    halves = {"Mutating": range(others // 2), "Validating": range(others // 2, others)}
    documents = [WORKER_DOCUMENT]
    for phase, numbers in halves.items():
        for count, number in enumerate(numbers):
            if count % OF_ONE_TEAM == 0:
                documents.append(CONFIGURATION % (phase, count // OF_ONE_TEAM))
            documents.append(other(number, "label" if phase == "Mutating" else "judge"))
        documents.append(CONFIGURATION % (phase, 999))
        if phase == "Mutating":
            documents.append(PODS % ("label", "label"))
        else:
            documents += [PODS % ("judge", "judge"), PODS % ("second-judge", "judge")]
    return "".join(documents)


def other(number: int, policy: str) -> str:
    """A policy that matches no pod."""
    ignoring = "Ignore" if number % 7 == 0 else "Fail"
    text = OTHER % (number, policy, ignoring, number, number % 10, number % 50)
    if number % 3 == 0:
        text += SELECTOR % number
    if number % 4 == 0:
        text += CONDITION % number
    return text


def loads() -> list[Load]:
    """The kinds of request."""
    review = json.loads(json.loads(RECORDING.read_text())["body"])
    review["request"]["object"]["metadata"]["labels"] = {"run": "kr"}
    pod = encoded(review)
    return [
        Load(name="validating", path="/validate", body=pod, expected=b'"allowed":true}'),
        Load(name="mutating", path="/mutate", body=pod, expected=b'"patchType":"JSONPatch"'),
    ]


def check(folder: Path) -> float:
    """CPU seconds of ``check`` over the policies in a folder."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = Path(sys.executable).parent / "admission-gateway"
    subprocess.run([command, "check", "-o", "json", folder / "policies.yaml"], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


@contextmanager
def serving(policies: int) -> Iterator[Gateway]:
    """A gateway with so many policies, until left."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        process, port, context = start(folder, configuration(policies), WORKER, "--worker-startup-timeout", "120")
        try:
            ready = cpu_seconds(process.pid)
            yield Gateway(
                policies=policies,
                pid=process.pid,
                worker=children(process.pid)[0],
                port=port,
                context=context,
                ready=ready,
                check=check(folder),
            )
        finally:
            process.terminate()
            process.wait(60)


async def measure(gateways: list[Gateway], seconds: float, rounds: int) -> None:
    """All windows of all gateways, interleaved; the first round is thrown away."""
    for round_ in range(-1, rounds):
        for gateway in gateways:
            for load in loads():
                print(f"\r{gateway.policies:>5} policies, round {max(round_, 0) + 1} ", end="", file=sys.stderr)
                window = await one_window(gateway.pid, gateway.worker, gateway.port, gateway.context, load, seconds)
                if round_ >= 0:
                    gateway.windows.setdefault(load.name, []).append(window)
    print("\r" + " " * 60 + "\r", end="", file=sys.stderr)


def micro(windows: list[Window]) -> float:
    """The median CPU per review, in microseconds."""
    return statistics.median(1e6 * window.gateway_cpu / window.reviews for window in windows)


def report(gateways: list[Gateway], *, as_json: bool) -> None:
    """A line for each gateway."""
    kinds = [load.name for load in loads()]
    first = {kind: micro(gateways[0].windows[kind]) for kind in kinds}
    rows = [
        {
            "policies": gateway.policies,
            "ready_cpu_s": round(gateway.ready, 2),
            "check_cpu_s": round(gateway.check, 2),
            **{f"{kind}_cpu_us": round(micro(gateway.windows[kind]), 1) for kind in kinds},
            **{f"{kind}_ratio": round(micro(gateway.windows[kind]) / first[kind], 2) for kind in kinds},
        }
        for gateway in gateways
    ]
    if as_json:
        print(json.dumps({"connections": CONNECTIONS, "rows": rows}, indent=1))
        return
    print("policies    ready     check     validating a review     mutating a review")
    for row in rows:
        print(
            f"{row['policies']:>8} {row['ready_cpu_s']:>6.2f} s  {row['check_cpu_s']:>6.2f} s  "
            + "  ".join(f"{row[f'{kind}_cpu_us']:>12.0f} µs {row[f'{kind}_ratio']:>6.2f}" for kind in kinds)
        )


def main() -> None:
    """Run the benchmark and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policies", type=int, nargs="+", default=[3, 200, 2_000], help="how many are loaded")
    parser.add_argument("--seconds", type=float, default=2.0, help="length of one window (default 2)")
    parser.add_argument("--rounds", type=int, default=3, help="windows of each kind, interleaved (default 3)")
    parser.add_argument("-o", "--output", choices=["text", "json"], default="text")
    arguments = parser.parse_args()
    with ExitStack() as stack:
        gateways = [stack.enter_context(serving(policies)) for policies in arguments.policies]
        uvloop.run(measure(gateways, arguments.seconds, arguments.rounds))
        report(gateways, as_json=arguments.output == "json")


if __name__ == "__main__":
    main()
