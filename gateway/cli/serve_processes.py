"""``admission-gateway serve --processes N``: the parent of the processes, until SIGTERM or SIGINT."""

import asyncio
import signal
from pathlib import Path
from typing import Any

from gateway.cli.serve import configure_garbage_collection, report_addresses
from gateway.cli.serve_settings import chosen_settings
from gateway.cli.standard_streams import COULD_NOT, fail, print_notes
from gateway.serving.acceptor import ListenError
from gateway.serving.credential_files import CredentialError
from gateway.serving.processes.pod import Pod, StartError
from gateway.serving.settings import Settings
from gateway.telemetry.logs import configure_logs

_PARENT = 0
"""The number of the parent in log lines."""


def run_processes(policies: tuple[Path, ...], values: dict[str, Any]) -> None:
    """Run the processes; exit as one of them does that cannot start."""
    number = values["processes"]
    # The first process prints what the start finds.
    print_notes(wanted=False)
    settings, _ = chosen_settings(policies, values)
    print_notes(wanted=True)
    stop_logs = configure_logs(level=values["log_level"], form=values["log_format"], process=_PARENT)
    try:
        asyncio.run(_serve(settings, number))
    except StartError as error:
        if error.code < 0:
            fail(f"the first process was ended by signal {-error.code} before it served", COULD_NOT)
        raise SystemExit(error.code) from None
    except (CredentialError, ListenError, OSError) as error:
        fail(str(error), COULD_NOT)
    finally:
        stop_logs()


async def _serve(settings: Settings, number: int) -> None:
    loop = asyncio.get_running_loop()
    pod = Pod(settings, number)
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(each, pod.signal, each)
    try:
        report_addresses(*await pod.start())
    except StartError:
        if pod.is_stopping:
            return
        raise
    configure_garbage_collection()
    if not await pod.wait():
        raise SystemExit(1)
