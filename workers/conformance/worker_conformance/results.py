"""What a run found, as a value: the text report and the JSON report show the same one.

The JSON report is versioned by ``apiVersion``. Within v1 members are only added; ``report.schema.json`` beside this
module is its JSON Schema.
"""

from typing import Literal

import msgspec

API_VERSION = "conformance.admission-gateway.dev/v1"

Outcome = Literal["passed", "failed", "skipped", "broken"]
"""``broken``: the check itself went wrong, which is a mistake of the kit's and says nothing about the worker."""


class Contract(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence of the contract, word for word.

    Attributes:
        source: the file in which it stands.
        sentence: the sentence.
    """

    source: str
    sentence: str


class Result(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One check.

    Attributes:
        name: SECTION.WHAT.
        sentence: what it establishes.
        contract: what it holds the worker to.
        outcome: how it ended.
        seconds: how long it took.
        reason: of a skipped check: why. Of a broken one: what went wrong.
        expected: of a failed check: what the contract expects.
        observed: of a failed check: what the worker did.
    """

    name: str
    sentence: str
    contract: Contract
    outcome: Outcome
    seconds: float
    reason: str = ""
    expected: str = ""
    observed: str = ""


class Worker(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Who was checked.

    Attributes:
        address: where.
        name: as it describes itself; may be empty.
        version: likewise.
        policies: those that it describes.
        has_review_stream: whether it has ``ReviewStream``.
    """

    address: str
    name: str
    version: str
    policies: list[str]
    has_review_stream: bool


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """How many checks ended how."""

    passed: int
    failed: int
    skipped: int
    broken: int


class Report(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A whole run.

    Attributes:
        api_version: of this form.
        kind: ``Report``.
        kit_version: of the kit.
        started_at: RFC 3339, in UTC.
        seconds: how long it took.
        worker: who was checked.
        summary: the numbers.
        checks: in the order of ``--list``.
    """

    kit_version: str
    started_at: str
    seconds: float
    worker: Worker
    summary: Summary
    checks: list[Result]
    api_version: str = API_VERSION
    kind: Literal["Report"] = "Report"


def counted(results: list[Result]) -> Summary:
    """The numbers of these results."""
    outcomes = [result.outcome for result in results]
    return Summary(
        passed=outcomes.count("passed"),
        failed=outcomes.count("failed"),
        skipped=outcomes.count("skipped"),
        broken=outcomes.count("broken"),
    )


def schema() -> bytes:
    """The JSON Schema (2020-12) of a report, as JSON text."""
    made = msgspec.json.schema(Report)
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return msgspec.json.format(msgspec.json.encode(dialect | made), indent=2) + b"\n"
