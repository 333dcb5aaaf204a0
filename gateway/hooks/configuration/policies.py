"""Hooks -> the objects of a source that bring them behind the gateway: a Worker for each hook, and a policy for each
binding.

The policies stand in one configuration for each phase, called as shell-operator calls the one that it registers. Each
is registered by itself (``isolate``), with all that its binding says; what shell-operator fixes is fixed here as well:
matchPolicy Equivalent, no reinvocation. As behind shell-operator, two hooks that write the same field are nobody's
concern.

Within a configuration, hooks come in the order of their paths, a hook's bindings in their own. (shell-operator
registers them in no order at all.)
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from gateway.hooks.configuration.bindings import snapshot_kinds
from gateway.hooks.configuration.model import AdmissionBinding, HookConfiguration
from gateway.hooks.configuration.names import webhook_id, worker_name
from gateway.policies import wording
from gateway.policies.configuration import load
from gateway.policies.document import SourceText
from gateway.policies.model import ConfigurationError, Phase, Place

_OURS: Final = "admission-gateway.dev/v1alpha1"
_KINDS: Final = {Phase.MUTATING: "MutatingPolicyConfiguration", Phase.VALIDATING: "ValidatingPolicyConfiguration"}
_KEYS: Final = {Phase.MUTATING: "kubernetesMutating", Phase.VALIDATING: "kubernetesValidating"}


class Hook(Struct, frozen=True, kw_only=True):
    """A hook that was found: its path in the directory of hooks, what it is called in messages, what it printed."""

    path: str
    name: str
    configuration: HookConfiguration


def hooks_text(
    hooks: Sequence[Hook],
    *,
    name: str,
    directory: str,
    configuration: str,
    mistakes: Iterable[ConfigurationError] = (),
    remarks: Iterable[ConfigurationError] = (),
) -> SourceText:
    """The text that registers these hooks, with the mistakes that only Kubernetes, or their neighbours, find in them.

    Args:
        hooks: in the order of their paths.
        name: what the text is called.
        directory: of the hooks.
        configuration: the name of both configurations.
        mistakes: what is wrong with others, which are not among the hooks.
        remarks: what its reader must know besides.
    """
    judged = [(hook, _mistakes(hook, directory, configuration)) for hook in hooks]
    sound = [hook for hook, found in judged if not found]
    doubles, shared = _neighbours(sound)
    return SourceText(
        name=name,
        content=_content(sound, configuration),
        directory=directory,
        mistakes=(*mistakes, *(mistake for _, found in judged for mistake in found), *doubles),
        remarks=(*remarks, *shared),
    )


def _content(hooks: Sequence[Hook], configuration: str, phases: Iterable[Phase] = Phase) -> bytes:
    """The Workers, and both configurations: an empty one too, so that a directory without hooks is no mistake."""
    items = [_worker(hook) for hook in hooks]
    for phase in phases:
        policies = [_policy(hook, binding) for hook in hooks for binding in hook.configuration.bindings(phase)]
        items.append(_object(_KINDS[phase], configuration, {"policies": policies}))
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=1).encode()


def _object(kind: str, name: str, members: Mapping[str, Any]) -> dict[str, Any]:
    return {"apiVersion": _OURS, "kind": kind, "metadata": {"name": name}, **members}


def _worker(hook: Hook) -> dict[str, Any]:
    kinds = [{"apiVersion": version, "kind": kind} for version, kind in snapshot_kinds(hook.configuration)]
    target = {"path": hook.path, **({"snapshotsOf": kinds} if kinds else {})}
    return _object("Worker", worker_name(hook.path), {"spec": {"hook": target}})


def _policy(hook: Hook, binding: AdmissionBinding) -> dict[str, Any]:
    policy = {
        **binding.webhook,
        "worker": worker_name(hook.path),
        "policy": binding.name,
        "isolate": True,
        "matchPolicy": "Equivalent",
    }
    return policy | ({"onConflict": "allow"} if binding.phase is Phase.MUTATING else {})


def _mistakes(hook: Hook, directory: str, configuration: str) -> list[ConfigurationError]:
    """What the API server would say to the webhooks of this hook alone."""
    found: list[ConfigurationError] = []
    for phase in Phase:
        content = _content([hook], configuration, [phase])
        loaded = load([SourceText(name=hook.name, content=content, directory=directory)])
        for error in loaded.errors:
            path = error.place.path.replace("policies", _KEYS[phase], 1)
            mistake = replace(error, place=Place(file=hook.name, line=1, path=path))
            if mistake not in found:
                found.append(mistake)
    return found


def _neighbours(hooks: Sequence[Hook]) -> tuple[list[ConfigurationError], list[ConfigurationError]]:
    """Bindings of two hooks that have one name, which are mistakes; and those that only have one id."""
    names: dict[tuple[Phase, str], Hook] = {}
    ids: dict[str, tuple[Phase, str]] = {}
    doubles: list[ConfigurationError] = []
    shared: list[ConfigurationError] = []
    for hook, phase, index, binding in _bindings(hooks):
        place = Place(file=hook.name, line=1, path=f"{_KEYS[phase]}[{index}].name")
        first = names.setdefault((phase, binding), hook)
        if first is not hook:
            message = f"{wording.duplicate(binding)}: a binding of {first.name} has this name too; rename one of them"
            doubles.append(ConfigurationError(place=place, message=message))
        other = ids.setdefault(webhook_id(binding), (phase, binding))
        if other != (phase, binding):
            message = (
                f"the id {webhook_id(binding)} is that of the {other[0]} binding {wording.quote(other[1])} as well, so "
                "nothing is served under it; register these two as admission-gateway render does, or rename one"
            )
            shared.append(ConfigurationError(place=place, message=message))
    return doubles, shared


def _bindings(hooks: Sequence[Hook]) -> Iterable[tuple[Hook, Phase, int, str]]:
    for hook in hooks:
        for phase in Phase:
            for index, binding in enumerate(hook.configuration.bindings(phase)):
                yield hook, phase, index, binding.name
