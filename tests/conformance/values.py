"""Cases of google/cel-spec's simple tests: an expression and its value, of any type, or the fact of an error.

A matchCondition is a bool, so the value is compared: ``EXPRESSION == VALUE && type(EXPRESSION) == TYPE``. An
expression whose evaluation fails makes the whole fail; one that does not compile is an error as well, as the suite has
it.
"""

import base64
import json
from collections.abc import Callable
from typing import Any

from gateway.cel.match_conditions import compile_condition
from gateway.cel.program import EvaluationError
from tests.conformance.cases import Case, CaseError, Result, member

KIND = "value"

_TYPES = {
    "int64Value": "int",
    "uint64Value": "uint",
    "doubleValue": "double",
    "stringValue": "string",
    "bytesValue": "bytes",
    "boolValue": "bool",
    "nullValue": "null_type",
    "listValue": "list",
    "mapValue": "map",
    "typeValue": "type",
}


class _Nothing:
    """No object, no request: these expressions name none."""

    object = None
    old_object = None
    request: dict[str, Any] = {}  # noqa: RUF012 - never changed


def recognizes(case: Case) -> bool:
    """Whether this is such a case."""
    return case.has("expr") and not case.has("outcome") and (case.has("kubernetes") or case.has("section"))


def run(case: Case) -> Result:
    """Compile and evaluate the question whether the expression has its value."""
    expression = case.get("expr", str)
    fails = "evalError" in case.members
    typed = case.members.get("typedResult") or {}
    value = case.members.get("value") or member(typed, "result", dict, {"boolValue": True})
    question = f"dyn({expression}\n) == null" if fails else _question(expression, value)
    got = _outcome(question)
    agrees = got in {"error", "compileError"} if fails else got == "true"
    expected = "error" if fails else value
    return Result(expected=expected, got=expected if agrees else {"question": question, "outcome": got}, agrees=agrees)


def _question(expression: str, value: dict[str, Any]) -> str:
    if len(value) != 1 or not value.keys() <= _TYPES.keys():
        raise CaseError(f"value: {json.dumps(value)[:80]} is none that a JSON engine has")
    (kind, content), *_ = value.items()
    is_type = f"type(dyn({expression}\n)) == {_TYPES[kind]}"
    if kind == "doubleValue" and content == "NaN":
        return f"{is_type} && dyn({expression}\n) != dyn({expression}\n)"
    return f"{is_type} && dyn({expression}\n) == {_literal(kind, content)}"


def _list(content: Any) -> str:
    return f"[{', '.join(_any(each) for each in member(content, 'values', list, []))}]"


def _map(content: Any) -> str:
    pairs = [(each["key"], each["value"]) for each in member(content, "entries", list, [])]
    return "{" + ", ".join(f"{_any(key)}: {_any(value)}" for key, value in pairs) + "}"


_LITERALS: dict[str, Callable[[Any], str]] = {
    "int64Value": str,
    "uint64Value": lambda content: f"{content}u",
    "doubleValue": lambda content: f"double('{content}')",
    "stringValue": lambda content: "'" + "".join(f"\\U{ord(char):08x}" for char in content) + "'",
    "bytesValue": lambda content: "b'" + "".join(f"\\x{byte:02x}" for byte in base64.b64decode(content)) + "'",
    "boolValue": lambda content: str(content).lower(),
    "nullValue": lambda _: "null",
    "listValue": _list,
    "mapValue": _map,
    "typeValue": str,
}
"""The value as CEL writes it."""


def _literal(kind: str, content: Any) -> str:
    return _LITERALS[kind](content)


def _any(value: dict[str, Any]) -> str:
    # Lists and maps of literals have one type; these may have several.
    return f"dyn({_literal(*next(iter(value.items())))})"


def _outcome(question: str) -> str:
    condition = compile_condition(question)
    if condition.error is not None:
        return "compileError"
    outcome = condition.evaluate(_Nothing(), {}).outcome
    return "error" if isinstance(outcome, EvaluationError) else str(outcome).lower()
