"""The configuration that ``serve``, ``review`` and ``demo`` begin with, and what they tell of its mistakes."""

from collections.abc import Sequence

import click

from gateway.cli.exits import WRONG_CONFIGURATION, fail
from gateway.policies.configuration import load
from gateway.policies.document import SourceText
from gateway.policies.model import Configuration


def loaded(texts: Sequence[SourceText], *, unknown: int = WRONG_CONFIGURATION) -> Configuration:
    """The configuration in these texts, with its mistakes told; exit ``unknown`` if it must not be served."""
    configuration = load(texts)
    for warning in configuration.warnings:
        click.secho(f"warning: {warning}", fg="yellow", err=True)
    for error in configuration.errors:
        click.secho(f"error: {error}", fg="red", err=True)
    if configuration.fatal:
        fail(
            f"{_counted(len(configuration.errors))}, and who judges cannot be known: nothing is served",
            unknown,
        )
    if configuration.errors:
        click.secho(
            "policies with mistakes fail, as their failurePolicy says; the others are served, those with a mistake in "
            "their shadow without it",
            fg="red",
            err=True,
        )
    return configuration


def _counted(mistakes: int) -> str:
    return "1 mistake" if mistakes == 1 else f"{mistakes} mistakes"
