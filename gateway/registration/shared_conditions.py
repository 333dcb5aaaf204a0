"""The matchConditions of an entry of several policies: false where each of them has a false condition of its own.

The API server then does not call the gateway for what no policy wants. They are those of all policies, if these are the
same, else one condition, the disjunction of the policies'
conjunctions: CEL's ``&&`` is false if any operand is, else an error if any is, as matchConditions are; and ``||`` is
true if any operand is, else an error if any is.

If the disjunction is false, no policy matches the object as the client sent it, so no mutating one changes it for
another. If it is an error, none matches and one has an error: under Fail the API server refuses the request as the
gateway would. That is so only if the API server evaluates a policy's conditions for nothing that the policy does not
judge, and with the gateway's result. So there is a condition only if

* all policies have conditions, and the same rules and selectors, and enforce under Fail (under Ignore the API server
  would ignore an error in silence, where the gateway warns);
* all expressions are simple: they cost so little that together they stay below Kubernetes' limits, which count for the
  disjunction as for one expression, and they ask no authorizer, whose answer may be another a moment later.

Simple are: members of ``object``, ``oldObject`` and ``request``; ``has()``; indexes; ``&&``, ``||``, ``!``, ``?:``;
comparisons, ``startsWith`` and ``endsWith`` with a literal; ``in`` a list of literals, labels or annotations.
"""

from collections.abc import Sequence
from typing import Final

from gateway.cel.match_conditions import compile_condition, environment
from gateway.cel.parser import ast
from gateway.policies.model import FailurePolicy, MatchCondition, Mode, Policy

NAME: Final = "admission-gateway.dev/policies"

LARGEST_SIZE: Final = 10_000
"""Nodes, list elements and characters of literals in all expressions together. Each costs one at most when it is
evaluated, and an expression may cost a million (celconfig.PerCallLimit)."""

_OPERATORS: Final = frozenset({"!_", "_&&_", "_||_", "_?_:_"})
_COMPARISONS: Final = frozenset({"_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"})
_PREFIXES: Final = frozenset({"startsWith", "endsWith"})
_VARIABLES: Final = frozenset({"object", "oldObject", "request"})
_STRING_MAPS: Final = frozenset({"labels", "annotations"})


def shared_conditions(policies: Sequence[Policy]) -> tuple[MatchCondition, ...]:
    """The conditions for an entry of these policies; () if none mean the same."""
    first = policies[0]
    matched = first.rules, first.namespace_selector, first.object_selector
    if not all(
        each.match_conditions
        and (each.rules, each.namespace_selector, each.object_selector) == matched
        and each.failure_policy is FailurePolicy.FAIL
        and each.mode is Mode.ENFORCE
        and all(condition.condition.error is None for condition in each.match_conditions)
        for each in policies
    ):
        return ()
    conjunctions = dict.fromkeys(_conjunction(each.match_conditions) for each in policies)
    sizes = [_size_of(each.condition.expression) for policy in policies for each in policy.match_conditions]
    if None in sizes or sum(filter(None, sizes)) > LARGEST_SIZE:
        return ()
    if len(conjunctions) == 1:
        # Then an error has Kubernetes' words.
        return first.match_conditions
    condition = compile_condition(" || ".join(f"({each})" for each in conjunctions))
    return () if condition.error is not None else (MatchCondition(name=NAME, condition=condition),)


def _conjunction(conditions: Sequence[MatchCondition]) -> str:
    # The line break ends a comment that an expression may end with.
    return " && ".join(f"({each.condition.expression}\n)" for each in conditions)


def _size_of(expression: str) -> int | None:
    """The size of a simple expression; None: it is not simple."""
    tree = environment().parse(expression)
    return None if tree is None else _size(tree)


def _size(node: ast.Node) -> int | None:
    match node:
        case ast.Literal(value=value):
            return 1 + (len(value) if isinstance(value, str | bytes) else 0)
        case ast.Name(name=name):
            return 1 if name in _VARIABLES else None
    parts = _parts(node)
    sizes = [None] if parts is None else [_size(part) for part in parts]
    return None if None in sizes else 1 + sum(filter(None, sizes))


def _parts(node: ast.Node) -> Sequence[ast.Node] | None:
    """What a simple expression is made of; None: it is not simple."""
    match node:
        case ast.Select(operand=operand):
            return (operand,)
        case ast.ListLiteral(elements=elements, optional=optional) if not optional:
            return elements if all(map(_is_literal, elements)) else None
        case ast.Call(function=function, target=None, arguments=arguments):
            return arguments if _is_simple(function, arguments) else None
        case ast.Call(function=function, target=ast.Node() as target, arguments=(ast.Literal() as part,)):
            return (target, part) if function in _PREFIXES else None
    return None


def _is_simple(function: str, arguments: Sequence[ast.Node]) -> bool:
    if function in _OPERATORS:
        return True
    if function in _COMPARISONS:
        return any(map(_is_literal, arguments))
    if function == "_[_]":
        return _is_literal(arguments[1])
    if function == "@in":
        return isinstance(arguments[1], ast.ListLiteral) or (
            _is_literal(arguments[0])
            and isinstance(arguments[1], ast.Select)
            and arguments[1].member in _STRING_MAPS
            and isinstance(arguments[1].operand, ast.Select)
            and arguments[1].operand.member == "metadata"
        )
    return False


def _is_literal(node: ast.Node) -> bool:
    return isinstance(node, ast.Literal)
