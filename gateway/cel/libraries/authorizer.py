"""``authorizer``: may the user of the request, or a service account, do something? (Kubernetes' authz library.)

``authorizer.group('apps').resource('deployments').namespace('prod').check('create').allowed()`` collects the
attributes; ``check`` makes the check. The results are in the ``Decisions`` of each evaluation: if one is missing,
``Unanswered`` is raised, and the caller can get the result and evaluate again.

A result with an error is not allowed and has no reason: ``errored()`` and ``error()`` return it. (In the API server
a decision may be both; an answer of ours is one of them.)
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

import msgspec

from gateway.cel.authorization import Authorization, AuthorizationCheck
from gateway.cel.libraries.named_formats import label_problems, subdomain_problems
from gateway.cel.libraries.overloads import Library, member
from gateway.cel.values.faults import Fault, Unanswered, no_such_overload
from gateway.cel.values.reflection import Opaque
from gateway.cel.values.types import Type, written

Decisions = Mapping[AuthorizationCheck, Authorization]


class _Receiver(Opaque, frozen=True, eq=False):
    """None of these is equal to anything: comparing them is an error, even with themselves."""

    def equals(self, other: Any) -> bool:
        """``==``: always an error."""
        del other
        raise no_such_overload()


class Authorizer(_Receiver, frozen=True, eq=False):
    """Whose permission is checked: a service account's, or for None that of the user of the request."""

    decisions: Decisions
    service_account: tuple[str, str] | None = None

    CEL: ClassVar[Type] = written("kubernetes.authorization.Authorizer")


class PathCheck(_Receiver, frozen=True, eq=False):
    """The attributes of a check about a path."""

    authorizer: Authorizer
    path: str

    CEL: ClassVar[Type] = written("kubernetes.authorization.PathCheck")


class GroupCheck(_Receiver, frozen=True, eq=False):
    """An API group, still without a resource."""

    authorizer: Authorizer
    group: str

    CEL: ClassVar[Type] = written("kubernetes.authorization.GroupCheck")


class ResourceCheck(_Receiver, frozen=True, eq=False):
    """The attributes of a check about a resource, without the verb."""

    authorizer: Authorizer
    check: AuthorizationCheck

    CEL: ClassVar[Type] = written("kubernetes.authorization.ResourceCheck")


class Decision(_Receiver, frozen=True, eq=False):
    """The answer."""

    authorization: Authorization

    CEL: ClassVar[Type] = written("kubernetes.authorization.Decision")


def request_resource(authorizer: Authorizer, request: Mapping[str, Any]) -> ResourceCheck:
    """``authorizer.requestResource``: the resource of the request, as the client requested it."""
    resource = request.get("requestResource") or request.get("resource") or {}
    check = AuthorizationCheck(
        verb="",
        group=resource.get("group", ""),
        resource=resource.get("resource", ""),
        subresource=request.get("requestSubResource") or request.get("subResource") or "",
        namespace=request.get("namespace", ""),
        name=request.get("name", ""),
    )
    return ResourceCheck(authorizer, check)


def _path(authorizer: Authorizer, path: str) -> PathCheck:
    if not path.strip():
        raise Fault("path must not be empty")
    return PathCheck(authorizer, path)


def _service_account(authorizer: Authorizer, namespace: str, name: str) -> Authorizer:
    if subdomain_problems(name):
        raise Fault("Invalid service account name")
    if label_problems(namespace):
        raise Fault("Invalid service account namespace")
    return Authorizer(authorizer.decisions, (namespace, name))


def _resource(group: GroupCheck, resource: str) -> ResourceCheck:
    if not resource.strip():
        raise Fault("resource must not be empty")
    return ResourceCheck(group.authorizer, AuthorizationCheck(verb="", group=group.group, resource=resource))


def _with(member_name: str) -> Any:
    """A function that adds one attribute to a check."""
    return lambda check, value: ResourceCheck(
        check.authorizer, msgspec.structs.replace(check.check, **{member_name: value})
    )


def _check_path(check: PathCheck, verb: str) -> Decision:
    return _decide(check.authorizer, AuthorizationCheck(verb=verb, path=check.path))


def _check_resource(check: ResourceCheck, verb: str) -> Decision:
    return _decide(check.authorizer, msgspec.structs.replace(check.check, verb=verb))


def _decide(authorizer: Authorizer, check: AuthorizationCheck) -> Decision:
    check = msgspec.structs.replace(check, service_account=authorizer.service_account)
    answer = authorizer.decisions.get(check)
    if answer is None:
        raise Unanswered(check)
    return Decision(answer)


_A, _P, _G, _R, _D = (kind.CEL.name for kind in (Authorizer, PathCheck, GroupCheck, ResourceCheck, Decision))

AUTHORIZER: Final = Library(
    overloads=(
        member("authorizer_path", f"{_A}.path(string) -> {_P}", _path),
        member("authorizer_group", f"{_A}.group(string) -> {_G}", GroupCheck),
        member("authorizer_serviceaccount", f"{_A}.serviceAccount(string, string) -> {_A}", _service_account),
        member("groupcheck_resource", f"{_G}.resource(string) -> {_R}", _resource),
        member("resourcecheck_subresource", f"{_R}.subresource(string) -> {_R}", _with("subresource")),
        member("resourcecheck_namespace", f"{_R}.namespace(string) -> {_R}", _with("namespace")),
        member("resourcecheck_name", f"{_R}.name(string) -> {_R}", _with("name")),
        member("pathcheck_check", f"{_P}.check(string) -> {_D}", _check_path),
        member("resourcecheck_check", f"{_R}.check(string) -> {_D}", _check_resource),
        member("decision_allowed", f"{_D}.allowed() -> bool", lambda decision: decision.authorization.allowed),
        member("decision_reason", f"{_D}.reason() -> string", lambda decision: decision.authorization.reason),
        member("decision_errored", f"{_D}.errored() -> bool", lambda decision: bool(decision.authorization.error)),
        member("decision_error", f"{_D}.error() -> string", lambda decision: decision.authorization.error),
    ),
)

SELECTORS: Final = Library(
    overloads=(
        member("authorizer_fieldselector", f"{_R}.fieldSelector(string) -> {_R}", _with("field_selector")),
        member("authorizer_labelselector", f"{_R}.labelSelector(string) -> {_R}", _with("label_selector")),
    ),
)
