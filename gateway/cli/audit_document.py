"""The document that ``audit -o json`` prints.

``apiVersion: admission-gateway.dev/audit/v1alpha1``, ``kind: AuditReport``. Within a version, members may be added, but
none is removed or changes its meaning.

=============================  ====================================================================================
member                         value
=============================  ====================================================================================
started, ended                 RFC 3339; of an audit that went on, started is its beginning
complete                       whether every object was judged by every policy that is audited
objects                        how many objects at least one policy matches
passed, violations, errors     results: each is one policy's verdict on one object; errors: not judged
policies[]                     each validating policy, in chain order
…name, mode, failurePolicy     CONFIGURATION/NAME, and as configured
…contact, documentation        as configured
…audited, why                  whether it was audited; why not
…passed, violations, errors    its results
…findings[]                    at most 500 of its violations and errors, and 5,000 of all policies; the counts say how
                               many there are
……result                       violation or error
……reason, message              the reason code of an error, else ""; the policy's message, at most 1,000 characters.
                               Of a policy that received a value of a Secret no message is shown
……operation                    CREATE or UPDATE: as what it was judged
……group, version, resource     of the object; kind, namespace, name and uid too
skipped                        how many objects or lines of --unjudged-from were not to be judged, by reason
incomplete[]                   what was not read, and why
=============================  ====================================================================================
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from gateway.audit.results import AuditResults, Count
from gateway.policies.model import Policy

API_VERSION: Final = "admission-gateway.dev/audit/v1alpha1"
KIND: Final = "AuditReport"


class AuditReport(Struct, frozen=True, kw_only=True):
    """A finished audit: its results, and of which policies; ``excluded``: why some were not audited.

    ``narrowed``: flags have left out objects or policies.
    """

    results: AuditResults
    policies: Sequence[Policy]
    excluded: Mapping[str, str]
    started: str
    ended: str
    narrowed: bool = False

    @property
    def complete(self) -> bool:
        """Whether all that was to be judged was judged."""
        return not self.results.incomplete and not self.results.totals().errors

    def count(self, policy: Policy) -> Count:
        """The results of a policy."""
        return self.results.policies.get(policy.qualified_name) or Count()


def audit_document(report: AuditReport) -> bytes:
    """The document: JSON without a line break."""
    results, total = report.results, report.results.totals()
    return msgspec.json.encode(
        {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "started": report.started,
            "ended": report.ended,
            "complete": report.complete,
            "objects": results.objects,
            "passed": total.passed,
            "violations": total.violations,
            "errors": total.errors,
            "policies": [_policy(report, each) for each in report.policies],
            "skipped": results.skipped,
            "incomplete": results.incomplete,
        }
    )


def _policy(report: AuditReport, policy: Policy) -> dict[str, Any]:
    name, count = policy.qualified_name, report.count(policy)
    return {
        "name": name,
        "mode": policy.mode.value,
        "failurePolicy": policy.failure_policy.value,
        "contact": policy.contact,
        "documentation": policy.documentation,
        "audited": name not in report.excluded,
        "why": report.excluded.get(name, ""),
        "passed": count.passed,
        "violations": count.violations,
        "errors": count.errors,
        "findings": report.results.of(name),
    }
