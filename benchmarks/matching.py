"""What it costs to find out whether a policy judges a request: CPU time per policy, in one process, without a network.

Policies are loaded from a configuration text, as ``serve`` loads them, and held against a recorded review of a pod.
Each kind of policy is measured in interleaved rounds, and the median is told with its ratio to the first kind. The
object is decoded beforehand where a kind reads it: a review is decoded once, however many policies look at it.

Repeat it with ``make bench-matching``, or ``make bench-matching ARGS="--rounds 9 -o json"``.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gateway.matching.index import RuleIndex
from gateway.matching.outcomes import RULES, Matched, Matching, NotMatched
from gateway.matching.pipeline import Facts, match
from gateway.policies.configuration import load
from gateway.policies.decoding.texts import SourceText
from gateway.policies.model import Policy
from gateway.review.request import Request, decode

ROOT = Path(__file__).resolve().parents[1]
RECORDING = ROOT / "tests" / "recordings" / "kubectl-run.0m.json"
TIMES = 2_000
LARGE = 200_000
"""Bytes of the large object: a pod with that many bytes in its annotations and environment."""

POLICY = """
apiVersion: admission-gateway.dev/v1alpha1
kind: Worker
metadata: {name: nobody}
spec: {grpc: {target: "unix:nobody.sock"}}
---
apiVersion: admission-gateway.dev/v1alpha1
kind: ValidatingPolicyConfiguration
metadata: {name: bench}
policies:
- name: judge.bench.example.com
  worker: nobody
  sideEffects: None
"""

PODS = """
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]
"""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of policy: its fields, the size of the object, what matching must come to."""

    name: str
    fields: str
    large: bool = False
    expected: type = Matched


KINDS = (
    Kind(
        name="rules do not match",
        fields='  rules: [{operations: [DELETE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]',
        expected=NotMatched,
    ),
    Kind(name="rules match", fields=PODS),
    Kind(name="and an objectSelector", fields=PODS + "  objectSelector: {matchLabels: {run: kr}}"),
    Kind(
        name="and 1 condition on the request",
        fields=PODS + "  matchConditions: [{name: user, expression: \"request.userInfo.username != 'system:a'\"}]",
    ),
    Kind(
        name="and 2 conditions on the object",
        fields=PODS
        + "  matchConditions:\n"
        + "  - {name: labels, expression: \"has(object.metadata.labels) && 'run' in object.metadata.labels\"}\n"
        + '  - {name: images, expression: "object.spec.containers.all(c, c.image.size() > 0)"}',
    ),
    Kind(
        name="the same, object of 200 KB",
        fields=PODS
        + "  matchConditions:\n"
        + "  - {name: labels, expression: \"has(object.metadata.labels) && 'run' in object.metadata.labels\"}\n"
        + '  - {name: images, expression: "object.spec.containers.all(c, c.image.size() > 0)"}',
        large=True,
    ),
)


def main() -> None:
    """Run the benchmark and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7, help="rounds over all kinds, interleaved (default 7)")
    parser.add_argument("-o", "--output", choices=["text", "json"], default="text")
    arguments = parser.parse_args()
    measured: list[tuple[Kind, Callable[[], float], list[float]]] = [(kind, probe(kind), []) for kind in KINDS]
    for round_ in range(-1, arguments.rounds):
        for kind, run, seconds in measured:
            if sys.stderr.isatty():
                print(f"\r{kind.name:<34} round {max(round_, 0) + 1} of {arguments.rounds} ", end="", file=sys.stderr)
            taken = run()
            if round_ >= 0:
                seconds.append(taken)
    if sys.stderr.isatty():
        print("\r" + " " * 60 + "\r", end="", file=sys.stderr)
    report([(kind.name, seconds) for kind, _, seconds in measured], as_json=arguments.output == "json")


def probe(kind: Kind) -> Callable[[], float]:
    """What measures one kind: CPU seconds for one match."""
    configuration = load([SourceText(name="bench.yaml", content=(POLICY + kind.fields).encode())])
    assert not configuration.errors, configuration.errors
    policy = configuration.validating[0]
    request = review(large=kind.large)
    came_to = judged(policy, RuleIndex([policy]), request, Facts())
    assert isinstance(came_to, kind.expected), came_to
    return lambda: one_round(policy, request)


def one_round(policy: Policy, request: Request) -> float:
    """CPU seconds for one match, over many."""
    facts, index = Facts(), RuleIndex([policy])
    began = time.process_time()
    for _ in range(TIMES):
        judged(policy, index, request, facts)
    return (time.process_time() - began) / TIMES


def judged(policy: Policy, index: RuleIndex, request: Request, facts: Facts) -> Matching:
    """What one policy comes to, as the engine finds it."""
    ruled = index.concerned(request).get(0)
    return RULES if ruled is None else match(policy, ruled, request, lambda: request.object, facts)


def review(*, large: bool) -> Request:
    """The recorded review, with a large object if asked for."""
    body = json.loads(json.loads(RECORDING.read_text())["body"])
    pod = body["request"]["object"]
    pod["metadata"]["labels"] = {"run": "kr"}
    if large:
        pod["metadata"]["annotations"] = {f"example.com/{number}": "x" * 100 for number in range(LARGE // 250)}
        env = [{"name": f"N{number}", "value": "y" * 60} for number in range(LARGE // 200)]
        pod["spec"]["containers"][0]["env"] = env
    return decode(json.dumps(body, separators=(",", ":")).encode())


def report(rows: list[tuple[str, list[float]]], *, as_json: bool) -> None:
    """Medians, and ratios to the first row."""
    first = statistics.median(rows[0][1])
    told = [
        {
            "kind": name,
            "cpu_us": round(1e6 * statistics.median(seconds), 2),
            "cpu_us_min": round(1e6 * min(seconds), 2),
            "cpu_us_max": round(1e6 * max(seconds), 2),
            "ratio": round(statistics.median(seconds) / first, 2),
        }
        for name, seconds in rows
    ]
    if as_json:
        print(json.dumps({"rounds": len(rows[0][1]), "rows": told}, indent=1))
        return
    print(f"{'':<34} {'CPU a policy':>22} {'ratio':>7}")
    for row in told:
        spread = f"{row['cpu_us']} µs ({row['cpu_us_min']}-{row['cpu_us_max']})"
        print(f"{row['kind']:<34} {spread:>22} {row['ratio']:>7}")


if __name__ == "__main__":
    main()
