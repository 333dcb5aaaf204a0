"""Hooks -> the documents that configure them: one Worker per hook, one policy per binding.

The policies are in one configuration per phase, with the name under which shell-operator registers its own. Each policy
is registered by itself (``isolate``) with all fields of its binding, and with the values that shell-operator fixes:
matchPolicy Equivalent, no reinvocation. As in shell-operator, there is no conflict between hooks that write the same
field.

In a configuration, hooks are in the order of their paths, and the bindings of a hook in their own order.
(shell-operator registers them in random order.)
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from gateway.hooks.configuration.bindings import KEYS, snapshot_kinds
from gateway.hooks.configuration.model import AdmissionBinding, HookConfiguration
from gateway.hooks.configuration.names import webhook_id, worker_name
from gateway.policies import field_errors
from gateway.policies.configuration import load
from gateway.policies.decoding.texts import SourceText
from gateway.policies.errors import ConfigurationError, Place
from gateway.policies.model import Phase

_API_VERSION: Final = "admission-gateway.dev/v1alpha1"
_KINDS: Final = {Phase.MUTATING: "MutatingPolicyConfiguration", Phase.VALIDATING: "ValidatingPolicyConfiguration"}


class Hook(Struct, frozen=True, kw_only=True):
    """A hook in a directory: its path there, its name in messages, its configuration."""

    path: str
    name: str
    configuration: HookConfiguration


def hooks_text(
    hooks: Sequence[Hook],
    *,
    name: str,
    directory: str,
    configuration: str,
    errors: Iterable[ConfigurationError] = (),
    warnings: Iterable[ConfigurationError] = (),
) -> SourceText:
    """The text that configures these hooks, with the errors that Kubernetes' validation or a comparison of hooks finds.

    Args:
        hooks: in the order of their paths.
        name: of the text, in messages.
        directory: of the hooks.
        configuration: the name of both configurations.
        errors: of other hooks, which are not in ``hooks``.
        warnings: to be added to those found here.
    """
    validated = [(hook, _errors(hook, directory, configuration)) for hook in hooks]
    valid = [hook for hook, found in validated if not found]
    duplicates, shared = _compare(valid)
    return SourceText(
        name=name,
        content=_content(valid, configuration),
        directory=directory,
        errors=(*errors, *(error for _, found in validated for error in found), *duplicates),
        warnings=(*warnings, *shared),
    )


def _content(hooks: Sequence[Hook], configuration: str, phases: Iterable[Phase] = Phase) -> bytes:
    """The Workers and both configurations, even if empty: without bindings there is still something to load."""
    items = [_worker(hook) for hook in hooks]
    for phase in phases:
        policies = [_policy(hook, binding) for hook in hooks for binding in hook.configuration.bindings(phase)]
        items.append(_document(_KINDS[phase], configuration, {"policies": policies}))
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=1).encode()


def _document(kind: str, name: str, members: Mapping[str, Any]) -> dict[str, Any]:
    return {"apiVersion": _API_VERSION, "kind": kind, "metadata": {"name": name}, **members}


def _worker(hook: Hook) -> dict[str, Any]:
    kinds = [{"apiVersion": version, "kind": kind} for version, kind in snapshot_kinds(hook.configuration)]
    target = {"path": hook.path, **({"snapshotsOf": kinds} if kinds else {})}
    return _document("Worker", worker_name(hook.path), {"spec": {"hook": target}})


def _policy(hook: Hook, binding: AdmissionBinding) -> dict[str, Any]:
    policy = {
        **binding.webhook,
        "worker": worker_name(hook.path),
        "policy": binding.name,
        "isolate": True,
        "matchPolicy": "Equivalent",
    }
    return policy | ({"onConflict": "allow"} if binding.phase is Phase.MUTATING else {})


def _errors(hook: Hook, directory: str, configuration: str) -> list[ConfigurationError]:
    """What the API server would report for the webhooks of this hook alone."""
    found: list[ConfigurationError] = []
    for phase in Phase:
        content = _content([hook], configuration, [phase])
        loaded = load([SourceText(name=hook.name, content=content, directory=directory)])
        for error in loaded.errors:
            path = error.place.path.replace("policies", KEYS[phase], 1)
            own = replace(error, place=Place(file=hook.name, line=1, path=path))
            if own not in found:
                found.append(own)
    return found


def _compare(hooks: Sequence[Hook]) -> tuple[list[ConfigurationError], list[ConfigurationError]]:
    """Errors: bindings of two hooks with the same name. Warnings: bindings with different names and the same id."""
    names: dict[tuple[Phase, str], Hook] = {}
    ids: dict[str, tuple[Phase, str]] = {}
    duplicates: list[ConfigurationError] = []
    shared: list[ConfigurationError] = []
    for hook, phase, index, binding in _bindings(hooks):
        place = Place(file=hook.name, line=1, path=f"{KEYS[phase]}[{index}].name")
        first = names.setdefault((phase, binding), hook)
        if first is not hook:
            message = (
                f"{field_errors.duplicate(binding)}: a binding of {first.name} has this name too; rename one of them"
            )
            duplicates.append(ConfigurationError(place=place, message=message))
        identifier = webhook_id(binding)
        other = ids.setdefault(identifier, (phase, binding))
        if other != (phase, binding):
            message = (
                f"the {other[0]} binding {field_errors.quote(other[1])} has the same id {identifier}, so "
                f"/hooks/{identifier} is not served; register both with admission-gateway render, or rename one"
            )
            shared.append(ConfigurationError(place=place, message=message))
    return duplicates, shared


def _bindings(hooks: Sequence[Hook]) -> Iterator[tuple[Hook, Phase, int, str]]:
    for hook in hooks:
        for phase in Phase:
            for index, binding in enumerate(hook.configuration.bindings(phase)):
                yield hook, phase, index, binding.name
