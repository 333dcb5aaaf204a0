"""What an audit has found: counts of everything, and a bounded number of findings. They are what a state file keeps.

One result is one policy's verdict on one object:

=========  ===========================================================================================================
result     of
=========  ===========================================================================================================
pass       an allow
violation  a denial, whatever the policy's mode
error      a failure: the object was not judged by this policy, whatever its failurePolicy
=========  ===========================================================================================================
"""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct, field

from gateway.enums import StrEnum

FINDINGS_OF_ONE: Final = 500
"""Findings that are kept of one policy. Who has more corrects the first of them, and audits again."""

FINDINGS_KEPT: Final = 5_000
"""Findings that are kept of all policies together: at ``MESSAGE_CHARACTERS`` and a KB of names 10 MB, rarely
a tenth."""

MESSAGE_CHARACTERS: Final = 1_000
"""Characters that are kept of a policy's message."""

INCOMPLETE_KEPT: Final = 200
"""Reasons that are kept why something was not audited: one for each resource, and of hundreds the cause is one."""


class Result(StrEnum):
    """A policy's verdict on an object."""

    PASS = "pass"  # noqa: S105 - the word of PolicyReports
    VIOLATION = "violation"
    ERROR = "error"


class Finding(Struct, frozen=True, kw_only=True, rename="camel"):
    """A violation, or an object that was not judged.

    ``policy`` is CONFIGURATION/NAME, ``reason`` the reason code of an error. ``namespace`` is that of the object's
    metadata: "" for a Namespace.
    """

    policy: str
    result: Result
    message: str
    reason: str = ""
    operation: str
    group: str
    version: str
    resource: str
    kind: str
    namespace: str
    name: str
    uid: str

    @property
    def place(self) -> str:
        """``deployments.apps team-a/web``."""
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{resource} {self.namespace}/{self.name}" if self.namespace else f"{resource} {self.name}"


class Count(Struct, kw_only=True):
    """How many results there are of each kind, and how many findings are kept."""

    passed: int = 0
    violations: int = 0
    errors: int = 0
    kept: int = 0

    @property
    def judged(self) -> int:
        """Objects with a verdict."""
        return self.passed + self.violations

    def add(self, other: "Count") -> None:
        """Add all but ``kept``."""
        self.passed += other.passed
        self.violations += other.violations
        self.errors += other.errors


class AuditResults(Struct, kw_only=True, rename="camel"):
    """The results of an audit, or of a part of it.

    ``objects`` counts the objects that a policy matches, each once; ``policies`` results by policy, ``namespaces`` by
    namespace ("": objects that are in none). ``skipped`` counts by reason what was not to be judged, ``incomplete`` has
    why something that was to be judged was not.
    """

    objects: int = 0
    policies: dict[str, Count] = field(default_factory=dict)
    namespaces: dict[str, Count] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    skipped: dict[str, int] = field(default_factory=dict)
    incomplete: list[str] = field(default_factory=list)

    def passed(self, policy: str, namespace: str) -> None:
        """Count an allow."""
        for count in self._counts(policy, namespace):
            count.passed += 1

    def found(self, finding: Finding) -> None:
        """Count a violation or an error, and keep it if there is room."""
        for count in self._counts(finding.policy, finding.namespace):
            if finding.result is Result.VIOLATION:
                count.violations += 1
            else:
                count.errors += 1
        self._keep(finding)

    def skip(self, why: str, number: int = 1) -> None:
        """Count objects that are not to be judged."""
        self.skipped[why] = self.skipped.get(why, 0) + number

    def not_audited(self, why: str) -> None:
        """Say that something could not be audited."""
        if len(self.incomplete) < INCOMPLETE_KEPT:
            self.incomplete.append(why)

    def add(self, other: "AuditResults") -> None:
        """Add the results of another part."""
        self.objects += other.objects
        for own, others in ((self.policies, other.policies), (self.namespaces, other.namespaces)):
            for name, count in others.items():
                own.setdefault(name, Count()).add(count)
        for finding in other.findings:
            self._keep(finding)
        for why, number in other.skipped.items():
            self.skip(why, number)
        for why in other.incomplete:
            self.not_audited(why)

    def totals(self) -> Count:
        """Over all policies."""
        total = Count()
        for each in self.policies.values():
            total.add(each)
        return total

    def of(self, policy: str) -> list[Finding]:
        """The findings that are kept of a policy, by place; violations first."""
        own = [each for each in self.findings if each.policy == policy]
        return sorted(own, key=lambda each: (each.result is Result.ERROR, each.place))

    def _counts(self, policy: str, namespace: str) -> Iterable[Count]:
        return self.policies.setdefault(policy, Count()), self.namespaces.setdefault(namespace, Count())

    def _keep(self, finding: Finding) -> None:
        count = self.policies[finding.policy]
        if count.kept < FINDINGS_OF_ONE and len(self.findings) < FINDINGS_KEPT:
            count.kept += 1
            self.findings.append(finding)
