"""The reports of an audit: as text, as a document, and as PolicyReports."""

import json

import click
import yaml

from gateway.audit.results import AuditResults, Finding, Result
from gateway.cli import policy_reports as reports
from gateway.cli.audit_document import AuditReport, audit_document
from gateway.cli.audit_text import SHOWN, audit_lines
from gateway.policies.model import Mode, Phase
from tests.world import policy

A = policy("a", phase=Phase.VALIDATING, contact="team a", documentation="https://example.com/a", mode=Mode.WARN)
B = policy("b", phase=Phase.VALIDATING, index=1)
C = policy("c", phase=Phase.VALIDATING, index=2)


def finding(about, name, *, namespace="n", result=Result.VIOLATION, reason=""):
    place = {"group": "apps", "version": "v1", "resource": "deployments", "kind": "Deployment", "uid": "u"}
    said = {"message": "no\nway", "reason": reason, "operation": "CREATE"}
    return Finding(policy=about.qualified_name, result=result, namespace=namespace, name=name, **place, **said)


def made(*findings, **fields):
    results = AuditResults(objects=3, **fields)
    for each in findings:
        results.found(each)
    results.passed(A.qualified_name, "n")
    results.passed(B.qualified_name, "m")
    times = {"started": "2026-01-01T00:00:00Z", "ended": "2026-01-01T00:00:10Z"}
    return AuditReport(results=results, policies=[A, B, C], excluded={C.qualified_name: "it must not"}, **times)


FOUND = made(
    finding(A, "d"), finding(A, "c", namespace=""), finding(B, "e", result=Result.ERROR, reason="WORKER_TIMEOUT")
)


def test_the_text_says_who_violates_what_and_whom_to_ask():
    """Policy by policy; of others, why they were not audited."""
    lines = [click.unstyle(line) for line in audit_lines(FOUND)]
    a, b, c = (each.qualified_name for each in (A, B, C))
    assert lines == [
        f"{a}: 2 violations in 3 objects (mode warn: not enforced)",
        "  contact: team a",
        "  documentation: https://example.com/a",
        "  deployments.apps c: no way",
        "  deployments.apps n/d: no way",
        f"{b}: 0 violations in 1 object, 1 object not judged",
        "  deployments.apps n/e: not judged: WORKER_TIMEOUT: no way",
        f"not audited: {c}: it must not",
        "3 objects, 2 policies: 2 violations; the audit is incomplete",
    ]


def test_the_text_says_what_it_leaves_out():
    """A screen of one policy, and the number of the rest."""
    lines = list(audit_lines(made(*(finding(B, f"d{number}") for number in range(SHOWN + 3)))))
    assert "  and 3 more" in lines


def test_the_document_has_all_that_is_kept():
    """Each policy with its counts and findings."""
    document = json.loads(audit_document(FOUND))
    assert (document["kind"], document["complete"], document["violations"], document["errors"]) == (
        "AuditReport",
        False,
        2,
        1,
    )
    first, _, last = document["policies"]
    assert [each["name"] for each in first["findings"]] == ["c", "d"]
    assert (last["audited"], last["why"]) == (False, "it must not")


def test_each_namespace_has_a_report(monkeypatch):
    """Also one without a finding; and one of the objects in no namespace. What is cut is said."""
    monkeypatch.setattr(reports, "RESULTS", 1)
    cluster, m, n = yaml.safe_load_all(reports.policy_reports(FOUND))
    assert [each["kind"] for each in (cluster, m, n)] == ["ClusterPolicyReport", "PolicyReport", "PolicyReport"]
    assert m["summary"] == {"pass": 1, "fail": 0, "warn": 0, "error": 0, "skip": 0}
    assert m["results"] == []
    assert n["metadata"]["annotations"] == {"admission-gateway.dev/results-not-shown": "1"}
    assert n["results"] == [
        {
            "source": "admission-gateway",
            "policy": A.qualified_name,
            "rule": A.policy,
            "result": "fail",
            "scored": True,
            "message": "no\nway",
            "resources": [{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "n", "name": "d", "uid": "u"}],
            "properties": {
                "mode": "warn",
                "operation": "CREATE",
                "contact": "team a",
                "documentation": "https://example.com/a",
            },
            "timestamp": {"seconds": 1767225610, "nanos": 0},
        }
    ]
