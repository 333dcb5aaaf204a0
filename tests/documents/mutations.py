"""Recorded requests, inputs over them, and one small change at a random place."""

import copy
import json
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

from hypothesis import strategies as st

from gateway.review.request import Request, decode
from gateway.scopes.inputs import ALWAYS, Inputs
from gateway.scopes.pointer import Pointer
from gateway.scopes.pointer_set import ANY, PointerSet
from tests.scopes.model import above, found, inside
from tests.traffic import recordings

_LARGEST = 10_000
"""Bytes of a recorded body that properties take: all but the ConfigMap of 1 MB, which has a test of its own."""

CHANGEABLE = ("userInfo", "object", "oldObject", "options")
"""Members in which anything can be changed without making the request unreadable."""

SEEDS = st.integers(0, 2**32).map(Random)
"""A source of chance that costs one draw."""


@cache
def requests() -> tuple[dict[str, Any], ...]:
    """The recorded AdmissionRequests, decoded."""
    return tuple(json.loads(each.body)["request"] for each in recordings() if len(each.body) < _LARGEST)


def encoded(request: dict[str, Any]) -> Request:
    """A request, as it would be read from the wire."""
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return decode(json.dumps(review, separators=(",", ":")).encode())


def patterns_for(random: Random, request: dict[str, Any], most: int = 4) -> list[Pointer]:
    """Pointers to what is there, some of them wider, longer, with ``*``, or to what is not there."""
    there = [pointer for name in request if name != "uid" for pointer, _ in found(request[name], (name,))]
    return [_varied(random, random.choice(there)) for _ in range(random.randint(0, most))]


def _varied(random: Random, pointer: Pointer) -> Pointer:
    first, *rest = pointer
    varied = [ANY if random.random() < 0.2 else token for token in rest]
    match random.randrange(6):
        case 0:
            varied = varied[: random.randint(0, len(varied))]
        case 1:
            varied += [random.choice(["name", "0", "00", ANY, "nowhere"])]
        case _:
            pass
    return (first, *varied)


def inputs_of(patterns: list[Pointer]) -> Inputs:
    """Inputs of these pointers."""
    return Inputs(places=PointerSet(patterns))


def visible(pointer: Pointer, patterns: list[Pointer]) -> bool:
    """Whether what stands there is declared: in full, or (the length of an array) as a container on the way."""
    return pointer[0] in ALWAYS or inside(pointer, patterns)


@dataclass(frozen=True, kw_only=True)
class Mutation:
    """A request with one change, and whether the change can be seen through some patterns."""

    request: dict[str, Any]
    seen: bool


def mutated(random: Random, request: dict[str, Any], patterns: list[Pointer]) -> Mutation:
    """Change a scalar, add a member, remove a scalar member, or lengthen an array."""
    request = copy.deepcopy(request)
    containers = [
        (pointer, value)
        for name in CHANGEABLE
        if name in request
        for pointer, value in found(request[name], (name,))
        if isinstance(value, dict) or (isinstance(value, list) and value)
    ]
    pointer, value = random.choice(containers)
    if isinstance(value, list):
        index = random.randrange(len(value))
        if isinstance(value[index], (dict, list)):
            value.append("added")
            # The length of an array on the way is shown.
            return Mutation(request=request, seen=visible(pointer, patterns) or above(pointer, patterns))
        value[index] = _other(value[index])
        return Mutation(request=request, seen=visible((*pointer, str(index)), patterns))
    scalars = [name for name, child in value.items() if not isinstance(child, (dict, list))]
    name = random.choice(["added", *scalars])
    if name in value and random.random() < 0.3:
        del value[name]
    else:
        value[name] = _other(value.get(name))
    return Mutation(request=request, seen=visible((*pointer, name), patterns))


def _other(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return value + "x"
        case _:
            return "added"
