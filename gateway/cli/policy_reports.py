"""``audit -o policyreport``: PolicyReports and a ClusterPolicyReport as YAML documents, for ``kubectl apply``.

The API is ``wgpolicyk8s.io/v1alpha2`` of the Kubernetes policy working group, which Kyverno and others write, and
Policy Reporter shows: its definitions are in the clusters that have one of them. Its successor ``openreports.io`` has
nearly the same members, and is in fewer clusters.

* A namespace in which an object was judged has a report, also without a violation: it replaces that of the last audit.
  An audit of some policies or objects only replaces them by less.
* ``results`` has the findings, not what passes; ``summary`` counts all results. ``fail`` is a violation, in whatever
  mode its policy is, and ``error`` an object that was not judged.
* A report has at most ``RESULTS`` results, and says what was cut in an annotation: etcd stores 1.5 MiB.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

import yaml

from gateway.audit.results import Count, Finding, Result
from gateway.cli.audit_document import AuditReport
from gateway.gotypes.meta import group_version
from gateway.policies.model import Policy

API_VERSION: Final = "wgpolicyk8s.io/v1alpha2"
NAME: Final = "admission-gateway-audit"
SOURCE: Final = "admission-gateway"

RESULTS: Final = 500
"""Results of one report: at ``MESSAGE`` characters of four bytes and 700 bytes of the rest 1.35 MB."""

MESSAGE: Final = 500
"""Characters of a result's message; ``-o json`` has more."""

_CUT: Final = "admission-gateway.dev/results-not-shown"


def policy_reports(report: AuditReport) -> str:
    """The documents, that of objects in no namespace first."""
    return "".join(f"---\n{yaml.safe_dump(each, sort_keys=False, allow_unicode=True)}" for each in _reports(report))


def _reports(report: AuditReport) -> Iterator[dict[str, Any]]:
    policies = {policy.qualified_name: policy for policy in report.policies}
    by_namespace: dict[str, list[Finding]] = {}
    for name in policies:
        for finding in report.results.of(name):
            by_namespace.setdefault(finding.namespace, []).append(finding)
    ended = int(datetime.fromisoformat(report.ended).timestamp())
    always = {} if report.narrowed else {"": Count()}
    for namespace, count in sorted({**always, **report.results.namespaces}.items()):
        found = by_namespace.get(namespace, [])
        results = [_result(each, policies[each.policy], ended) for each in found[:RESULTS]]
        yield _report(namespace, count, results)


def _report(namespace: str, count: Count, results: list[dict[str, Any]]) -> dict[str, Any]:
    cut = count.violations + count.errors - len(results)
    metadata: dict[str, Any] = {"name": NAME}
    if namespace:
        metadata["namespace"] = namespace
    metadata["labels"] = {"app.kubernetes.io/managed-by": SOURCE}
    if cut:
        metadata["annotations"] = {_CUT: str(cut)}
    return {
        "apiVersion": API_VERSION,
        "kind": "PolicyReport" if namespace else "ClusterPolicyReport",
        "metadata": metadata,
        "summary": {"pass": count.passed, "fail": count.violations, "warn": 0, "error": count.errors, "skip": 0},
        "results": results,
    }


def _result(finding: Finding, policy: Policy, ended: int) -> dict[str, Any]:
    failed = finding.result is Result.VIOLATION
    properties = {
        "mode": policy.mode.value,
        "operation": finding.operation,
        "reason": finding.reason,
        "contact": policy.contact,
        "documentation": policy.documentation,
    }
    place = {
        "apiVersion": group_version(finding.group, finding.version),
        "kind": finding.kind,
        "namespace": finding.namespace,
        "name": finding.name,
        "uid": finding.uid,
    }
    return {
        "source": SOURCE,
        "policy": finding.policy,
        "rule": policy.policy,
        "result": "fail" if failed else "error",
        "scored": True,
        "message": finding.message[:MESSAGE],
        "resources": [{name: value for name, value in place.items() if value}],
        "properties": {name: value for name, value in properties.items() if value},
        "timestamp": {"seconds": ended, "nanos": 0},
    }
