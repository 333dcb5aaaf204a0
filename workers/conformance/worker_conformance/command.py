"""``admission-worker-conformance``: the command."""

import asyncio
import fnmatch
import signal
import sys
import tempfile
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import click
import msgspec

from worker_conformance import VERSION, calls_file, text_report
from worker_conformance.calls_file import Calls
from worker_conformance.check import Check
from worker_conformance.checks import CHECKS
from worker_conformance.findings import StartError
from worker_conformance.processes import Launcher
from worker_conformance.results import Report, Result, schema
from worker_conformance.runner import run
from worker_conformance.target import Target, Tls

FAILED, NOT_RUN = 1, 2
"""Exit codes: a check failed; the kit could not run, or a check is broken. 0: no check failed."""

SAMPLES = files("worker_conformance") / "samples.jsonl"
"""Calls of the sample policies, with the outcomes that are the same in every SDK."""

_PEM = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(context_settings={"max_content_width": 100})
@click.option("--target", metavar="ADDRESS", help="A running worker: HOST:PORT, dns:///HOST:PORT or unix:PATH.")
@click.option("--probes", is_flag=True, help="Start COMMAND with --conformance, for its probe policies.")
@click.option(
    "--calls", type=click.Path(path_type=Path), help="Calls of the worker's policies: YAML, JSON or JSON Lines."
)
@click.option("--samples", is_flag=True, help="Check the sample policies against their recorded outcomes.")
@click.option("--only", multiple=True, metavar="NAME", help="Run only these checks; 'stream.*' is a section.")
@click.option(
    "--patience", type=click.FloatRange(min=0.1), default=10.0, show_default=True, help="Seconds for each wait."
)
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--tls-ca", type=_PEM, help="The CAs of the worker's certificate, for TLS.")
@click.option("--tls-cert", type=_PEM, help="The client's certificate, for mTLS.")
@click.option("--tls-key", type=_PEM, help="The client's private key.")
@click.option("--server-name", default="", help="The name in the worker's certificate, if it is not the address's.")
@click.option("--list", "lists", is_flag=True, help="Show all checks, what they need, and the contract's sentences.")
@click.option("--schema", "wants_schema", is_flag=True, help="Show the JSON Schema of -o json.")
@click.version_option(VERSION)
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def main(  # noqa: PLR0913, PLR0917 - one for each option
    target: str | None,
    probes: bool,  # noqa: FBT001 - click passes by name
    calls: Path | None,
    samples: bool,  # noqa: FBT001
    only: tuple[str, ...],
    patience: float,
    output: str,
    tls_ca: Path | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    server_name: str,
    lists: bool,  # noqa: FBT001
    wants_schema: bool,  # noqa: FBT001
    command: tuple[str, ...],
) -> None:
    """Check a worker of the admission gateway by the contract alone.

    The worker is a running one (--target), or the kit starts it with COMMAND, about 20 times.

    Exit codes: 0 no check failed; 1 a check failed; 2 the kit could not run.
    """
    try:
        chosen = select(only)
        if lists or wants_schema:
            click.echo(text_report.listing(chosen) if lists else schema(), nl=lists)
            return
        where = _target(target, tls_ca, tls_cert, tls_key, server_name)
        _check_one_way(where, command, probes=probes)
        extra = _calls(calls, samples=samples)
        with tempfile.TemporaryDirectory(prefix="kit-") as folder:
            launcher = Launcher(command=command, probes=probes, folder=Path(folder), patience=patience)
            started = launcher if command else None
            if started:
                _let_workers_be_interrupted()
            report = asyncio.run(_run(where, started, chosen, extra, patience=patience, text=output == "text"))
    except StartError as error:
        click.echo(f"admission-worker-conformance: {error}", err=True)
        sys.exit(NOT_RUN)
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(report), indent=2))
    else:
        if found := text_report.failures(report.checks):
            click.echo(found)
        click.echo(text_report.ending(report))
    sys.exit(FAILED if report.summary.failed else NOT_RUN if report.summary.broken else 0)


def select(only: Sequence[str]) -> tuple[Check, ...]:
    """The checks with these names or patterns; all without any.

    Raises:
        StartError: no check has that name.
    """
    if not only:
        return CHECKS
    for name in only:
        if not any(fnmatch.fnmatchcase(check.name, name) for check in CHECKS):
            raise StartError(f"--only {name}: no such check; --list shows all")
    return tuple(check for check in CHECKS if any(fnmatch.fnmatchcase(check.name, name) for name in only))


def _calls(path: Path | None, *, samples: bool) -> Calls:
    """The calls of the file, or those of the samples.

    Raises:
        StartError: both are given, or the file cannot be used.
    """
    if samples:
        if path:
            raise StartError("give either --calls FILE or --samples")
        return calls_file.read(SAMPLES)
    return calls_file.read(path) if path else Calls()


def _let_workers_be_interrupted() -> None:
    """Replace an ignored SIGINT with a handler.

    A shell's background job ignores SIGINT. A child process inherits that, and Java keeps it; it does not inherit a
    handler.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda *_: None)


def _target(
    address: str | None, ca: Path | None, cert: Path | None, key: Path | None, server_name: str
) -> Target | None:
    if address is None:
        if ca or cert or key or server_name:
            raise StartError("--tls-ca, --tls-cert, --tls-key and --server-name need --target")
        return None
    if ca is None:
        if cert or key or server_name:
            raise StartError("--tls-cert, --tls-key and --server-name need --tls-ca")
        return Target(address=address)
    if (cert is None) != (key is None):
        raise StartError("give both --tls-cert and --tls-key, or neither")
    return Target(address=address, tls=Tls(ca=ca, cert=cert, key=key, server_name=server_name))


def _check_one_way(where: Target | None, command: tuple[str, ...], *, probes: bool) -> None:
    """Check that either a target or a command is given.

    Raises:
        StartError: neither is, or both.
    """
    if (where is None) == (not command):
        raise StartError("give either --target ADDRESS, or the worker's command after --")
    if probes and not command:
        raise StartError("--probes needs a COMMAND; start the worker of --target with --conformance instead")


async def _run(
    where: Target | None,
    launcher: Launcher | None,
    checks: tuple[Check, ...],
    calls: Calls,
    *,
    patience: float,
    text: bool,
) -> Report:
    progress = text_report.Progress(len(checks))

    def show(result: Result) -> None:
        progress.hide()
        if text:
            click.echo(text_report.line(result))
        progress.advance()

    progress.show()
    try:
        return await run(where, launcher, checks=checks, calls=calls, patience=patience, on_result=show)
    finally:
        progress.hide()
