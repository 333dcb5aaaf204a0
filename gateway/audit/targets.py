"""Which existing objects the validating policies are about: (policies, served resources) -> targets. Pure.

A target is a resource in one version, and the policies that judge its objects as a CREATE, or as an UPDATE:

* A policy judges a resource in the first version that its rules name, in discovery's order: the preferred one first.
  The API server converts what it lists. Groups that serve the same objects (``in_all_groups``) count as one resource.
* It judges a CREATE if its rules have one for the resource, else an UPDATE. Rules with only DELETE or CONNECT, and
  rules about subresources, are about no existing object.
* It is not audited if its ``sideEffects`` rule out dry runs, if it is wrong as it is configured, or if no resource is
  left. What is never sent to webhooks (``is_unsent``) is no resource of any policy.

Selectors and conditions are not decided here, but for each object, as in a review.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from gateway.gotypes.meta import group_version
from gateway.matching.equivalents import in_all_groups
from gateway.matching.rules import is_namespace, matches
from gateway.policies.model import Configuration, Policy
from gateway.review.request import GroupVersionResource

CREATE: Final = "CREATE"
UPDATE: Final = "UPDATE"
OPERATIONS: Final = (CREATE, UPDATE)
"""As what an object is judged, the first that the rules name."""

_CONFIGURES_ADMISSION: Final = "admissionregistration.k8s.io"
"""Objects of this group are sent to no webhook that is registered there."""


class ServedResource(Struct, frozen=True, kw_only=True):
    """A resource whose objects can be listed. ``kind`` is that of its objects."""

    group: str
    version: str
    name: str
    kind: str
    namespaced: bool

    @property
    def resource(self) -> GroupVersionResource:
        """As a request names it."""
        return GroupVersionResource(group=self.group, version=self.version, resource=self.name)

    @property
    def api_version(self) -> str:
        """``v1``, ``apps/v1``."""
        return group_version(self.group, self.version)

    def __str__(self) -> str:
        """``pods``, ``deployments.apps``: as kubectl names it."""
        return f"{self.name}.{self.group}" if self.group else self.name


class Target(Struct, frozen=True, kw_only=True):
    """A resource, and the policies that judge its objects, by operation, in chain order."""

    resource: ServedResource
    policies: Mapping[str, tuple[Policy, ...]]


class AuditScope(Struct, frozen=True, kw_only=True):
    """What is audited: ``targets`` in discovery's order; ``excluded``: why a policy is not, by its qualified name."""

    targets: tuple[Target, ...]
    excluded: Mapping[str, str] = field(default_factory=dict)


def audit_scope(policies: Sequence[Policy], served: Sequence[ServedResource]) -> AuditScope:
    """The scope of an audit.

    Args:
        policies: validating ones, in chain order.
        served: all resources, those of a group in order of preference.
    """
    chosen: dict[ServedResource, dict[str, list[Policy]]] = {}
    excluded: dict[str, str] = {}
    for policy in policies:
        why = unauditable(policy)
        found = [] if why else list(_judged(policy, served))
        if found:
            for resource, operation in found:
                chosen.setdefault(resource, {}).setdefault(operation, []).append(policy)
        else:
            excluded[policy.qualified_name] = why or _NO_OBJECTS
    targets = (
        Target(resource=each, policies={name: tuple(chosen[each][name]) for name in OPERATIONS if name in chosen[each]})
        for each in served
        if each in chosen
    )
    return AuditScope(targets=tuple(targets), excluded=excluded)


_NO_OBJECTS: Final = "its rules name no CREATE or UPDATE of a resource that can be listed here"


def unauditable(policy: Policy) -> str:
    """Why a policy can judge no existing object; "" if it can."""
    if policy.fault is not None:
        return f"it has an error: {policy.fault}"
    if not policy.side_effects.permits_dry_run:
        return f"sideEffects is {policy.side_effects.value}: its worker must not be called for a dry run"
    return ""


def _judged(policy: Policy, served: Iterable[ServedResource]) -> Iterable[tuple[ServedResource, str]]:
    """The resources that a policy judges, each in one version, with the operation."""
    by_object: dict[frozenset[tuple[str, str]], list[ServedResource]] = {}
    for each in served:
        if each.group != _CONFIGURES_ADMISSION:
            groups = frozenset((same.group, same.resource) for same in in_all_groups(each.resource))
            by_object.setdefault(groups, []).append(each)
    for versions in by_object.values():
        for operation in OPERATIONS:
            found = next((each for each in versions if has_rule(policy, each, operation)), None)
            if found is not None:
                yield found, operation
                break


def has_rule(policy: Policy, served: ServedResource, operation: str) -> bool:
    """Whether a policy judges this operation on objects of a resource."""
    namespaced = served.namespaced and not is_namespace(served.resource)
    return any(matches(rule, operation, served.resource, "", namespaced=namespaced) for rule in policy.rules)


def narrowed(configuration: Configuration, names: Collection[str]) -> Configuration:
    """The configuration without what an audit does not call: other policies and their workers, shadows.

    Args:
        configuration: complete.
        names: of the policies to keep, or CONFIGURATION/NAME; none: all validating ones.

    Raises:
        ValueError: a name is no validating policy.
    """
    known = {name for each in configuration.validating for name in (each.name, each.qualified_name)}
    for name in names:
        if name not in known:
            raise ValueError(f"{name}: no validating policy of this name")
    kept = [each for each in configuration.validating if not names or {each.name, each.qualified_name} & set(names)]
    workers = {each.worker for each in kept}
    return replace(
        configuration,
        mutating=(),
        validating=tuple(replace(each, shadow=None) for each in kept),
        workers={name: each for name, each in configuration.workers.items() if name in workers},
    )
