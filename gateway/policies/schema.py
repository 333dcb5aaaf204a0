"""The Go types behind the native kinds (k8s.io/api/admissionregistration, apimachinery's metav1), as far as JSON sees
them.

The API server decodes an object into these types before anything else looks at it. So what it says of a value of the
wrong JSON type names the Go type that the value did not fit, and what it says of a field that the type does not have
comes from these lists. ``go`` is a type's name as Go prints it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gateway.policies.model import Phase

VERSIONS: Final = ("v1", "v1beta1")
"""The versions of admissionregistration.k8s.io that have webhook configurations."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Text:
    """A string, or a type whose kind is one."""

    go: str = "string"


@dataclass(frozen=True, kw_only=True, slots=True)
class Integer:
    """A signed integer of so many bits."""

    bits: int

    @property
    def go(self) -> str:
        """``int32``"""
        return f"int{self.bits}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Flag:
    """A bool."""

    go: str = "bool"


@dataclass(frozen=True, kw_only=True, slots=True)
class Bytes:
    """Bytes, which JSON holds as base64 (or, which nobody writes, as an array of numbers)."""

    go: str = "[]uint8"


@dataclass(frozen=True, kw_only=True, slots=True)
class Time:
    """A metav1.Time. It decodes itself, from a string."""

    go: str = "string"


@dataclass(frozen=True, kw_only=True, slots=True)
class Anything:
    """Kept as it is, and not looked at."""

    go: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Deferred:
    """A struct that is kept as it is, to be decoded by itself."""

    go: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ListOf:
    """A slice."""

    item: "GoType"

    @property
    def go(self) -> str:
        """``[]v1.Rule``"""
        return "[]" + self.item.go


@dataclass(frozen=True, kw_only=True, slots=True)
class MapOf:
    """A map of strings to this."""

    item: "GoType"

    @property
    def go(self) -> str:
        """``map[string]string``"""
        return "map[string]" + self.item.go


@dataclass(frozen=True, kw_only=True, slots=True)
class Struct:
    """A struct, with its fields by their JSON names. ``embedded`` are those of a struct inside it, named ``inner``."""

    go: str
    fields: Mapping[str, "GoType"]
    inner: str = ""
    embedded: Mapping[str, "GoType"]

    @property
    def name(self) -> str:
        """The name without its package."""
        return self.go.rpartition(".")[2]


GoType = Text | Integer | Flag | Bytes | Time | Anything | Deferred | ListOf | MapOf | Struct


_Fields = Mapping[str, GoType]


def _struct(go: str, fields: _Fields, inner: str = "", embedded: _Fields | None = None) -> Struct:
    return Struct(go=go, fields=fields, inner=inner, embedded=embedded or {})


_TEXT: Final = Text()
_TEXTS: Final = ListOf(item=_TEXT)
_LABELS: Final = MapOf(item=_TEXT)
_TYPE_META: Final[_Fields] = {"kind": _TEXT, "apiVersion": _TEXT}

_OWNER_REFERENCE: Final = _struct(
    "v1.OwnerReference",
    {
        "apiVersion": _TEXT,
        "kind": _TEXT,
        "name": _TEXT,
        "uid": Text(go="types.UID"),
        "controller": Flag(),
        "blockOwnerDeletion": Flag(),
    },
)
_MANAGED_FIELDS: Final = _struct(
    "v1.ManagedFieldsEntry",
    {
        "manager": _TEXT,
        "operation": Text(go="v1.ManagedFieldsOperationType"),
        "apiVersion": _TEXT,
        "time": Time(),
        "fieldsType": _TEXT,
        "fieldsV1": Anything(),
        "subresource": _TEXT,
    },
)
_OBJECT_META: Final = _struct(
    "v1.ObjectMeta",
    {
        "name": _TEXT,
        "generateName": _TEXT,
        "namespace": _TEXT,
        "selfLink": _TEXT,
        "uid": Text(go="types.UID"),
        "resourceVersion": _TEXT,
        "generation": Integer(bits=64),
        "creationTimestamp": Time(),
        "deletionTimestamp": Time(),
        "deletionGracePeriodSeconds": Integer(bits=64),
        "labels": _LABELS,
        "annotations": _LABELS,
        "ownerReferences": ListOf(item=_OWNER_REFERENCE),
        "finalizers": _TEXTS,
        "managedFields": ListOf(item=_MANAGED_FIELDS),
    },
)
METADATA_FIELDS: Final = tuple(_OBJECT_META.fields)
OWNER_REFERENCE_FIELDS: Final = tuple(_OWNER_REFERENCE.fields)
"""The names of the fields, for the gateway's own kinds."""

_REQUIREMENT: Final = _struct(
    "v1.LabelSelectorRequirement", {"key": _TEXT, "operator": Text(go="v1.LabelSelectorOperator"), "values": _TEXTS}
)
_SELECTOR: Final = _struct("v1.LabelSelector", {"matchLabels": _LABELS, "matchExpressions": ListOf(item=_REQUIREMENT)})
# v1beta1 uses v1's rules, and so do the words about them.
_RULE: Final = _struct(
    "v1.RuleWithOperations",
    {"operations": ListOf(item=Text(go="v1.OperationType"))},
    "Rule",
    {"apiGroups": _TEXTS, "apiVersions": _TEXTS, "resources": _TEXTS, "scope": Text(go="v1.ScopeType")},
)


def _webhook(phase: Phase, version: str) -> Struct:
    service: _Fields = {"namespace": _TEXT, "name": _TEXT, "path": _TEXT, "port": Integer(bits=32)}
    client: _Fields = {"url": _TEXT, "service": _struct(f"{version}.ServiceReference", service), "caBundle": Bytes()}
    condition: _Fields = {"name": _TEXT, "expression": _TEXT}
    fields: dict[str, GoType] = {
        "name": _TEXT,
        "clientConfig": _struct(f"{version}.WebhookClientConfig", client),
        "rules": ListOf(item=_RULE),
        "failurePolicy": Text(go=f"{version}.FailurePolicyType"),
        "matchPolicy": Text(go=f"{version}.MatchPolicyType"),
        "namespaceSelector": _SELECTOR,
        "objectSelector": _SELECTOR,
        "sideEffects": Text(go=f"{version}.SideEffectClass"),
        "timeoutSeconds": Integer(bits=32),
        "admissionReviewVersions": _TEXTS,
        "matchConditions": ListOf(item=_struct(f"{version}.MatchCondition", condition)),
    }
    if phase is Phase.MUTATING:
        fields["reinvocationPolicy"] = Text(go="v1.ReinvocationPolicyType")
    return _struct(f"{version}.{phase.capitalize()}Webhook", fields)


WEBHOOKS: Final = {(phase, version): _webhook(phase, version) for phase in Phase for version in VERSIONS}
"""The type of one webhook."""


def _configuration(phase: Phase, version: str) -> Struct:
    # The webhooks are decoded one by one: a mistake in one of them is its own.
    fields: _Fields = {"metadata": _OBJECT_META, "webhooks": ListOf(item=Deferred(go=WEBHOOKS[phase, version].go))}
    return _struct(f"{version}.{phase.capitalize()}WebhookConfiguration", fields, "TypeMeta", _TYPE_META)


CONFIGURATIONS: Final = {(phase, version): _configuration(phase, version) for phase in Phase for version in VERSIONS}
"""The type of a whole configuration."""
