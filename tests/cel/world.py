"""What these tests share: the input that Kubernetes' environment was given, and expressions of any type, worked out.

A condition is a bool; to see values, costs and types of all expressions, these are compiled without a wanted result.
"""

import base64
import json
import math
from dataclasses import dataclass
from pathlib import Path

from gateway.cel.authorization import Authorization
from gateway.cel.environment import CompileError
from gateway.cel.libraries.authorizer import Authorizer as LibraryAuthorizer
from gateway.cel.libraries.authorizer import request_resource
from gateway.cel.match_conditions import environment
from gateway.cel.program import EvaluationError
from gateway.cel.values.containers import Optional, is_map, items
from gateway.cel.values.durations import Duration
from gateway.cel.values.numbers import Uint, adapted
from gateway.cel.values.timestamps import Timestamp
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


ENVIRONMENT = environment()


def worked_out(expression, given=None):
    """Compile and evaluate an expression of any type."""
    given = given or Given()
    try:
        program = ENVIRONMENT.compile(expression)
    except CompileError as error:
        return Found(kind="compile", detail=str(error))
    authorizer = Authorizer({})
    values = {
        "object": given.object,
        "oldObject": given.old_object,
        "namespaceObject": None,
        "request": given.request,
        "authorizer": LibraryAuthorizer(authorizer),
        "authorizer.requestResource": request_resource(LibraryAuthorizer(authorizer), given.request),
    }
    evaluation = program.evaluate(values)
    if isinstance(evaluation.outcome, EvaluationError):
        return Found(kind="error", detail=evaluation.outcome.message, cost=evaluation.cost)
    return Found(kind="value", detail=as_json(evaluation.outcome), cost=evaluation.cost)


def as_json(value):  # noqa: C901, PLR0911, PLR0912 - one branch for each kind
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
        return {"optional": [as_json(value.value)] if value.present else []}
    if kind is list:
        return {"list": [as_json(element) for element in value]}
    if is_map(value):
        return {"map": sorted(([as_json(key), as_json(found)] for key, found in items(value)), key=json.dumps)}
    return {"opaque": value.CEL.name}
