"""All checks, in the order of a report."""

from worker_conformance.check import Check
from worker_conformance.checks import (
    answers,
    command,
    connections,
    describe,
    documents,
    expected,
    health,
    load,
    review,
    settings,
    sizes,
    stopping,
    stream,
    tls,
    verdicts,
    waiting,
)

SECTIONS = (
    describe.section,
    settings.section,
    review.section,
    answers.section,
    documents.section,
    verdicts.section,
    expected.section,
    waiting.section,
    stream.section,
    health.section,
    connections.section,
    sizes.section,
    load.section,
    command.section,
    stopping.section,
    tls.section,
)

CHECKS: tuple[Check, ...] = tuple(check for section in SECTIONS for check in section.checks)
