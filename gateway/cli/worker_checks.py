"""Verifies a configuration with its workers, for ``check --with-workers``: starts or connects to them.

It is a separate module because it imports what calls workers, which ``check`` alone does not need.
"""

import asyncio
import signal
from collections.abc import Iterable
from typing import Any, Final

import click
import uvloop
from msgspec.structs import replace

from gateway.cli.standard_streams import COULD_NOT, fail
from gateway.cli.transport_options import chosen_transport_config
from gateway.policies.errors import ConfigurationError
from gateway.policies.field_errors import one_line
from gateway.policies.model import Configuration
from gateway.telemetry.logs import configure_logs
from gateway.transports.limits import TransportLimits
from gateway.transports.transport_config import TransportConfig
from gateway.transports.verification import Verification, verified

_NO_WORKERS: Final = Verification(refused=(), workers=())


def verify(configuration: Configuration, unstartable: Iterable[str], values: dict[str, Any]) -> Verification:
    """Call all workers but ``unstartable``; prints their names to the standard error.

    Args:
        configuration: not ``fatal``.
        unstartable: names of workers whose command does not exist.
        values: the command's options.
    """
    transport_config, seconds = chosen_transport_config(values), values["worker_startup_timeout"]
    excluded = set(unstartable)
    called = {name: worker for name, worker in configuration.workers.items() if name not in excluded}
    names = [one_line(name) for name, worker in called.items() if worker.webhook is None]
    if not names:
        return _NO_WORKERS
    click.echo(f"waiting up to {seconds:g} s for workers: {', '.join(names)}", err=True)
    stop_logs = configure_logs(level=values["log_level"], form="text")
    try:
        return uvloop.run(_verified(replace(configuration, workers=called), transport_config, seconds))
    except (KeyboardInterrupt, asyncio.CancelledError):
        fail("interrupted", COULD_NOT)
    finally:
        stop_logs()


def refusals(verification: Verification) -> tuple[ConfigurationError, ...]:
    """What workers reject, as errors of the configuration."""
    return tuple(error for policy in verification.refused for error in policy.errors)


async def _verified(configuration: Configuration, transport_config: TransportConfig, seconds: float) -> Verification:
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - a coroutine of a loop that runs
    for number in (signal.SIGTERM, signal.SIGHUP):
        # A closed terminal sends SIGHUP: without this, workers that were started here would continue.
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    return await verified(configuration, TransportLimits(), transport_config, wait_seconds=seconds)
