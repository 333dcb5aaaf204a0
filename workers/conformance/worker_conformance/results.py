"""The results of a run, which both the text report and the JSON report show.

``apiVersion`` is the version of the JSON report. Within v1 members are only added. Its JSON Schema is
``report.schema.json`` beside this module.
"""

from typing import Literal

import msgspec

API_VERSION = "conformance.admission-gateway.dev/v1"

Outcome = Literal["passed", "failed", "skipped", "broken"]
"""``broken``: the check itself failed. This is an error of the kit, not of the worker."""


class Contract(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence of the contract, word for word.

    Attributes:
        source: its file.
        sentence: the sentence.
    """

    source: str
    sentence: str


class Result(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One check.

    Attributes:
        name: SECTION.WHAT.
        sentence: the property.
        contract: the sentence that requires it.
        outcome: its outcome.
        seconds: how long it took.
        reason: of a skipped check: why. Of a broken one: the error.
        expected: of a failed check: what the contract requires.
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
    """The worker.

    Attributes:
        address: its address.
        name: the name in its description; may be empty.
        version: the version in its description; may be empty.
        policies: the policies in its description.
        has_review_stream: whether it has ``ReviewStream``.
    """

    address: str
    name: str
    version: str
    policies: list[str]
    has_review_stream: bool


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """The number of checks with each outcome."""

    passed: int
    failed: int
    skipped: int
    broken: int


class Report(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A whole run.

    Attributes:
        api_version: the version of this format.
        kind: ``Report``.
        kit_version: the kit's version.
        started_at: RFC 3339, in UTC.
        seconds: how long it took.
        worker: the worker.
        summary: the number of checks with each outcome.
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
    """The number of these results with each outcome."""
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
