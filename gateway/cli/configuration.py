"""Loads the configuration for ``serve``, ``review`` and ``demo``, and reports its errors."""

from collections.abc import Iterable, Sequence

from gateway.cli.standard_streams import WRONG_CONFIGURATION, fail, note
from gateway.policies.configuration import load
from gateway.policies.decoding.texts import SourceText
from gateway.policies.errors import ConfigurationError
from gateway.policies.model import Configuration


def loaded(texts: Sequence[SourceText], *, unknown: int = WRONG_CONFIGURATION, strict: bool = False) -> Configuration:
    """The configuration in these texts. Reports its errors; exits with ``unknown`` if it cannot be served.

    Args:
        texts: of the source.
        unknown: the exit code.
        strict: the caller rejects a configuration with errors.
    """
    configuration = load(texts)
    for warning in configuration.warnings:
        note(f"warning: {warning}", fg="yellow")
    report_errors(configuration.errors)
    if configuration.fatal:
        fail(
            f"the configuration has {counted(len(configuration.errors))} and is not served: its policies are not known",
            unknown,
        )
    if configuration.errors and not strict:
        note(
            "policies with errors fail by their failurePolicy; the others are served, without shadows that have errors",
            fg="red",
        )
    return configuration


def report_errors(errors: Iterable[ConfigurationError]) -> None:
    """Print each error on a line, as ``check`` does."""
    for error in errors:
        note(f"error: {error}", fg="red")


def counted(errors: int) -> str:
    """The number of errors with its noun."""
    return "1 error" if errors == 1 else f"{errors} errors"
