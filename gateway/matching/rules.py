"""Whether a rule matches a request: kube-apiserver's matcher, line by line.

A rule matches if its scope, operation, group, version and resource all match; the first matching rule wins. ``*``
matches anything in its list. Resources:

=========  =====================================================
entry      matches
=========  =====================================================
``r``      the resource r itself, no subresource
``r/s``    subresource s of r
``r/*``    r and all its subresources
``*``      every resource itself, no subresource
``*/s``    subresource s of every resource
``*/*``    every resource and every subresource
=========  =====================================================

Scope: "namespace objects are cluster-scoped", although a request about one carries its name as ``namespace``.
"""

from typing import Final, Protocol

from gateway.policies.model import Rule, Scope
from gateway.review.request import GroupVersionResource

ANY: Final = "*"


class Matcher(Protocol):
    """``matches`` or ``matches_any_version``."""

    def __call__(
        self, rule: Rule, operation: str, resource: GroupVersionResource, sub_resource: str, *, namespaced: bool
    ) -> bool:
        """Whether the rule matches."""


def is_namespace(resource: GroupVersionResource) -> bool:
    """Whether a request is about a core/v1 Namespace object."""
    return resource.resource == "namespaces" and resource.group == "" and resource.version == "v1"


def matches(rule: Rule, operation: str, resource: GroupVersionResource, sub_resource: str, *, namespaced: bool) -> bool:
    """Whether ``rule`` matches this operation on this resource, in this version.

    Args:
        rule: as configured.
        operation: CREATE, UPDATE, DELETE or CONNECT.
        resource: the resource, the delivered one or the client's own, depending on matchPolicy.
        sub_resource: empty for the resource itself.
        namespaced: whether the resource is in a namespace; False for a Namespace itself.
    """
    return _one_of(rule.api_versions, resource.version) and matches_any_version(
        rule, operation, resource, sub_resource, namespaced=namespaced
    )


def matches_any_version(
    rule: Rule, operation: str, resource: GroupVersionResource, sub_resource: str, *, namespaced: bool
) -> bool:
    """Whether ``rule`` would match if it named all versions."""
    return (
        _one_of(rule.operations, operation)
        and _one_of(rule.api_groups, resource.group)
        and _resource(rule.resources, resource.resource, sub_resource)
        and _scope(rule.scope, namespaced=namespaced)
    )


def _one_of(names: tuple[str, ...], name: str) -> bool:
    return name in names or ANY in names


def _resource(entries: tuple[str, ...], resource: str, sub_resource: str) -> bool:
    for entry in entries:
        wanted, _, wanted_sub = entry.partition("/")
        if wanted in {ANY, resource} and wanted_sub in {ANY, sub_resource}:
            return True
    return False


def _scope(scope: Scope, *, namespaced: bool) -> bool:
    return scope is Scope.ALL or (scope is Scope.NAMESPACED) == namespaced
