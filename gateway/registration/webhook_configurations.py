"""Entries -> the objects that register the gateway with kube-apiserver: one of each kind, as plain JSON values.

Each entry becomes one webhook, in the chain's order. What its policies check for themselves is registered too where it
spares a call and cannot lose one:

=====================  ====================================  ===============================================
field                  isolated policy                       policies together
=====================  ====================================  ===============================================
rules                  its own                               the narrowest that cover all (``narrowing``)
namespaceSelector,     its own                               that of all, if they share one: then no policy
objectSelector                                               matches the object before any has changed it
matchConditions        its own                               their disjunction, where an error means the
                                                             same (``shared_conditions``)
failurePolicy          its own; Ignore if nothing is enforced
timeoutSeconds         what it may take, and the second that the API server rounds up
=====================  ====================================  ===============================================

To all of them the exclusions are added (``exclusions``). An isolated policy's path does not check again what is
registered, so whatever cannot be registered with an older API server is reported, never dropped silently.

Both objects are always made, one without webhooks if there is nothing to call: applied over an older one, it takes the
place of what must no longer be called. An annotation has the policies of each entry (``registered_entries``).
"""

import base64
import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec import Struct, field

from gateway.policies.model import Phase, Rule, Selector
from gateway.policies.workers.targets import ServiceReference
from gateway.registration.entries import MAX_TIMEOUT_SECONDS, Entries, Entry
from gateway.registration.exclusions import (
    EXCLUDED_GROUPS,
    groups_within_reach,
    registered_conditions,
    without_namespaces,
)
from gateway.registration.kubernetes_versions import (
    MATCH_CONDITIONS,
    NAME_LABEL,
    REFERENCE,
    V1,
    KubeVersion,
    lacking,
)
from gateway.registration.narrowing import without_groups
from gateway.registration.registered_entries import ANNOTATION, MAX_ANNOTATION_BYTES, encode, registered_entries

MAX_OBJECT_BYTES: Final = 1_572_864
"""etcd's --max-request-bytes, 1.5 MiB: an object of about 2,000 entries."""

STATIC_SUFFIX: Final = ".static.k8s.io"
"""k8s.io/apiserver: "Resources with names ending in this suffix can only be created via static manifest files"."""

_KINDS: Final = {
    Phase.MUTATING: "MutatingWebhookConfiguration",
    Phase.VALIDATING: "ValidatingWebhookConfiguration",
}


class Registrar(Struct, frozen=True, kw_only=True):
    """Name and address of the gateway for the API server, the server's release, and the excluded namespaces.

    Exactly one of ``service`` (its path is not used) and ``url`` (``https://HOST[:PORT]``) is set. ``ca_bundle`` is
    PEM; empty, the API server trusts its system's roots. The service's namespace is excluded, and
    ``excluded_namespaces`` as well. ``path_secret``, if there is one, is the first segment of all paths.
    ``manifest``: the objects are for manifest files (KEP-5793), and their names end in STATIC_SUFFIX.

    Raises:
        ValueError: neither or both are set, or the release has no admissionregistration.k8s.io/v1.
    """

    name: str = "admission-gateway"
    service: ServiceReference | None = None
    url: str = ""
    ca_bundle: bytes = b""
    kube_version: KubeVersion = REFERENCE
    excluded_namespaces: tuple[str, ...] = ()
    path_secret: str = ""
    manifest: bool = False

    def __post_init__(self) -> None:
        if (self.service is None) == (not self.url):
            raise ValueError("exactly one of service and url must be set")
        if self.kube_version < V1:
            raise ValueError(
                f"Kubernetes {self.kube_version} has no admissionregistration.k8s.io/v1, which {V1} brought; "
                f"register with Kubernetes {V1} or later"
            )

    @property
    def object_name(self) -> str:
        """The name of both objects."""
        suffix = STATIC_SUFFIX if self.manifest and not self.name.endswith(STATIC_SUFFIX) else ""
        return self.name + suffix

    @property
    def closed_namespaces(self) -> tuple[str, ...]:
        """All excluded namespaces, the gateway's own first."""
        own = () if self.service is None else (self.service.namespace,)
        return tuple(dict.fromkeys((*own, *self.excluded_namespaces)))


class Registration(Struct, frozen=True, kw_only=True):
    """The objects (MutatingWebhookConfiguration, ValidatingWebhookConfiguration), and warnings about them."""

    objects: tuple[dict[str, Any], ...]
    warnings: tuple[str, ...]


def register(entries: Entries, registrar: Registrar) -> Registration:
    """The objects that register these entries, for the API server that the registrar names."""
    collected = _Warnings(registrar=registrar)
    for policy in entries.idle:
        collected.warn(policy.qualified_name, "has no rules, so it never matches; it is left out")
    closed = registrar.closed_namespaces
    if closed and registrar.kube_version < NAME_LABEL:
        collected.warn(
            "excluded namespaces",
            f"Kubernetes {registrar.kube_version} does not label namespaces with their names; put the label "
            f"kubernetes.io/metadata.name on {', '.join(closed)}, or their requests are sent to the gateway",
        )
    objects = tuple(_object(phase, entries.of(phase), collected) for phase in (Phase.MUTATING, Phase.VALIDATING))
    return Registration(objects=objects, warnings=tuple(collected.warnings))


class _Warnings(Struct, frozen=True, kw_only=True):
    """Collects the warnings of one registration."""

    registrar: Registrar
    warnings: list[str] = field(default_factory=list)

    def warn(self, who: str, what: str) -> None:
        self.warnings.append(f"{who}: {what}")


def _object(phase: Phase, entries: Iterable[Entry], collected: _Warnings) -> dict[str, Any]:
    made: dict[str, Any] = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": _KINDS[phase],
        "metadata": {"name": collected.registrar.object_name},
    }
    webhooks = [(entry, webhook) for entry in entries for webhook in _webhook(entry, collected)]
    if webhooks and not collected.registrar.manifest:
        _annotate(made, [entry for entry, _ in webhooks], collected)
    made["webhooks"] = [webhook for _, webhook in webhooks]
    size = len(json.dumps(made, separators=(",", ":")))
    if size > MAX_OBJECT_BYTES:
        collected.warn(
            _KINDS[phase],
            f"the object has {size} bytes, and etcd takes {MAX_OBJECT_BYTES} by default; isolate fewer policies, or "
            "let more of them agree, so that they share entries",
        )
    return made


def _annotate(made: dict[str, Any], entries: Iterable[Entry], collected: _Warnings) -> None:
    """Keep the entries' policies in the object, if they are not too many."""
    value = encode(registered_entries(entries))
    if len(value) <= MAX_ANNOTATION_BYTES:
        made["metadata"]["annotations"] = {ANNOTATION: value}
    else:
        collected.warn(
            made["kind"],
            f"the names of its policies have {len(value)} bytes, and the annotation {ANNOTATION} at most "
            f"{MAX_ANNOTATION_BYTES}, so it is left out: after a later change, register before a gateway restarts",
        )


def _webhook(entry: Entry, collected: _Warnings) -> Iterator[dict[str, Any]]:
    """The entry's webhook; none if nothing is left that it could match."""
    rules = _rules(entry, collected)
    if not rules:
        collected.warn(entry.name, f"is left out: its rules name nothing but {', '.join(EXCLUDED_GROUPS)}")
        return
    _check_time(entry, collected)
    conditions = _conditions(entry, rules, collected)
    first = entry.policies[0]
    namespaces = _shared(policy.namespace_selector for policy in entry.policies)
    mutating = entry.phase is Phase.MUTATING
    yield {
        "name": entry.name,
        "clientConfig": _client_config(entry, collected.registrar),
        "rules": [_rule(rule) for rule in rules],
        "namespaceSelector": _selector(without_namespaces(namespaces, collected.registrar.closed_namespaces)),
        "objectSelector": _selector(_shared(policy.object_selector for policy in entry.policies)),
        **({"matchConditions": conditions} if conditions else {}),
        "matchPolicy": first.match_policy.value,
        "failurePolicy": entry.failure_policy.value,
        **({"reinvocationPolicy": first.reinvocation_policy.value} if mutating else {}),
        "sideEffects": entry.side_effects.value,
        "timeoutSeconds": entry.timeout_seconds,
        "admissionReviewVersions": ["v1"],
    }


def _rules(entry: Entry, collected: _Warnings) -> tuple[Rule, ...]:
    rules = entry.rules
    left = without_groups(rules, EXCLUDED_GROUPS)
    if left and left != rules:
        named = sorted({group for rule in rules for group in rule.api_groups} & EXCLUDED_GROUPS.keys())
        collected.warn(entry.name, f"never sent to the gateway, and so left out of the rules: {', '.join(named)}")
    return left


def _conditions(entry: Entry, rules: Iterable[Rule], collected: _Warnings) -> list[dict[str, Any]]:
    own = entry.match_conditions
    excluded = groups_within_reach(rules, manifest=collected.registrar.manifest)
    version = collected.registrar.kube_version
    if version < MATCH_CONDITIONS:
        if own and entry.isolated:
            collected.warn(
                entry.name,
                f"Kubernetes {version} has no matchConditions, and the gateway does not check those of an isolated "
                "policy: its worker is called even if they are false; set isolate: false, or check them in the "
                "worker",
            )
        if excluded:
            collected.warn(
                entry.name,
                f"its rules match every API group, and Kubernetes {version}, which has no matchConditions, cannot "
                f"except {', '.join(excluded)}; name the API groups in the rules",
            )
        return []
    for each in own:
        for missing in lacking(each.condition.expression, version):
            collected.warn(entry.name, f"matchCondition {each.name}: Kubernetes {version} does not have {missing}")
    return registered_conditions(own, excluded)


def _check_time(entry: Entry, collected: _Warnings) -> None:
    if entry.worst_seconds + 1 > MAX_TIMEOUT_SECONDS:
        collected.warn(
            entry.name,
            f"its policies may take {entry.worst_seconds:g} s, and the API server waits {MAX_TIMEOUT_SECONDS} s at "
            "most, of which the last may be missing; what is not decided by then fails; shorten their timeoutSeconds",
        )


def _client_config(entry: Entry, registrar: Registrar) -> dict[str, Any]:
    config: dict[str, Any]
    path = f"/{registrar.path_secret}{entry.path}" if registrar.path_secret else entry.path
    if registrar.service is None:
        config = {"url": registrar.url.rstrip("/") + path}
    else:
        service = registrar.service
        config = {
            "service": {
                "namespace": service.namespace,
                "name": service.name,
                "path": path,
                "port": service.port,
            }
        }
    if registrar.ca_bundle:
        config["caBundle"] = base64.b64encode(registrar.ca_bundle).decode()
    return config


def _shared(selectors: Iterable[Selector]) -> Selector:
    """The one selector that all have, or the one that selects everything."""
    different = set(selectors)
    return different.pop() if len(different) == 1 else Selector()


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "operations": list(rule.operations),
        "apiGroups": list(rule.api_groups),
        "apiVersions": list(rule.api_versions),
        "resources": list(rule.resources),
        "scope": rule.scope.value,
    }


def _selector(selector: Selector) -> dict[str, Any]:
    """The LabelSelector; what can have been matchLabels (they were read first, by their keys) is written as such."""
    labels: dict[str, str] = {}
    rest = list(selector.requirements)
    while rest and rest[0].operator == "In" and len(rest[0].values) == 1 and rest[0].key > max(labels, default=""):
        first = rest.pop(0)
        labels[first.key] = first.values[0]
    expressions = [
        {"key": each.key, "operator": each.operator} | ({"values": list(each.values)} if each.values else {})
        for each in rest
    ]
    return ({"matchLabels": labels} if labels else {}) | ({"matchExpressions": expressions} if expressions else {})
