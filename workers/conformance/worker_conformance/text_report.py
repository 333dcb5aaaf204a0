"""The text report: a line for each check, the failures in full, the reasons of skipped checks, and a summary."""

import sys
import textwrap
from collections.abc import Iterable

import click

from worker_conformance.check import Check
from worker_conformance.results import Outcome, Report, Result

WORDS: dict[Outcome, tuple[str, str]] = {
    "passed": ("ok", "green"),
    "failed": ("FAILED", "red"),
    "skipped": ("skipped", "yellow"),
    "broken": ("BROKEN", "magenta"),
}

NAME_WIDTH = 44
"""A little more than the longest name."""

TEXT_WIDTH = 112


def line(result: Result) -> str:
    """One line for one check, with colours, which ``click.echo`` removes without a terminal."""
    word, colour = WORDS[result.outcome]
    return f"{click.style(f'{word:8}', fg=colour)} {result.name:{NAME_WIDTH}} {result.sentence}"


def failures(results: Iterable[Result]) -> str:
    """All failed and broken checks in full; "" without any."""
    wrong = [result for result in results if result.outcome in {"failed", "broken"}]
    return "\n".join(map(_failure, wrong))


def _failure(result: Result) -> str:
    word, colour = WORDS[result.outcome]
    head = f"\n{click.style(word, fg=colour)} {click.style(result.name, bold=True)}: {result.sentence}"
    if result.outcome == "broken":
        return f"{head}\n{_field('error', f'of the kit, not of the worker: {result.reason}')}"
    contract = f'"{result.contract.sentence}" ({result.contract.source})'
    fields = (("expected", result.expected), ("observed", result.observed), ("contract", contract))
    return "\n".join([head, *(_field(name, text) for name, text in fields)])


def _field(name: str, text: str) -> str:
    indent = " " * 12
    lines = [wrapped for line in text.splitlines() for wrapped in textwrap.wrap(line, TEXT_WIDTH) or [""]] or [""]
    return f"  {name:8}  " + f"\n{indent}".join(lines)


def ending(report: Report) -> str:
    """The reasons of skipped checks, and the summary."""
    reasons: dict[str, int] = {}
    for result in report.checks:
        if result.outcome == "skipped":
            reasons[result.reason] = reasons.get(result.reason, 0) + 1
    skipped = "".join(f"\nskipped {count}: {reason}" for reason, count in reasons.items())
    numbers = report.summary
    parts = [f"{numbers.passed} ok", f"{numbers.failed} failed", f"{numbers.skipped} skipped"]
    if numbers.broken:
        parts.append(f"{numbers.broken} broken (errors of the kit)")
    worker = report.worker
    subject = f"worker {worker.name or '(no name)'} {worker.version} at {worker.address}"
    return f"{skipped}\n{subject}: {', '.join(parts)} in {report.seconds:.1f} s"


def listing(checks: Iterable[Check]) -> str:
    """All checks with their sentence, the sentence of the contract, and what they need."""
    return "\n".join(_listed(check) for check in checks)


def _listed(check: Check) -> str:
    needs = [*check.probes]
    needs += ["the command"] if check.command else []
    needs += ["ReviewStream"] if check.stream else []
    needed = f"\n    needs {', '.join(needs)}" if needs else ""
    quoted = " ".join(check.contract.text.split())
    return f'{check.name}\n    {check.sentence}\n    "{quoted}" ({check.contract.source}){needed}'


class Progress:
    """A line with the progress on standard error, if that is a terminal."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._shown = sys.stderr.isatty()

    def advance(self) -> None:
        """Count one more check."""
        self._done += 1
        self.show()

    def show(self) -> None:
        """Write the line."""
        if self._shown and self._done < self._total:
            click.echo(f"\r\033[K{self._done}/{self._total} ...", err=True, nl=False)

    def hide(self) -> None:
        """Remove the line before other output."""
        if self._shown:
            click.echo("\r\033[K", err=True, nl=False)
