"""What registering would make impossible: the probes that are blocked, those that are promised, and the findings.

A probe is **blocked** if a webhook under Fail is called for it: while no gateway answers, kube-apiserver refuses it. It
is **promised** if no webhook under Fail is called for it, whatever the labels of namespaces are that are not known, and
if all webhooks that are called for it take less time together than its sender waits. So a promise holds whether the
gateway refuses connections or swallows them.

How long webhooks take together: mutating ones are called one after another, and under IfNeeded again if another one
has changed the object; validating ones in parallel.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from gateway.lockout.blocking import CalledProbe, called_probe, lockouts, other_webhooks, wide_rules
from gateway.lockout.catalogue import Workload, workload_probes
from gateway.lockout.cluster_probes import cluster_probes
from gateway.lockout.configurations import Webhook
from gateway.lockout.dependencies import REDIS, Cycle
from gateway.lockout.findings import Code, Finding, Remedy, Severity, exclusion, listed
from gateway.lockout.probes import Probe
from gateway.lockout.rule_timeouts import slow_rules
from gateway.matching.selectors import Labels


class Examination(Struct, frozen=True, kw_only=True):
    """``findings``: those that refuse first. ``promised`` and ``blocked`` are all probes."""

    findings: tuple[Finding, ...]
    promised: tuple[Probe, ...]
    blocked: tuple[Probe, ...]

    @property
    def refused(self) -> bool:
        """Whether a finding refuses the registration."""
        return any(each.severity is Severity.REFUSE for each in self.findings)

    def with_findings(self, more: Iterable[Finding]) -> "Examination":
        """The same with findings of other checks."""
        return replace(self, findings=_ordered((*self.findings, *more)))


def refusal(examination: Examination) -> str | None:
    """The findings that refuse in one sentence; None: none does."""
    found = [each for each in examination.findings if each.severity is Severity.REFUSE]
    if not found:
        return None
    first = found[0]
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    where = f"{first.webhook} {first.path}: " if first.webhook else ""
    return f"it could lock the cluster: {where}{first.message}{more}"


def examine(
    webhooks: Sequence[Webhook],
    workloads: Iterable[Workload],
    *,
    cycles: Iterable[Cycle] = (),
    namespaces: Mapping[str, Labels] | None = None,
) -> Examination:
    """What registering these webhooks means.

    Args:
        webhooks: the gateway's own, as they would be registered, and all others, as far as they are known.
        workloads: the Pods that must be able to start, besides what every cluster needs.
        cycles: Pods that wait for themselves (``dependencies``).
        namespaces: labels, as far as they are known.
    """
    known = namespaces or {}
    starting = tuple(workloads)
    probes = [*(probe for each in starting for probe in workload_probes(each)), *cluster_probes()]
    called = [called_probe(probe, webhooks, known) for probe in probes]
    blocked = tuple(lockouts(called))
    findings = [
        *blocked,
        *map(_of_cycle, cycles),
        *_slow(called),
        *slow_rules(webhooks),
        *other_webhooks([each for each in called if each.probe.what in {pods.what for pods in starting if pods.own}]),
        *wide_rules(webhooks, {(each.webhook, each.path) for each in blocked}),
    ]
    return Examination(
        findings=_ordered(findings),
        promised=tuple(each.probe for each in called if each.is_promised),
        blocked=tuple(each.probe for each in called if not each.is_promised),
    )


def _ordered(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=lambda each: each.severity is not Severity.REFUSE))


def _of_cycle(cycle: Cycle) -> Finding:
    names = tuple(policy.qualified_name for policy in cycle.policies)
    who = cycle.dependency if cycle.dependency == REDIS else f"worker {cycle.dependency}"
    message = (
        f"the Pods of {who} in namespace {cycle.namespace} start only if {listed(names)} can be judged, which needs "
        "Pods that wait for it: after a cold start none of them starts"
    )
    return Finding(
        severity=Severity.REFUSE if cycle.certain else Severity.WARN,
        code=Code.DEPENDENCY_CYCLE,
        message=message if cycle.certain else f"depending on labels of namespaces, {message}",
        remedy=exclusion([cycle.namespace]),
        policies=names,
    )


def _slow(called: Iterable[CalledProbe]) -> Iterator[Finding]:
    """What takes longer than its sender waits, although no webhook refuses it."""
    groups: dict[tuple[bool, bool, float, float], list[Probe]] = defaultdict(list)
    for each in called:
        probe = each.probe
        if not each.closed and each.seconds > probe.seconds and any(webhook.own for webhook, _ in each.webhooks):
            groups[probe.essential, probe.excludable, each.seconds, probe.seconds].append(probe)
    for (essential, excludable, seconds, limit), probes in groups.items():
        yield Finding(
            severity=Severity.REFUSE if essential else Severity.WARN,
            code=Code.SLOW,
            message=f"all webhooks together may take {seconds:g} s, and the sender waits {limit:g} s, so that "
            f"{listed(probes)} may fail while webhooks do not answer, even if all of them fail open",
            remedy=exclusion(list(dict.fromkeys(probe.namespace for probe in probes)))
            if excludable
            else Remedy(text="leave these resources out of the rules, or shorten the policies' timeoutSeconds"),
            requests=tuple(probes),
        )
