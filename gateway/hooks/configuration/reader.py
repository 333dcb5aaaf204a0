"""Reads the output of a hook's ``--config``, and reports all its errors at once.

What is an error is decided by shell-operator; a configuration without errors is one that it loads. In this order:

1. The text is YAML or JSON, and its first document is an object. ``configVersion`` is v1; without it, v0.
2. The document conforms to the schema of that version (``schema``).
3. ``settings`` contains a duration and an int32; selectors are valid; each name in ``includeSnapshotsFrom`` is that of
   exactly one ``kubernetes`` binding.
4. For validating bindings only: names have three segments and are unique; timeouts are within their limits; wildcards
   in rules stand alone. For mutating bindings the API server checks these on registration, and CEL for both.

So a mutating binding without an error here may still be an invalid webhook: ``policies`` applies Kubernetes'
validation.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from gateway.cel.values.durations import DurationError, parse_duration
from gateway.hooks.configuration.bindings import (
    KEYS,
    check_int32,
    check_snapshots,
    plain_value,
    read_admission_bindings,
    read_object_bindings,
)
from gateway.hooks.configuration.model import HookConfiguration
from gateway.hooks.configuration.schema import SCHEMAS, conforms
from gateway.policies import field_errors
from gateway.policies.decoding.field import Field
from gateway.policies.decoding.nodes import Broken
from gateway.policies.decoding.texts import SourceText, read_documents
from gateway.policies.errors import ConfigurationError, Findings, Place
from gateway.policies.model import Phase

_VERSION: Final = "configVersion"
_CONVERSION: Final = "kubernetesCustomResourceConversion"
_OTHERS: Final = ("kubernetes", "schedule", _CONVERSION)
"""Other bindings that may include snapshots."""

_UNUSED: Final[Mapping[str, str]] = {
    "onStartup": "hooks are not run at the start",
    "schedule": "hooks are not run at times",
    "onKubernetesEvent": "hooks are not run at events, and configVersion v0 has no admission",
    _CONVERSION: "custom resources are not converted",
    "settings": "the gateway's own limits apply to executions",
}
"""Members that only shell-operator uses."""


class HookReading(Struct, frozen=True, kw_only=True):
    """The result of reading an output: the configuration, None if there are errors; errors and warnings."""

    configuration: HookConfiguration | None
    errors: tuple[ConfigurationError, ...] = ()
    warnings: tuple[ConfigurationError, ...] = ()


def read_hook_configuration(output: bytes, name: str) -> HookReading:
    """The configuration that a hook has printed. Never raises.

    ``name`` is the text's name in messages; their line numbers are those of the output.
    """
    findings: Findings = []
    warnings: Findings = []
    root = _document(output, name, findings)
    configuration = None if root is None else _read(root, warnings)
    return HookReading(
        configuration=None if findings else configuration, errors=tuple(findings), warnings=tuple(warnings)
    )


def _document(output: bytes, name: str, findings: Findings) -> Field | None:
    place = Place(file=name, line=1)
    nodes, error = read_documents(SourceText(name=name, content=output))
    if error is not None and not nodes:
        message = f"is neither YAML nor JSON: {error}; print the configuration, and nothing else, for --config"
        findings.append(ConfigurationError(place=replace(place, line=error.line), message=message))
        return None
    if not nodes:
        message = "nothing was printed; print the configuration for --config"
        findings.append(ConfigurationError(place=place, message=message))
        return None
    root = Field(node=nodes[0], place=replace(place, line=nodes[0].line), findings=findings)
    return root if root.mapping() else None


def _read(root: Field, warnings: Findings) -> HookConfiguration | None:
    version = _version(root)
    if version is None:
        return None
    for key, why in _UNUSED.items():
        if not root.get(key).absent:
            message = f"is accepted and ignored: {why}; keep the hook in shell-operator too if it needs that"
            warnings.append(ConfigurationError(place=root.get(key).place, message=message))
    _check_settings(root.get("settings"))
    objects = read_object_bindings(root.get("kubernetes"))
    names = [binding.name for binding in objects]
    groups: dict[str, list[str]] = {}
    for binding in objects:
        if binding.group:
            groups.setdefault(binding.group, []).append(binding.name)
    read = {phase: tuple(read_admission_bindings(root.get(key), phase, names, groups)) for phase, key in KEYS.items()}
    for key in _OTHERS:
        for item in root.get(key).items() or ():
            check_snapshots(item, names)
    _check_unique(root.get(KEYS[Phase.VALIDATING]))
    return HookConfiguration(
        version=version,
        objects=objects,
        mutating=read[Phase.MUTATING],
        validating=read[Phase.VALIDATING],
        conversions=tuple(item.get("name").raw_text or "" for item in root.get(_CONVERSION).items() or ()),
    )


def _version(root: Field) -> str | None:
    """The version, if the configuration conforms to its schema."""
    members = dict(root.named_members())
    if _VERSION not in members:
        if conforms(root, SCHEMAS["v0"]):
            return "v0"
        root.get(_VERSION).refuse(field_errors.required("must be v1; without it, this is read as v0"))
        return None
    field, node = root.get(_VERSION), members[_VERSION]
    if isinstance(node.value, Broken):
        field.refuse_broken(node.value)
    elif field.raw_text is None or field.raw_text not in SCHEMAS:
        field.refuse(field_errors.invalid(plain_value(node), "must be v1"))
    elif conforms(root, SCHEMAS[field.raw_text]):
        return field.raw_text
    return None


def _check_settings(settings: Field) -> None:
    """shell-operator reads both members as soon as there are ``settings``: a time.Duration, and an int32."""
    if settings.absent:
        return
    interval, burst = settings.get("executionMinInterval"), settings.get("executionBurst")
    for field in (interval, burst):
        if field.absent:
            field.refuse(field_errors.required("shell-operator requires it in settings"))
    if interval.raw_text is not None:
        try:
            parse_duration(interval.raw_text)
        except DurationError as error:
            interval.refuse(field_errors.invalid(interval.raw_text, str(error)))
    check_int32(burst)


def _check_unique(items: Field) -> None:
    seen: dict[str, str] = {}
    for item in items.items() or ():
        name = item.get("name").raw_text or ""
        if seen.setdefault(name, item.place.path) != item.place.path:
            item.get("name").refuse(field_errors.duplicate(name), f"the first is {seen[name]}")
