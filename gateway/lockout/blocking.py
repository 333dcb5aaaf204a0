"""Findings about webhooks of which a probe is called: what they block while no server answers there."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet

from msgspec import Struct

from gateway.lockout.configurations import Webhook
from gateway.lockout.findings import (
    Code,
    Finding,
    Remedy,
    Severity,
    exclusion,
    listed,
    narrowing,
    place,
    rule_path,
    wildcards,
)
from gateway.lockout.probes import Probe
from gateway.lockout.reach import Reach, reach
from gateway.lockout.rule_timeouts import worst_seconds
from gateway.matching.rules import matches_any_version
from gateway.matching.selectors import Labels


class CalledProbe(Struct, frozen=True, kw_only=True):
    """A probe, and the webhooks that are, or may be, called for it."""

    probe: Probe
    webhooks: tuple[tuple[Webhook, Reach], ...]

    @property
    def seconds(self) -> float:
        """How long they may take together."""
        return worst_seconds([webhook.policy for webhook, _ in self.webhooks])

    @property
    def is_promised(self) -> bool:
        """Whether the request succeeds while no gateway can be reached."""
        return not self.closed and self.seconds <= self.probe.seconds

    @property
    def closed(self) -> list[tuple[Webhook, Reach]]:
        """Those of the gateway without which the request is refused."""
        return [(webhook, how) for webhook, how in self.webhooks if webhook.own and webhook.fails_closed]


def called_probe(probe: Probe, webhooks: Iterable[Webhook], namespaces: Mapping[str, Labels]) -> CalledProbe:
    """The webhooks that are, or may be, called for the probe."""
    request = probe.request()
    judged = [(webhook, reach(webhook.policy, probe, request, namespaces)) for webhook in webhooks]
    return CalledProbe(
        probe=probe,
        webhooks=tuple((webhook, how) for webhook, how in judged if how is not Reach.NOT_CALLED),
    )


def _rule(webhook: Webhook, probe: Probe) -> int:
    """The index of the rule that matches; the first one, if it is not known which."""
    namespaced = bool(probe.namespace) and probe.resource.resource != "namespaces"
    matching = (
        index
        for index, rule in enumerate(webhook.policy.rules)
        if matches_any_version(rule, probe.operation, probe.resource, probe.sub_resource, namespaced=namespaced)
    )
    return next(matching, 0)


_Key = tuple[str, int, Severity, Code, bool]


def lockouts(called: Iterable[CalledProbe]) -> Iterator[Finding]:
    """For each rule what it blocks: apart what must not be blocked, and what a namespace's exclusion helps."""
    groups: dict[_Key, list[tuple[Webhook, Probe]]] = defaultdict(list)
    for each in called:
        probe = each.probe
        for webhook, how in each.closed:
            certain = how is Reach.CALLED
            severity = Severity.REFUSE if certain and probe.essential else Severity.WARN
            code = Code.LOCKOUT if certain else Code.POSSIBLE_LOCKOUT
            groups[place(webhook), _rule(webhook, probe), severity, code, probe.excludable].append((webhook, probe))
    for (where, index, severity, code, excludable), members in groups.items():
        webhook, probes = members[0][0], tuple(probe for _, probe in members)
        rules = webhook.policy.rules
        remedy = (
            exclusion(list(dict.fromkeys(probe.namespace for probe in probes)))
            if excludable or not rules
            else narrowing(rules[index], probes)
        )
        whether = (
            "" if code is Code.LOCKOUT else "depending on labels of namespaces, authorizations or served versions, "
        )
        reasons = "; ".join(dict.fromkeys(f"{probe.what}: {probe.because}" for probe in probes))
        yield Finding(
            severity=severity,
            code=code,
            message=f"while no gateway answers, {whether}kube-apiserver refuses {listed(probes)}. {reasons}",
            remedy=remedy,
            webhook=where,
            path=rule_path(webhook, index),
            policies=_behind(webhook, probes),
            requests=probes,
        )


def _behind(webhook: Webhook, probes: Iterable[Probe]) -> tuple[str, ...]:
    """The policies of the entry that judge one of them; all, if the entry's rules are wider than its policies'."""
    requests = [(probe, probe.request()) for probe in probes]
    found = [
        policy.qualified_name
        for policy in webhook.policies
        if any(reach(policy, probe, request, {}) is not Reach.NOT_CALLED for probe, request in requests)
    ]
    return tuple(found or (policy.qualified_name for policy in webhook.policies))


def other_webhooks(called: Iterable[CalledProbe]) -> Iterator[Finding]:
    """Webhooks of others that can keep the gateway's Pods from starting."""
    groups: dict[str, list[tuple[Webhook, Probe]]] = defaultdict(list)
    for each in called:
        for webhook, _ in each.webhooks:
            if not webhook.own and webhook.fails_closed:
                groups[place(webhook)].append((webhook, each.probe))
    for where, members in groups.items():
        webhook, probes = members[0][0], tuple(probe for _, probe in members)
        yield Finding(
            severity=Severity.WARN,
            code=Code.OTHER_WEBHOOK,
            message=f"while this webhook of others cannot be reached, {listed(probes)} may be refused",
            remedy=Remedy(
                text="exclude the gateway's namespace from that webhook",
                patch=exclusion([probes[0].namespace]).patch,
            ),
            webhook=where,
            path=rule_path(webhook, _rule(webhook, probes[0])),
            requests=probes,
        )


def wide_rules(webhooks: Iterable[Webhook], known: AbstractSet[tuple[str, str]]) -> Iterator[Finding]:
    """Wildcards under Fail, unless another finding names the rule."""
    for webhook in webhooks:
        if not (webhook.own and webhook.fails_closed):
            continue
        for index, rule in enumerate(webhook.policy.rules):
            wide = wildcards(rule)
            if wide and (place(webhook), rule_path(webhook, index)) not in known:
                yield Finding(
                    severity=Severity.WARN,
                    code=Code.WIDE_RULES,
                    message=f'{" and ".join(wide)} "*" under failurePolicy Fail: the rule also blocks kinds and '
                    "operations that the policies were not written for, while no gateway answers",
                    remedy=Remedy(text=f"name the {' and '.join(wide)} that the policies judge"),
                    webhook=place(webhook),
                    path=rule_path(webhook, index),
                    policies=tuple(policy.qualified_name for policy in webhook.policies),
                )
                break
