"""A finding: what registering would make impossible or slow, which rule causes it, and what to do about it."""

import json
from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from gateway.enums import StrEnum
from gateway.lockout.configurations import Webhook
from gateway.lockout.probes import Probe
from gateway.policies.metadata import NAME_LABEL
from gateway.policies.model import ANY, Rule, Scope


class Severity(StrEnum):
    """``refuse``: the cluster, or the gateway, may not come back by itself. ``warn``: something else is at stake."""

    REFUSE = "refuse"
    WARN = "warn"


class Code(StrEnum):
    """What a finding is about."""

    LOCKOUT = "lockout"
    """While no gateway answers, kube-apiserver refuses requests that matter."""

    POSSIBLE_LOCKOUT = "possible-lockout"
    """The same, if namespaces have certain labels, or the API server certain versions."""

    DEPENDENCY_CYCLE = "dependency-cycle"
    """Pods of a worker, or of Redis, can only start after they have started."""

    SLOW = "slow"
    """All webhooks together may take longer than the sender, or the API server, waits."""

    WIDE_RULES = "wide-rules"
    """A rule under Fail has a wildcard: it also matches what does not exist yet."""

    OTHER_WEBHOOK = "other-webhook"
    """A webhook of somebody else can keep the gateway's Pods from starting."""

    SERVICE = "service"
    """The Service that kube-apiserver calls does not exist, has no such port, or no ready endpoint."""

    CERTIFICATE = "certificate"
    """The caBundle does not verify the certificate that the gateway serves."""

    PERMISSION = "permission"
    """The gateway's service account may not do what its flags need."""

    VERSION = "version"
    """The API server is older than the objects are made for."""


class Remedy(Struct, frozen=True, kw_only=True):
    """What to do: ``text`` in words, ``flag`` of ``render`` or "", ``patch`` of a policy as YAML or ""."""

    text: str
    flag: str = ""
    patch: str = ""


class Finding(Struct, frozen=True, kw_only=True):
    """``webhook`` is ``KIND/CONFIGURATION/WEBHOOK``, ``path`` its rule, such as ``webhooks[0].rules[1]``; both "" where
    no rule is the cause. ``policies`` are the policies behind it; ``requests`` what is at stake.
    """

    severity: Severity
    code: Code
    message: str
    remedy: Remedy
    webhook: str = ""
    path: str = ""
    policies: tuple[str, ...] = ()
    requests: tuple[Probe, ...] = ()


MAX_LISTED: Final = 4
"""Names in a message; JSON has all of them."""


def listed(names: Sequence[object]) -> str:
    """The first of some names, and how many more there are."""
    more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
    return ", ".join(map(str, names[:MAX_LISTED])) + more


def place(webhook: Webhook) -> str:
    """``KIND/CONFIGURATION/WEBHOOK``."""
    return f"{webhook.kind}/{webhook.policy.configuration}/{webhook.policy.name}"


def rule_path(webhook: Webhook, rule: int) -> str:
    """Where the rule is in its configuration."""
    return f"webhooks[{webhook.policy.index}].rules[{rule}]"


def exclusion(namespaces: Sequence[str]) -> Remedy:
    """Never send requests in these namespaces to the gateway."""
    values = ", ".join(namespaces)
    return Remedy(
        text=f"exclude {'namespace' if len(namespaces) == 1 else 'namespaces'} {values} from what is registered",
        flag=" ".join(f"--exclude-namespace {each}" for each in namespaces),
        patch="namespaceSelector:\n  matchExpressions:\n"
        f"  - {{key: {NAME_LABEL}, operator: NotIn, values: [{values}]}}\n",
    )


def narrowing(rule: Rule, probes: Sequence[Probe]) -> Remedy:
    """Of a rule that matches what is in no namespace that could be excluded: leave it out, or let it pass."""
    named = sorted({probe.resource.resource for probe in probes} & {text.partition("/")[0] for text in rule.resources})
    if named:
        return Remedy(
            text=f"move {', '.join(named)} to a policy of their own that fails open, or leave them out",
            patch="failurePolicy: Ignore\n",
        )
    in_namespaces = _as_json(rule) | {"scope": Scope.NAMESPACED.value}
    return Remedy(
        text="name in the rule only the resources that the policy judges",
        patch="" if any(probe.anywhere for probe in probes) else f"rules:\n- {json.dumps(in_namespaces)}\n",
    )


def wildcards(rule: Rule) -> tuple[str, ...]:
    """The lists of a rule that match kinds which may not exist yet, by their field's name; ``*`` of the operations only
    counts beside one of these.
    """
    lists = {"apiGroups": ANY in rule.api_groups, "resources": any(text.startswith(ANY) for text in rule.resources)}
    found = tuple(name for name, has_wildcard in lists.items() if has_wildcard)
    return (*found, "operations") if found and ANY in rule.operations else found


def _as_json(rule: Rule) -> dict[str, Any]:
    return {
        "operations": list(rule.operations),
        "apiGroups": list(rule.api_groups),
        "apiVersions": list(rule.api_versions),
        "resources": list(rule.resources),
        "scope": rule.scope.value,
    }
