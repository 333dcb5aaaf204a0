"""What these tests share: the input that Kubernetes' environment was given, and expressions of any type, worked out.

A condition is a bool; to see values, costs and types of all expressions, these are taken through the same steps here.
"""

import base64
import json
import math
from dataclasses import dataclass
from pathlib import Path

from gateway.cel.authorization import Authorization
from gateway.cel.compilation import _fill
from gateway.cel.language.checker import check
from gateway.cel.language.frame import Frame
from gateway.cel.language.literals import validate
from gateway.cel.language.parser import parse
from gateway.cel.language.plan import Uninstantiable, plan
from gateway.cel.language.source import describe
from gateway.cel.language.wording import reworded
from gateway.cel.values.containers import Optional, is_map, items
from gateway.cel.values.faults import Aborted, Fault
from gateway.cel.values.numbers import Uint, adapted
from gateway.cel.values.times import Duration, Timestamp
from gateway.cel.values.types import Type

CASES = Path(__file__).parents[1] / "conformance" / "cases" / "cel_matchconditions_env.jsonl"


class Given:
    """The variables of a request; by default those that Kubernetes' environment was given."""

    def __init__(self, **variables):
        given = json.loads(CASES.read_bytes().splitlines()[0])["input"] | variables
        hidden = ("uid", "object", "oldObject")
        self.object = given["object"]
        self.old_object = given["oldObject"]
        self.request = {name: value for name, value in given["request"].items() if name not in hidden}


class Authorizer(dict):
    """The authorizer that it was given: it knows an answer to every check."""

    def get(self, check, default=None):
        if check.verb == "breakglass" or (check.resource == "deployments" and check.namespace == "prod"):
            return Authorization(allowed=True)
        return Authorization(error="boom error") if check.verb == "boom" else Authorization(reason="no")


@dataclass(frozen=True, kw_only=True)
class Found:
    """What became of an expression: kind is value, error or compile."""

    kind: str
    detail: object
    cost: int = 0


def worked_out(expression, given=None):
    """Take an expression of any type through all steps."""
    parsed = parse(expression)
    if parsed.tree is None:
        return Found(kind="compile", detail=f"compilation failed: {reworded(expression, parsed.problems)}")
    checked = check(parsed.tree)
    problems = checked.problems or validate(parsed.tree, checked)
    if problems:
        return Found(kind="compile", detail=f"compilation failed: {describe(expression, problems)}")
    try:
        planned = plan(parsed.tree, checked)
    except Uninstantiable as error:
        return Found(kind="compile", detail=f"program instantiation failed: {error}")
    frame = Frame([None] * planned.slots)
    _fill(frame, planned.used, given or Given(), Authorizer())
    try:
        value = planned.run(frame)
        frame.settle()
    except (Fault, Aborted) as fault:
        return Found(kind="error", detail=fault.message, cost=frame.cost)
    return Found(kind="value", detail=told(value), cost=frame.cost)


def told(value):  # noqa: C901, PLR0911, PLR0912 - one branch for each kind
    """A value as the tables have it: ``{"int": "1"}``."""
    value = adapted(value)
    kind = type(value)
    if kind is bool:
        return {"bool": value}
    if kind is Uint:
        return {"uint": str(int(value))}
    if kind is int:
        return {"int": str(value)}
    if kind is float:
        return {"double": "NaN" if math.isnan(value) else value}
    if kind is str:
        return {"string": value}
    if kind is bytes:
        return {"bytes": base64.b64encode(value).decode()}
    if value is None:
        return {"null": True}
    if kind is Timestamp:
        return {"timestamp": f"{value.seconds}.{value.nanos:09}"}
    if kind is Duration:
        return {"duration": str(value.nanoseconds)}
    if kind is Type:
        return {"type": value.name}
    if kind is Optional:
        return {"optional": [told(value.value)] if value.present else []}
    if kind is list:
        return {"list": [told(element) for element in value]}
    if is_map(value):
        return {"map": sorted(([told(key), told(found)] for key, found in items(value)), key=json.dumps)}
    return {"opaque": value.CEL.name}
