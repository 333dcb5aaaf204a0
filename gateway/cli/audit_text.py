"""``audit``'s report as text: policy by policy, what violates it and whom to ask."""

from collections.abc import Iterator
from typing import Final

import click

from gateway.audit.results import Count, Finding, Result
from gateway.cli.audit_document import AuditReport
from gateway.policies.model import Mode, Policy
from gateway.quoting import clean

SHOWN: Final = 50
"""Findings of one policy that are printed; ``-o json`` has more."""


def audit_lines(report: AuditReport) -> Iterator[str]:
    """The lines of the report."""
    for policy in report.policies:
        if policy.qualified_name not in report.excluded:
            yield from _policy(report, policy)
    for name, why in report.excluded.items():
        yield f"{click.style('not audited', fg='yellow')}: {name}: {clean(why)}"
    for why, number in report.results.skipped.items():
        yield f"not judged: {number} {clean(why)}"
    for why in report.results.incomplete:
        yield f"{click.style('incomplete', fg='red')}: {clean(why)}"
    yield _summary(report)


def _policy(report: AuditReport, policy: Policy) -> Iterator[str]:
    count = report.count(policy)
    colour = "red" if count.violations else "yellow" if count.errors else "green"
    title = f"{policy.qualified_name}: {_counted(count)}"
    mode = "" if policy.mode is Mode.ENFORCE else f" (mode {policy.mode.value}: not enforced)"
    yield click.style(title, fg=colour, bold=True) + mode
    if count.violations:
        for name, value in (("contact", policy.contact), ("documentation", policy.documentation)):
            if value:
                yield f"  {name}: {clean(value)}"
    findings = report.results.of(policy.qualified_name)[:SHOWN]
    for finding in findings:
        yield f"  {finding.place}: {_text(finding)}"
    if (more := count.violations + count.errors - len(findings)) > 0:
        yield f"  and {more} more"


def _counted(count: Count) -> str:
    errors = f", {_number(count.errors, 'object')} not judged" if count.errors else ""
    return f"{_number(count.violations, 'violation')} in {_number(count.judged, 'object')}{errors}"


def _number(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _text(finding: Finding) -> str:
    message = " ".join(clean(finding.message).split())
    if finding.result is not Result.ERROR:
        return message
    return f"not judged: {finding.reason}: {message}" if finding.reason else f"not judged: {message}"


def _summary(report: AuditReport) -> str:
    total = report.results.totals()
    audited = len(report.policies) - len(report.excluded)
    errors = "" if report.complete else "; the audit is incomplete"
    objects = _number(report.results.objects, "object")
    policies = "1 policy" if audited == 1 else f"{audited} policies"
    return f"{objects}, {policies}: {_number(total.violations, 'violation')}{errors}"
