"""The configuration that ``serve``, ``review`` and ``demo`` begin with, and what they tell of its mistakes."""

from collections.abc import Iterable, Sequence

from gateway.cli.streams import WRONG_CONFIGURATION, fail, note
from gateway.policies.configuration import load
from gateway.policies.decoding.texts import SourceText
from gateway.policies.errors import ConfigurationError
from gateway.policies.model import Configuration


def loaded(texts: Sequence[SourceText], *, unknown: int = WRONG_CONFIGURATION, strict: bool = False) -> Configuration:
    """The configuration in these texts, with its mistakes told; exit ``unknown`` if it must not be served.

    Args:
        texts: of the source.
        unknown: the exit code.
        strict: nothing with a mistake is served.
    """
    configuration = load(texts)
    for warning in configuration.warnings:
        note(f"warning: {warning}", fg="yellow")
    report_errors(configuration.errors)
    if configuration.fatal:
        fail(
            f"{counted(len(configuration.errors))}, and who judges cannot be known: nothing is served",
            unknown,
        )
    if configuration.errors and not strict:
        note(
            "policies with mistakes fail, as their failurePolicy says; the others are served, those with a mistake in "
            "their shadow without it",
            fg="red",
        )
    return configuration


def report_errors(errors: Iterable[ConfigurationError]) -> None:
    """Mistakes, in the words of ``check``, a line each."""
    for error in errors:
        note(f"error: {error}", fg="red")


def counted(faults: int) -> str:
    """How many there are, in words."""
    return "1 mistake" if faults == 1 else f"{faults} mistakes"
