"""Pods that a policy matches without the subresources through which the same containers come another way.

A rule for ``pods`` matches none of their subresources. Two of them carry the whole pod, on UPDATE:

* ``pods/ephemeralcontainers`` adds a container to a running pod (``kubectl debug``), whatever its image or rights;
* ``pods/resize`` changes the resources of running containers.

So a policy about containers that matches ``pods`` alone is bypassed. A warning covers what concerns the policy:

===========  ====================================================  ==================================================
             ephemeralcontainers                                   resize
===========  ====================================================  ==================================================
validating   it is shown containers of any kind                    it is shown the resources of containers
mutating     the same, and it may change ephemeral containers      the same, and it matches UPDATE of pods: what a
                                                                   pod was created with, its owner may change
===========  ====================================================  ==================================================
"""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from gateway.policies.model import ANY, Phase, Policy, Rule, Scope
from gateway.scopes.pointer import Pointer
from gateway.scopes.pointer_set import PointerSet

_WRITTEN: Final = frozenset({"CREATE", "UPDATE"})
_UPDATED: Final = frozenset({"UPDATE"})
_CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")


class _Subresource(Struct, frozen=True, kw_only=True):
    """``changes`` are the places of a pod that come by it; ``allows`` is what passes unseen."""

    name: str
    changes: tuple[Pointer, ...]
    allows: str
    operations: frozenset[str]
    """Of pods, any of which makes a mutating policy concerned."""


_SUBRESOURCES: Final = (
    _Subresource(
        name="ephemeralcontainers",
        changes=(("spec", "ephemeralContainers"),),
        allows="a container that `kubectl debug` adds to a running pod",
        operations=_WRITTEN,
    ),
    _Subresource(
        name="resize",
        changes=tuple(("spec", list_, ANY, "resources") for list_ in _CONTAINERS[:2]),
        allows="new resources of running containers",
        operations=_UPDATED,
    ),
)


def unmatched_subresources(policy: Policy) -> str | None:
    """What is not matched, what passes by that, and the rule to add; None if nothing is missing."""
    missing = [each for each in _SUBRESOURCES if _is_concerned(policy, each) and not _matches(policy, each.name)]
    if not missing:
        return None
    names = " and ".join(f"pods/{each.name}" for each in missing)
    resources = ", ".join(f"pods/{each.name}" for each in missing)
    allowed = " and ".join(each.allows for each in missing)
    # A webhook has no inputs to name.
    otherwise = ", or name in inputs what the policy reads" if policy.policy and policy.inputs.places is None else ""
    return (
        f"pods are matched without {names}, so the policy never sees {allowed}; add the rule {{operations: [UPDATE], "
        f'apiGroups: [""], apiVersions: [v1], resources: [{resources}]}}{otherwise}'
    )


def _is_concerned(policy: Policy, subresource: _Subresource) -> bool:
    if policy.phase is Phase.VALIDATING:
        return _matches_pods(policy, _WRITTEN) and _is_shown(policy, subresource)
    return (
        _matches_pods(policy, subresource.operations)
        and _is_shown(policy, subresource)
        and any(_touch(policy.writes.granted, place) for place in subresource.changes)
    )


def _is_shown(policy: Policy, subresource: _Subresource) -> bool:
    """Whether the policy sees what comes by the subresource, or the same part of the other containers."""
    part = subresource.changes[0][3:]
    places = [("object", "spec", list_, ANY, *part) for list_ in _CONTAINERS]
    return any(_touch(policy.inputs.places, place) for place in places)


def _touch(places: PointerSet | None, place: Pointer) -> bool:
    """Whether one of the places lies above the other; None is every place."""
    return places is None or any(
        all(mine == its or ANY in (mine, its) for mine, its in zip(pointer, place, strict=False))
        for pointer in places.pointers
    )


def _matches_pods(policy: Policy, operations: frozenset[str]) -> bool:
    return any(_is_about(rule, operations, {"pods", "*", "pods/*", "*/*"}) for rule in policy.rules)


def _matches(policy: Policy, name: str) -> bool:
    wanted = {f"pods/{name}", "pods/*", f"*/{name}", "*/*"}
    return any(_is_about(rule, _UPDATED, wanted) for rule in policy.rules)


def _is_about(rule: Rule, operations: frozenset[str], resources: set[str]) -> bool:
    return (
        rule.scope is not Scope.CLUSTER
        and not operations.isdisjoint(_concrete(rule.operations))
        and not {"", ANY}.isdisjoint(rule.api_groups)
        and not {"v1", ANY}.isdisjoint(rule.api_versions)
        and not resources.isdisjoint(rule.resources)
    )


def _concrete(operations: tuple[str, ...]) -> Iterator[str]:
    for each in operations:
        yield from (_WRITTEN if each == ANY else (each,))
