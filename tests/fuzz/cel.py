"""Whatever expression a matchCondition is: it compiles, or has an error; and its evaluation ends, within its budget.

* Compiling and evaluating never raise. A value is true, false, an error, or a check of authorization that it needs.
* What it costs is counted, and is not more than the limit allows. An outcome does not change when it is asked again.
* No error of an expression is an error of the evaluator ("internal").

An input is the expression, a zero byte, and the object as JSON; without that, it is a Pod.
"""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from gateway.cel.authorization import Authorization
from gateway.cel.budget import LARGEST_COST
from gateway.cel.environment import CompileError
from gateway.cel.match_conditions import compile_condition, environment
from gateway.cel.program import EvaluationError, NeedsAuthorization
from gateway.patching.errors import PatchError
from gateway.patching.parsing import parse_object

CASES = Path(__file__).parents[1] / "conformance" / "cases" / "cel_matchconditions_env.jsonl"
LONGEST = 2048
"""Bytes of an expression: a longer one is only slower."""

WORDS = (
    b"object | oldObject | request | namespaceObject | authorizer | has( | .all(x,  | .exists(x,  | .map(x,  | "
    b".filter(x,  | size( | .matches(' | in  | ? | : | && | || | ! | == | != | <= | [? | .? | optional.of( | "
    b"duration('1h') | timestamp('2026-01-01T00:00:00Z') | quantity('1Ki') | ip('::1') | cidr('10.0.0.0/8') | "
    b"semver('1.2.3') | url('http://a') | .format([ | '%s %d %f %e %b %x' | .sort() | .flatten( | "
    b"lists.range( | b'\\xff' | r' | \"\"\" | \\u0000 | 9223372036854775807 | 1u | 1e308 | dyn( | type( | "
    b"string( | bytes( | transformMap(k, v,  | ((((( | [[[[ | {'a':  | -- | -9223372036854775808 | "
    b".check('get').allowed()"
).split(b" | ")


class _Variables:
    def __init__(self, found: Any) -> None:
        self.object = found
        self.old_object = None
        self.request = _given()["request"]


@cache
def _given() -> dict[str, Any]:
    return json.loads(CASES.read_bytes().splitlines()[0])["input"]


def seeds() -> Iterator[bytes]:
    """The expressions of conformance, each with the object that Kubernetes had."""
    for line in CASES.read_text().splitlines()[1:]:
        yield json.loads(line)["expr"].encode()
    yield b"object.a.all(x, x > 0)\x00" + b'{"a":[1,2,3]}'
    yield b"object.a.map(x, object.a.map(y, x + y)).size() > 0\x00" + b'{"a":[1,2,3,4,5,6,7,8]}'


def run(data: bytes) -> None:
    """See the invariant above."""
    text, _, content = data.partition(b"\x00")
    expression = text[:LONGEST].decode("utf-8", "replace")
    found = _given()["object"]
    if content:
        try:
            found = parse_object(content)
        except PatchError:
            return
    condition = compile_condition(expression)
    if condition.error is None:
        _evaluate(condition, found)
    else:
        assert condition.error
    compile_condition.cache_clear()
    try:
        program = environment().compile(expression)
    except CompileError:
        return
    if set(program.variables) <= {"object"}:
        outcome = program.evaluate(dict.fromkeys(program.variables, found)).outcome
        assert not _is_internal(outcome), outcome


def _evaluate(condition: Any, found: Any) -> None:
    variables = _Variables(found)
    authorizations: dict[Any, Authorization] = {}
    for _ in range(20):
        evaluation = condition.evaluate(variables, authorizations)
        outcome = evaluation.outcome
        assert isinstance(outcome, bool | EvaluationError | NeedsAuthorization)
        assert not _is_internal(outcome), outcome
        assert 0 <= evaluation.cost <= 2 * LARGEST_COST
        assert msgspec.structs.asdict(evaluation) == msgspec.structs.asdict(
            condition.evaluate(variables, authorizations)
        )
        if not isinstance(outcome, NeedsAuthorization):
            return
        authorizations[outcome.check] = Authorization(allowed=len(authorizations) % 2 == 0)


def _is_internal(outcome: Any) -> bool:
    return isinstance(outcome, EvaluationError) and outcome.message.startswith("internal error")
