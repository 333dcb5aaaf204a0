"""The output of ``demo``: one screen."""

import os
import shutil
import sys
import textwrap
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Final

import click
from msgspec import Struct

from gateway.cli.commands.admin_calls import DEFAULT
from gateway.cli.terminal_text import change, outcome, sentences, title
from gateway.engine.answer_source import Source
from gateway.engine.decision import Decision, Outcome
from gateway.engine.invocation_record import InvocationRecord
from gateway.engine.plan import Described
from gateway.engine.response_builder import help_text
from gateway.policies.model import Configuration, Phase
from gateway.serving.app import Gateway

_NAME_WIDTH: Final = 18
_TITLE_WIDTH: Final = 52
_WIDTH: Final = 112
"""Columns: the width of a wide terminal."""
_CHANGES_SHOWN: Final = 4

_COLOURS: Final = {Outcome.ALLOWED: "green", Outcome.DENIED: "red", Outcome.FAILED: "red"}


def opening(configuration: Configuration, gateway: Gateway, url: str) -> Iterator[str]:
    """The address, workers and policies of the gateway."""
    availabilities = [
        availability for phase in Phase for availability in gateway.workers.availabilities(phase).values()
    ]
    workers = ", ".join(sorted(configuration.workers))
    yield ""
    yield f"  gateway   {url}, TLS with a development certificate"
    yield f"  workers   {workers}: gRPC, started by the gateway"
    yield (
        f"  policies  {len(configuration.mutating)} mutating, {len(configuration.validating)} validating; "
        f"{sum(isinstance(availability, Described) for availability in availabilities)} described and ready"
    )
    yield ""
    yield "Requests of a real kube-apiserver, sent to /mutate and, with its changes, to /validate:"
    yield ""


def narrate(number: int, path: Path, decisions: Sequence[Decision]) -> Iterator[str]:
    """One request, through both phases: the verdict, its reason, and which policy changed which field."""
    if not decisions:
        yield f"{number:>2}  {path.name}: no answer"
        return
    last = decisions[-1]
    verdict = click.style(outcome(last.outcome.value, last.response.status), fg=_COLOURS[last.outcome], bold=True)
    yield f"{number:>2}  {title(last.request):<{_TITLE_WIDTH}} {verdict}"
    lines = [
        line for decision in decisions for call in decision.calls for line in _reported(call, decision.request.uid)
    ]
    if not any(call.matched for decision in decisions for call in decision.calls):
        lines = ["    no policy matches this request"]
    yield from lines or ["    all matching policies allow it without changes"]


def closing(decisions: Collection[Decision], again: Collection[Decision]) -> Iterator[str]:
    """The totals, and how many verdicts came from the cache when the first review was repeated."""
    calls = [call for decision in decisions for call in decision.calls if call.matched]
    refused = sum(not decision.response.allowed for decision in decisions)
    changes = sum(len(call.changes) for call in calls)
    took = sorted(1000 * (decision.ended - decision.started) for decision in decisions)
    yield ""
    yield (
        f"{len(decisions)} reviews: {len(decisions) - refused} allowed, {refused} refused, {changes} changes in "
        f"{len(calls)} calls; {took[len(took) // 2]:.1f} ms median, {took[-1]:.1f} ms maximum"
    )
    answers = [call for decision in again for call in decision.calls if call.matched]
    cached = [call.policy.policy for call in answers if call.source is Source.MEMORY]
    if cached:
        yield (
            f"The first review repeated: {len(cached)} of {len(answers)} verdicts came from the cache "
            f"({', '.join(dict.fromkeys(cached))})"
        )


class DeniedReview(Struct, frozen=True, kw_only=True):
    """The file of a review that was denied in the validating phase, the uid in it, and that of the denied call."""

    path: Path
    recorded_uid: str
    uid: str


def next_steps(url: str, ca: Path, admin: str, example: Path, denied: DeniedReview | None) -> Iterator[str]:
    """What to open, how to see why a review was denied, and how to send one.

    Args:
        url: of the gateway.
        ca: the file of its certificate authority.
        admin: the URL of its admin listener.
        example: the file of a review.
        denied: a review that was denied; None: all were allowed.
    """
    yield ""
    yield f"Open {admin}/ui/ in a browser: these reviews, where their time went, and those that follow"
    option = "" if admin == DEFAULT else f" --admin {admin}"
    if denied is not None:
        yield ""
        yield "Why was a request denied? Ask with the uid of its denial, in another terminal:"
        yield f"  {_own_command()} explain {denied.uid}{option}"
    yield ""
    path, review = ("mutate", example) if denied is None else ("validate", denied.path)
    yield f"Send a review yourself, as kube-apiserver does{'' if denied is None else '; this one is denied'}:"
    yield f"  curl --cacert {ca} -H 'Content-Type: application/json' '{url}/{path}?timeout=10s' \\"
    yield f"    --data-binary @{review}"
    if denied is not None:
        yield "Its message ends with its uid, which leads to the line of the policy:"
        yield f"  {_own_command()} explain {denied.recorded_uid}{option}"
    yield f"Metrics and health: {admin}/metrics, '{admin}/readyz?verbose'"


def _own_command() -> str:
    """This command, as a shell in the same directory finds it."""
    own = Path(sys.argv[0])
    return "admission-gateway" if shutil.which("admission-gateway") or not own.is_file() else os.path.relpath(own)


def _reported(call: InvocationRecord, uid: str) -> Iterator[str]:
    name = call.policy.policy
    for verb, colour, text in sentences(call):
        yield from _wrapped(name, click.style(f"{verb:<7}", fg=colour), text + help_text(call, uid))
    for operation in call.changes[:_CHANGES_SHOWN]:
        yield f"    {name:<{_NAME_WIDTH}} {change(operation, _WIDTH - _NAME_WIDTH - 13)}"
        name = ""
    if len(call.changes) > _CHANGES_SHOWN:
        yield f"    {'':<{_NAME_WIDTH}} and {len(call.changes) - _CHANGES_SHOWN} more changes"


def _wrapped(name: str, verb: str, message: str) -> Iterator[str]:
    first, *more = textwrap.wrap(message, _WIDTH - _NAME_WIDTH - 13) or [""]
    yield f"    {name:<{_NAME_WIDTH}} {verb} {first}"
    for line in more:
        yield f"    {'':<{_NAME_WIDTH}}         {line}"
