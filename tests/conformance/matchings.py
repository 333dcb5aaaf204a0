"""Cases of the matching pipeline: one webhook and one request -> called, with which resource and kind, or an error.

Expected is ``{call: false}``, ``{call: true, resource, subResource, kind}`` or ``{error: {code, reason, message}}``;
messages are shown, and not compared, and neither is what ``expected`` does not say. A request that a webhook wants in
another version is converted, as the API server does, and matched again: the gateway itself says WrongVersion, since it
cannot convert.
"""

from types import NoneType
from typing import Any

import msgspec

from gateway.cel.match_conditions import compile_condition
from gateway.cel.program import NeedsAuthorization
from gateway.engine.invocation_record import refuses
from gateway.engine.match_errors import undecided
from gateway.engine.response_builder import INTERNAL_ERROR, STATUSES
from gateway.matching.equivalents import Equivalents, ServedResource
from gateway.matching.outcomes import Matched, NotMatched, Undecidable, WrongVersion
from gateway.matching.pipeline import Facts
from gateway.policies.model import (
    FailurePolicy,
    MatchCondition,
    MatchPolicy,
    Phase,
    Policy,
    Requirement,
    Rule,
    Scope,
    Selector,
)
from gateway.review.request import GroupVersionKind, GroupVersionResource, Request
from gateway.serving.dispatch_simulator import is_unsent
from tests.conformance.cases import Case, CaseError, Result, checked, member
from tests.conformance.requests import authorize, to_request
from tests.matching.lookup import matching as matched

KIND = "matching"

_CALLED = ("resource", "subResource", "kind")

NOTHING = Selector(requirements=(Requirement(key="", operator="In"),))
"""A nil LabelSelector: "A null label selector matches no objects"."""

_FACTS_AT_MOST = 1000
"""More facts than any condition can need: a webhook has 64 conditions."""


def recognizes(case: Case) -> bool:
    """Whether this is such a case."""
    return case.has("webhook", "attributes")


def run(case: Case) -> Result:
    """Match."""
    env = case.get("env", (dict, NoneType), {}) or {}
    policy = to_policy(case.get("webhook", dict))
    attributes = case.get("attributes", dict)
    expected = case.get("expected", (dict, bool))
    expected = {"call": expected} if isinstance(expected, bool) else expected
    got = _outcome(policy, attributes, env, _equivalents(env))
    return Result(expected=expected, got=got, agrees=_agree(expected, got))


def _agree(expected: dict[str, Any], got: dict[str, Any]) -> bool:
    if "error" in expected:
        error = expected["error"] if isinstance(expected["error"], dict) else {}
        names = [name for name in ("code", "reason") if name in error]
        return "error" in got and all(error[name] == got["error"][name] for name in names)
    if "error" in got or not expected.get("call"):
        return "error" not in got and not got["call"] and not expected.get("call")
    return got["call"] and all(_same_name(expected[name], got[name]) for name in _CALLED if name in expected)


def _same_name(one: Any, other: Any) -> bool:
    """Whether two groups, versions and kinds (or resources) are the same; a member left out is an empty one."""
    if isinstance(other, dict):
        one = checked(one, (dict, NoneType), "expected") or {}
        return all((one.get(name) or "") == value for name, value in other.items())
    return (one or "") == other


def _outcome(policy: Policy, attributes: Any, env: Any, equivalents: Equivalents) -> dict[str, Any]:
    request = to_request(attributes)
    if is_unsent(request):
        return {"call": False}
    matching = _match(policy, request, env, equivalents)
    if isinstance(matching, WrongVersion):
        if matching.kind is None:
            return _error(INTERNAL_ERROR, matching.message)
        request = to_request(attributes, resource=matching.resource, kind=matching.kind)
        matching = _match(policy, request, env, equivalents)
    match matching:
        case Matched():
            return {
                "call": True,
                "resource": msgspec.to_builtins(request.resource),
                "subResource": request.sub_resource,
                "kind": msgspec.to_builtins(request.kind),
            }
        case NotMatched():
            return {"call": False}
        case Undecidable(reason=reason, message=message):
            if refuses(undecided(matching), policy):
                return _error(STATUSES.get(reason, INTERNAL_ERROR), message)
            return {"call": False}
        case other:
            raise CaseError(f"the gateway says {other!r}, after the object was converted")


def _error(status: tuple[int, str], message: str) -> dict[str, Any]:
    return {"error": {"code": status[0], "reason": status[1], "message": message}}


def _match(policy: Policy, request: Request, env: Any, equivalents: Equivalents) -> Any:
    """The result of matching with the labels of the request's namespace and all authorizations that it requests."""
    known = member(env, "namespaces", dict, {})
    name = request.namespace
    namespaces = {name: member(known, name, dict, {}) if name in known else None}
    facts = Facts(namespaces=namespaces, authorizations={})
    for _ in range(_FACTS_AT_MOST):
        matching = matched(policy, request, facts, table=equivalents)
        match matching:
            case NeedsAuthorization(check=check):
                facts.authorizations[check] = authorize(env.get("authorizer"), check, request.user_info.username)
            case _:
                return matching
    raise CaseError(f"after {_FACTS_AT_MOST} facts matching needs another one")


def to_policy(webhook: Any, phase: Phase = Phase.VALIDATING) -> Policy:
    """The policy that a webhook of a case is; what it does not say has Go's meaning of nil, not a default."""
    return Policy(
        phase=phase,
        configuration="conformance",
        index=0,
        name=member(webhook, "name", str, "webhook.example.com"),
        worker="webhook",
        policy="webhook",
        rules=tuple(_rule(rule) for rule in member(webhook, "rules", list, [])),
        namespace_selector=selector(webhook, "namespaceSelector"),
        object_selector=selector(webhook, "objectSelector"),
        match_conditions=tuple(_condition(each) for each in member(webhook, "matchConditions", list, [])),
        match_policy=MatchPolicy(member(webhook, "matchPolicy", str, "Exact")),
        failure_policy=FailurePolicy(member(webhook, "failurePolicy", str, "Fail")),
    )


def _rule(rule: Any) -> Rule:
    def texts(name: str) -> tuple[str, ...]:
        return tuple(checked(each, str, name) for each in member(rule, name, list, []))

    return Rule(
        operations=texts("operations"),
        api_groups=texts("apiGroups"),
        api_versions=texts("apiVersions"),
        resources=texts("resources"),
        scope=Scope(member(rule, "scope", str, "*")),
    )


def _condition(condition: Any) -> MatchCondition:
    expression = member(condition, "expression", str)
    return MatchCondition(name=member(condition, "name", str, expression), condition=compile_condition(expression))


def selector(container: Any, name: str) -> Selector:
    """A LabelSelector of a case; nil selects nothing."""
    written = member(container, name, dict, None)
    if written is None:
        return NOTHING
    labels = member(written, "matchLabels", dict, {})
    requirements = [Requirement(key=key, operator="In", values=(value,)) for key, value in sorted(labels.items())]
    for each in member(written, "matchExpressions", list, []):
        values = tuple(member(each, "values", list, []))
        requirements.append(
            Requirement(key=member(each, "key", str), operator=member(each, "operator", str), values=values)
        )
    return Selector(requirements=tuple(requirements))


def _equivalents(env: Any) -> Equivalents:
    served = tuple(_served(each) for each in member(env, "registeredKindsInOrder", list, []))
    identities = {}
    if member(env, "equivalence", str, "").startswith("deployments in every group share one identity"):
        shared = {(each.resource.group, each.resource.resource) for each in served}
        identities = {pair: "deployments" for pair in shared if pair[1] == "deployments"}
    return Equivalents(served=served, identities=identities)


def _served(each: Any) -> ServedResource:
    return ServedResource(
        resource=_converted(member(each, "resource", dict), GroupVersionResource),
        kind=_kind(member(each, "kind", dict, {})),
        sub_resource=member(each, "subResource", str, ""),
    )


def _kind(written: dict[str, Any]) -> GroupVersionKind | None:
    """A kind of the registry; "kind.Empty()" is an unknown one."""
    return _converted(written, GroupVersionKind) if any(written.values()) else None


def _converted(value: Any, kind: Any) -> Any:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise CaseError(f"{kind.__name__}: {error}") from None
