"""The Go types behind the native kinds (k8s.io/api/admissionregistration), as far as JSON sees them.

The API server decodes an object into these types before anything else looks at it. So its error for a value of the
wrong JSON type names the Go type that the value did not fit, and its error for a field that the type does not have
comes from these lists. ``go`` is a type's name as Go prints it.
"""

from collections.abc import Mapping
from typing import Final

from gateway.gotypes.meta import OBJECT_META, TYPE_META
from gateway.gotypes.types import INT32, STRING, STRING_MAP, STRINGS, Bytes, Deferred, GoType, ListOf, Struct, Text
from gateway.policies.model import Phase

VERSIONS: Final = ("v1", "v1beta1")
"""The versions of admissionregistration.k8s.io that have webhook configurations."""

_Fields = Mapping[str, GoType]

_REQUIREMENT: Final = Struct(
    "v1.LabelSelectorRequirement", {"key": STRING, "operator": Text("v1.LabelSelectorOperator"), "values": STRINGS}
)
_SELECTOR: Final = Struct("v1.LabelSelector", {"matchLabels": STRING_MAP, "matchExpressions": ListOf(_REQUIREMENT)})
# v1beta1 uses v1's rules, and so do the words about them.
_RULE: Final = Struct(
    "v1.RuleWithOperations",
    {"operations": ListOf(Text("v1.OperationType"))},
    "Rule",
    {"apiGroups": STRINGS, "apiVersions": STRINGS, "resources": STRINGS, "scope": Text("v1.ScopeType")},
)


def _webhook(phase: Phase, version: str) -> Struct:
    service: _Fields = {"namespace": STRING, "name": STRING, "path": STRING, "port": INT32}
    client: _Fields = {"url": STRING, "service": Struct(f"{version}.ServiceReference", service), "caBundle": Bytes()}
    condition: _Fields = {"name": STRING, "expression": STRING}
    fields: dict[str, GoType] = {
        "name": STRING,
        "clientConfig": Struct(f"{version}.WebhookClientConfig", client),
        "rules": ListOf(_RULE),
        "failurePolicy": Text(f"{version}.FailurePolicyType"),
        "matchPolicy": Text(f"{version}.MatchPolicyType"),
        "namespaceSelector": _SELECTOR,
        "objectSelector": _SELECTOR,
        "sideEffects": Text(f"{version}.SideEffectClass"),
        "timeoutSeconds": INT32,
        "admissionReviewVersions": STRINGS,
        "matchConditions": ListOf(Struct(f"{version}.MatchCondition", condition)),
    }
    if phase is Phase.MUTATING:
        fields["reinvocationPolicy"] = Text("v1.ReinvocationPolicyType")
    return Struct(f"{version}.{phase.capitalize()}Webhook", fields)


WEBHOOKS: Final = {(phase, version): _webhook(phase, version) for phase in Phase for version in VERSIONS}
"""The type of one webhook."""


def _configuration(phase: Phase, version: str) -> Struct:
    # The webhooks are decoded one by one: an error in one of them is its own.
    fields: _Fields = {"metadata": OBJECT_META, "webhooks": ListOf(Deferred(WEBHOOKS[phase, version].go))}
    return Struct(f"{version}.{phase.capitalize()}WebhookConfiguration", fields, "TypeMeta", TYPE_META)


CONFIGURATIONS: Final = {(phase, version): _configuration(phase, version) for phase in Phase for version in VERSIONS}
"""The type of a whole configuration."""
