"""``admission-gateway review``: decides requests as ``serve`` does, without a cluster.

It connects to the workers of the configuration (and starts those that have a command) as ``serve`` does, without a
listener and certificates. ``gateway.serving.dispatch_simulator`` calls the registration entries as the API server does,
and states what cannot be known offline.

Exit codes, for scripts and pipelines:

    ====  ==========================================================================================================
    0     every request is allowed
    1     at least one is refused, as the API server would refuse it: a policy denies it, or fails under failurePolicy
          Fail
    2     at least one could not be decided: a file cannot be read or contains no AdmissionReview, or the configuration
          cannot be served. The other files are decided nevertheless.
    ====  ==========================================================================================================
"""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import click
import uvloop

from gateway.cli.configuration import loaded
from gateway.cli.decision_document import decision_document
from gateway.cli.hook_options import chosen_hooks, require_policies
from gateway.cli.options import chosen_limits
from gateway.cli.review_files import FileError, documents
from gateway.cli.review_text import reported
from gateway.cli.standard_streams import COULD_NOT, fail, note
from gateway.cli.transport_options import chosen_transport_config, report_unused_hosts
from gateway.patching.limits import PatchLimits
from gateway.policies.model import Configuration, Phase
from gateway.registration.entries import make_entries
from gateway.review.request import Request, ReviewError, decode
from gateway.serving.dispatch_simulator import DispatchSimulator, Simulation, UnconvertedError, after_mutation
from gateway.serving.limits import Limits
from gateway.serving.loaded_configuration import LoadedConfiguration
from gateway.sources.files import SourceError
from gateway.sources.watching import Source
from gateway.telemetry.logs import configure_logs
from gateway.transports.limits import TransportLimits
from gateway.transports.transport_config import TransportConfig
from gateway.transports.worker_pool import WorkerPool

ALLOWED: Final = 0
DENIED: Final = 1

_PHASES: Final = {
    "mutate": (Phase.MUTATING,),
    "validate": (Phase.VALIDATING,),
    "both": (Phase.MUTATING, Phase.VALIDATING),
}

_WAIT_SECONDS: Final = 1.0
"""Seconds after which the command prints which workers it waits for."""


def run(files: tuple[str, ...], policies: tuple[Path, ...], **values: Any) -> None:
    """See the command."""
    limits, transport_limits, patch_limits = chosen_limits(values, Limits, TransportLimits, PatchLimits)
    transport_config, hooks = chosen_transport_config(values), chosen_hooks(values)
    require_policies(policies, hooks, "--policies")
    stop_logs = configure_logs(level=values["log_level"], form="text")
    try:
        configuration = loaded(Source(policies, hooks).read(), unknown=COULD_NOT)
        report_unused_hosts(configuration, transport_config)
        command = _ReviewRun(
            configuration,
            phases=_PHASES[values["phase"]],
            as_json=values["output"] == "json",
            limits=(limits, transport_limits, patch_limits),
            wait_seconds=values["worker_startup_timeout"],
            prefetch=not values["no_prefetch"],
            entry=_entry(configuration, values["phase"], values["entry"]),
            transport_config=transport_config,
        )
        # Before the loop: standard input may block, and a signal must end that.
        reviews = command.read(files)
        code = uvloop.run(command.run(reviews)) if reviews else COULD_NOT
    except SourceError as error:
        fail(str(error), COULD_NOT)
    except (KeyboardInterrupt, asyncio.CancelledError):
        # Not 1, which means that a request is refused.
        fail("interrupted", COULD_NOT)
    finally:
        stop_logs()
    sys.exit(code)


def _entry(configuration: Configuration, phase: str, name: str | None) -> str | None:
    """The chosen entry's name, None for all.

    Raises:
        click.UsageError: it is no entry of the chosen phase.
    """
    if name is None:
        return None
    found = make_entries(configuration)
    known = {"mutate": found.mutating, "validate": found.validating}.get(phase)
    if known is None:
        raise click.UsageError("--entry requires --phase mutate or validate: an entry belongs to one phase")
    if name not in {each.name for each in known}:
        raise click.UsageError(f"--entry {name}: no entry of this phase; check prints them")
    return name


class _ReviewRun:
    """One run of the command."""

    def __init__(  # noqa: PLR0913 - all but the first by name
        self,
        configuration: Configuration,
        *,
        phases: tuple[Phase, ...],
        as_json: bool,
        limits: tuple[Limits, TransportLimits, PatchLimits],
        wait_seconds: float,
        prefetch: bool,
        entry: str | None,
        transport_config: TransportConfig,
    ) -> None:
        self._configuration = configuration
        self._phases = phases
        self._as_json = as_json
        self._limits, self._transport_limits, self._patch_limits = limits
        self._wait_seconds = wait_seconds
        self._prefetch = prefetch
        self._entry = entry
        self._transport_config = transport_config
        self._code = ALLOWED

    def read(self, files: Sequence[str]) -> list[tuple[str, bytes]]:
        """The reviews in these files, each with its name. Reports files that cannot be used."""
        found: list[tuple[str, bytes]] = []
        for name in files:
            try:
                found += documents(name)
            except FileError as error:
                self._could_not(name, str(error))
        return found

    async def run(self, reviews: Sequence[tuple[str, bytes]]) -> int:
        """Decide all reviews; returns the exit code."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine of a loop that runs
        for number in (signal.SIGTERM, signal.SIGHUP):
            # A closed terminal sends SIGHUP: without this, workers and hooks that were started here would continue.
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        async with self._workers() as loaded:
            simulator = DispatchSimulator(loaded, self._patch_limits, prefetch=self._prefetch, entry=self._entry)
            for source, body in reviews:
                await self._decide(simulator, source, body)
        return self._code

    @asynccontextmanager
    async def _workers(self) -> AsyncIterator[LoadedConfiguration]:
        """The loaded configuration; at the end, its workers are closed."""
        pool = WorkerPool(self._transport_limits, config=self._transport_config)
        loaded = LoadedConfiguration(self._configuration, pool, limits=self._transport_limits)
        names = ", ".join(sorted(self._configuration.workers))
        wait_time = asyncio.get_running_loop().call_later(
            _WAIT_SECONDS,
            lambda: note(f"waiting for the workers: {names} (--log-level info shows what they print)"),
        )
        try:
            await loaded.start(wait_seconds=self._wait_seconds)
            wait_time.cancel()
            yield loaded
        finally:
            wait_time.cancel()
            await loaded.close()
            await pool.close()

    async def _decide(self, simulator: DispatchSimulator, source: str, body: bytes) -> None:
        try:
            request = self._decoded(body)
            for phase in self._phases:
                simulation = await simulator.simulate(phase, request)
                self._show(source, simulation)
                if not simulation.allowed:
                    return
                request = after_mutation(simulation)
        except (ReviewError, UnconvertedError) as error:
            self._could_not(source, str(error))

    def _decoded(self, body: bytes) -> Request:
        if len(body) > self._limits.body_bytes:
            raise ReviewError(
                f"the review has {len(body)} bytes, the limit is {self._limits.body_bytes} (--limit-body-bytes): serve "
                "rejects it with code 413"
            )
        return decode(body, depth=self._limits.depth, readable=self._limits.readable_values)

    def _show(self, source: str, simulation: Simulation) -> None:
        if not simulation.allowed and self._code == ALLOWED:
            self._code = DENIED
        if self._as_json:
            click.echo(decision_document(source, simulation))
        else:
            for line in reported(source, simulation, first=simulation.phase is self._phases[0]):
                click.echo(line)

    def _could_not(self, source: str, why: str) -> None:
        self._code = COULD_NOT
        note(f"error: {source}: {why}", fg="red")
