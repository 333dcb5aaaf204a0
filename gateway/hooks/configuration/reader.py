"""The output of a hook's ``--config`` -> its configuration, with all its mistakes at once, in shell-operator's sense.

What is wrong, shell-operator decides, in this order; a configuration that has got past it is one that it loads:

1. A text in YAML or JSON, whose first document is an object. ``configVersion`` is v1; without it, v0.
2. The form of that version (``form``).
3. ``settings`` of a duration and an int32; selectors that mean something; ``includeSnapshotsFrom`` names bindings of
   ``kubernetes`` that are there once.
4. Of validating bindings alone: names of three segments, all different, time limits, wildcards that stand alone. The
   mutating ones' are judged by the API server when they are registered, as are expressions of CEL.

So a mutating binding may pass here and still be no webhook: whoever registers it has Kubernetes' own validation.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from gateway.cel.values.durations import DurationError, parse_duration
from gateway.hooks.configuration.bindings import read_object_bindings
from gateway.hooks.configuration.model import AdmissionBinding, HookConfiguration
from gateway.hooks.configuration.schema import FORMS, fits
from gateway.policies import wording
from gateway.policies.document import SourceText, read_documents
from gateway.policies.fields import Field, Findings
from gateway.policies.model import ConfigurationError, Phase, Place
from gateway.policies.names import fully_qualified
from gateway.policies.nodes import Broken, Node
from gateway.policies.rules import read_rules
from gateway.policies.selectors import read_selector
from gateway.policies.webhook import MAX_TIMEOUT

_KEYS: Final = {Phase.VALIDATING: "kubernetesValidating", Phase.MUTATING: "kubernetesMutating"}
_VERSION: Final = "configVersion"
_CONVERSION: Final = "kubernetesCustomResourceConversion"
_OTHERS: Final = ("kubernetes", "schedule", _CONVERSION)
"""What else may include snapshots."""

_DEFAULTS: Final[Mapping[str, Any]] = {"failurePolicy": "Fail", "sideEffects": "None", "timeoutSeconds": 10}
_INT32: Final = 2**31
_IDLE: Final[Mapping[str, str]] = {
    "onStartup": "hooks are not run at the start",
    "schedule": "hooks are not run at times",
    "onKubernetesEvent": "hooks are not run at events, and configVersion v0 has no admission",
    _CONVERSION: "custom resources are not converted",
    "settings": "executions are bounded by the gateway's own limits",
}
"""What is accepted because shell-operator has it, and does nothing here."""


class HookReading(Struct, frozen=True, kw_only=True):
    """What became of a text: the configuration, None where there is a mistake in it; and what its reader must know."""

    configuration: HookConfiguration | None
    mistakes: tuple[ConfigurationError, ...] = ()
    warnings: tuple[ConfigurationError, ...] = ()


def read_hook_configuration(output: bytes, name: str) -> HookReading:
    """The configuration that a hook has printed. Never raises.

    ``name`` is what the text is called in messages; their lines are those of the output.
    """
    findings: Findings = []
    warnings: Findings = []
    root = _document(output, name, findings)
    configuration = None if root is None else _read(root, warnings)
    return HookReading(
        configuration=None if findings else configuration, mistakes=tuple(findings), warnings=tuple(warnings)
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
    for key, why in _IDLE.items():
        if not root.get(key).absent:
            message = f"accepted, and not run by this gateway: {why}; shell-operator goes on doing that"
            warnings.append(ConfigurationError(place=root.get(key).place, message=message))
    _check_settings(root.get("settings"))
    objects = read_object_bindings(root.get("kubernetes"))
    names = [binding.name for binding in objects]
    groups: dict[str, list[str]] = {}
    for binding in objects:
        if binding.group:
            groups.setdefault(binding.group, []).append(binding.name)
    read = {phase: tuple(_admission(root.get(key), phase, names, groups)) for phase, key in _KEYS.items()}
    for key in _OTHERS:
        for item in root.get(key).items() or ():
            _check_snapshots(item, names)
    _check_repeated(root.get(_KEYS[Phase.VALIDATING]))
    return HookConfiguration(
        version=version,
        objects=objects,
        mutating=read[Phase.MUTATING],
        validating=read[Phase.VALIDATING],
        conversions=tuple(item.get("name").said or "" for item in root.get(_CONVERSION).items() or ()),
    )


def _version(root: Field) -> str | None:
    """The version, if the configuration has its form."""
    members = dict(root.named_members())
    if _VERSION not in members:
        if fits(root, FORMS["v0"]):
            return "v0"
        root.get(_VERSION).refuse(wording.required("must be v1; without it, this is read as v0"))
        return None
    field, node = root.get(_VERSION), members[_VERSION]
    if isinstance(node.value, Broken):
        field.refuse_broken(node.value)
    elif field.said is None or field.said not in FORMS:
        field.refuse(wording.invalid(_plain(node), "must be v1"))
    elif fits(root, FORMS[field.said]):
        return field.said
    return None


def _admission(
    items: Field, phase: Phase, names: list[str], groups: Mapping[str, list[str]]
) -> Iterable[AdmissionBinding]:
    for item in items.items() or ():
        _check_snapshots(item, names)
        read_selector(item.get("labelSelector"))
        read_selector(item.get("namespace").get("labelSelector"))
        _check_seconds(item.get("timeoutSeconds"), phase)
        if phase is Phase.VALIDATING:
            item.get("name").refuse_each(item.get("name").said or "", fully_qualified(item.get("name").said or ""))
            read_rules(item.get("rules"), [])
        group = item.get("group").said or ""
        yield AdmissionBinding(
            name=item.get("name").said or "",
            phase=phase,
            webhook=_webhook(item),
            group=group,
            snapshots_from=_snapshots(item.get("includeSnapshotsFrom"), groups.get(group)),
        )


def _webhook(item: Field) -> Mapping[str, Any]:
    """The webhook that shell-operator makes of a binding, but for what it fills in when it registers it."""
    members = {name: _plain(node) for name, node in item.named_members()}
    selectors = {
        "namespaceSelector": _selector(members.get("namespace", {}).get("labelSelector")),
        "objectSelector": _selector(members.get("labelSelector")),
    }
    conditions = [
        {key: condition[key] for key in ("name", "expression")} for condition in members.get("matchConditions", ())
    ]
    return {
        "name": members["name"],
        **({"rules": members["rules"]} if "rules" in members else {}),
        **{name: selector for name, selector in selectors.items() if selector is not None},
        **({"matchConditions": conditions} if conditions else {}),
        **{name: members.get(name, default) for name, default in _DEFAULTS.items()},
    }


def _selector(selector: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Without what is empty, as Go writes it."""
    if selector is None:
        return None
    expressions = [
        {name: value for name, value in each.items() if value != []} for each in selector.get("matchExpressions", ())
    ]
    parts = {"matchLabels": selector.get("matchLabels"), "matchExpressions": expressions}
    return {name: part for name, part in parts.items() if part}


def _snapshots(included: Field, of_group: list[str] | None) -> tuple[str, ...] | None:
    """What is included, in this order, and then what else is in the group."""
    named = [text for _, text in included.texts() or ()]
    if of_group is None:
        return tuple(named) or None
    return (*named, *(name for name in dict.fromkeys(of_group) if name not in named))


def _check_snapshots(item: Field, names: list[str]) -> None:
    for field, name in item.get("includeSnapshotsFrom").texts() or ():
        count = names.count(name)
        if count == 0:
            field.refuse(wording.not_found(name) + ": no binding of kubernetes has this name")
        elif count > 1:
            field.refuse(wording.invalid(name, f"there are {count} bindings of kubernetes with this name"))


def _check_settings(settings: Field) -> None:
    """Both are read as soon as one could be there: an interval as time.ParseDuration takes it, an int32."""
    if settings.absent:
        return
    interval, burst = settings.get("executionMinInterval"), settings.get("executionBurst")
    for field in (interval, burst):
        if field.absent:
            field.refuse(wording.required("shell-operator takes no settings without it"))
    if interval.said is not None:
        try:
            parse_duration(interval.said)
        except DurationError as error:
            interval.refuse(wording.invalid(interval.said, str(error)))
    _check_int32(burst)


def _check_seconds(field: Field, phase: Phase) -> None:
    seconds = field.number()
    if seconds is None:
        return
    if phase is Phase.VALIDATING and not 1 <= seconds <= MAX_TIMEOUT:
        field.refuse(wording.invalid(int(seconds), f"the timeout value must be between 1 and {MAX_TIMEOUT} seconds"))
    else:
        _check_int32(field)


def _check_int32(field: Field) -> None:
    number = field.number()
    if number is not None and not -_INT32 <= number < _INT32:
        field.refuse(wording.invalid(int(number), "must be an integer of 32 bits"))


def _check_repeated(items: Field) -> None:
    seen: dict[str, str] = {}
    for item in items.items() or ():
        name = item.get("name").said or ""
        if seen.setdefault(name, item.place.path) != item.place.path:
            item.get("name").refuse(wording.duplicate(name), f"the first is {seen[name]}")


def _plain(node: Node) -> Any:
    """The JSON value: of dict, list, str, int, float, bool and None; a float without a fraction becomes an int.

    What cannot be taken becomes None. The recursion is bounded by nodes.MAX_DEPTH.
    """
    value = node.value
    if isinstance(value, Broken):
        return None
    if isinstance(value, dict):
        return {name: _plain(child) for name, child in value.items()}
    if isinstance(value, list):
        return [_plain(child) for child in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
