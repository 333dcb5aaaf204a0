"""The worker's command: flags, signals, exit codes, supervision.

Each flag is an environment variable too (``ADMISSION_WORKER_LISTEN`` for ``--listen``). Exit codes: 0 stopped by
SIGTERM or SIGINT; 1 could not listen, or a certificate could not be used; 2 an invalid flag. An error is one line. A
second signal ends the process at once.

With ``ADMISSION_WORKER_SUPERVISED=1``, which the gateway sets, the worker also stops when its standard input ends. The
gateway holds the other end and writes nothing, so the input ends when the gateway ends, even by SIGKILL. Otherwise an
orphaned worker would keep the socket.
"""

import asyncio
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click
from msgspec import Struct

from admission_worker import logs
from admission_worker.address import parse
from admission_worker.certificates import Tls
from admission_worker.errors import AddressError, CertificateError
from admission_worker.limits import Limits
from admission_worker.server import THREAD_NAME

if TYPE_CHECKING:
    from admission_worker.worker import Worker

_LOG = logging.getLogger("admission_worker")

SUPERVISED = "ADMISSION_WORKER_SUPERVISED"

THREAD_END_SECONDS = 0.2
"""The time limit for idle threads to end, which takes microseconds."""

_DEFAULTS = Limits()


class _Choice(Struct, frozen=True, kw_only=True):
    """The values of the flags."""

    listen: str
    tls: Tls | None
    limits: Limits
    conformance: bool


def run(worker: "Worker", argv: Sequence[str] | None) -> NoReturn:
    """Run a worker's command, and exit.

    Args:
        worker: the worker whose policies the command serves.
        argv: the arguments without the program's name; None: the process's own.
    """
    try:
        command(worker).main(args=None if argv is None else list(argv), standalone_mode=False)
    except click.ClickException as error:
        sys.stderr.write(f"Error: {' '.join(error.format_message().split())} (--help lists the flags)\n")
        _end(error.exit_code)
    _end(0)  # --help


def command(worker: "Worker") -> click.Command:
    """The command of a worker."""

    def serve(  # noqa: PLR0913 - the flags
        *,
        listen: str,
        log_format: str,
        log_level: str,
        tls_cert: Path | None,
        tls_key: Path | None,
        client_ca: Path | None,
        conformance: bool,
        **limits: Any,
    ) -> None:
        choice = _Choice(
            listen=listen, tls=_tls(tls_cert, tls_key, client_ca), limits=Limits(**limits), conformance=conformance
        )
        try:
            worker.served(conformance=conformance)
        except ValueError as error:
            raise click.UsageError(str(error)) from None
        logs.start(log_format, log_level)
        try:
            asyncio.run(_serve(worker, choice))
        except (AddressError, CertificateError) as error:
            _LOG.error("%s", error)
            _end(1)
        _end(0)

    return click.Command(
        name=worker.name,
        callback=serve,
        params=[*_options(), *_tls_options(), *_limits()],
        help=f"Serve the policies of worker {worker.name} {worker.version}: {', '.join(worker.policies) or 'none'}.",
        context_settings={"auto_envvar_prefix": "ADMISSION_WORKER"},
    )


def _options() -> list[click.Parameter]:
    return [
        click.Option(
            ["--listen"],
            default="127.0.0.1:50051",
            show_default=True,
            show_envvar=True,
            callback=_checked_address,
            help="Where to serve: HOST:PORT, unix:PATH or unix:///ABSOLUTE. A leading dns:/// is ignored.",
        ),
        click.Option(
            ["--log-format"], type=click.Choice(logs.FORMATS), default="text", show_default=True, show_envvar=True
        ),
        click.Option(
            ["--log-level"], type=click.Choice(logs.LEVELS), default="info", show_default=True, show_envvar=True
        ),
    ]


def _tls_options() -> list[click.Parameter]:
    texts = {
        "tls_cert": "Serve TLS with the certificate in this PEM file; read again when it changes.",
        "tls_key": "The PEM file with its private key.",
        "client_ca": "Serve only clients with a certificate of the CAs in this PEM file.",
    }
    files = [
        click.Option(
            [f"--{name.replace('_', '-')}"],
            type=click.Path(path_type=Path),
            show_envvar=True,
            metavar="FILE",
            help=text,
        )
        for name, text in texts.items()
    ]
    conformance = click.Option(
        ["--conformance"], is_flag=True, show_envvar=True, help="Also serve the conformance kit's probe policies."
    )
    return [*files, conformance]


def _tls(cert: Path | None, key: Path | None, client_ca: Path | None) -> Tls | None:
    if (cert is None) != (key is None):
        given, missing = ("--tls-cert", "--tls-key") if key is None else ("--tls-key", "--tls-cert")
        raise click.UsageError(f"{given} needs {missing}")
    if cert is None or key is None:
        if client_ca is not None:
            raise click.UsageError("--client-ca needs --tls-cert and --tls-key")
        return None
    return Tls(cert=cert, key=key, client_ca=client_ca)


def _limits() -> list[click.Parameter]:
    """One option for each limit that operators can change."""
    texts = {
        "in_flight": "Policy calls at the same time; the worker rejects more.",
        "message_bytes": "The largest gRPC message in bytes, received or sent.",
        "threads": "Blocking policies that run at the same time.",
        "settings_kept": "Parsed settings in the cache.",
        "grace_period": "Seconds for open calls after a signal to stop.",
    }
    return [
        click.Option(
            [f"--{name.replace('_', '-')}"],
            type=click.FloatRange(min=0) if name == "grace_period" else click.IntRange(min=1),
            default=getattr(_DEFAULTS, name),
            show_default=True,
            show_envvar=True,
            help=text,
        )
        for name, text in texts.items()
    ]


def _checked_address(_context: click.Context, _option: click.Parameter, value: str) -> str:
    try:
        parse(value)
    except AddressError as error:
        raise click.BadParameter(str(error)) from None
    return value


async def _serve(worker: "Worker", choice: _Choice) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _signalled, stop, number)
    serving = worker.serve(choice.listen, limits=choice.limits, tls=choice.tls, conformance=choice.conformance)
    async with serving as address:
        names = ", ".join(worker.served(conformance=choice.conformance)) or "none"
        _LOG.info("worker %s %s listens on %s; policies: %s", worker.name, worker.version, address, names)
        if os.environ.get(SUPERVISED) == "1":
            _watch_standard_input(loop, stop)
        await stop.wait()
        _LOG.info("stopping: open calls have %g s", choice.limits.grace_period)
    _LOG.info("stopped")


def _signalled(stop: asyncio.Event, number: signal.Signals) -> None:
    if stop.is_set():
        _LOG.warning("%s again: ending at once", number.name)
        os._exit(1)
    _LOG.info("%s received", number.name)
    stop.set()


def _watch_standard_input(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    """Stop when standard input ends. A thread reads it, because it may be a pipe, a terminal, a file, or closed."""

    def wait_for_the_end() -> None:
        try:
            while os.read(0, 4096):
                pass
        except OSError:
            pass  # there is no standard input, so there is no supervisor
        _LOG.info("standard input has ended: the parent process is gone; stopping")
        loop.call_soon_threadsafe(stop.set)

    threading.Thread(target=wait_for_the_end, name="supervisor", daemon=True).start()


def _end(code: int) -> NoReturn:
    """Exit, even while a blocking policy runs in a thread; Python would wait for it."""
    patience = time.monotonic() + THREAD_END_SECONDS
    busy = [thread for thread in threading.enumerate() if thread.name.startswith(THREAD_NAME)]
    for thread in busy:
        thread.join(max(0.0, patience - time.monotonic()))
    if any(thread.is_alive() for thread in busy):
        _LOG.warning("a blocking policy still runs; its thread is abandoned")
        logging.shutdown()
        sys.stdout.flush()
        os._exit(code)
    raise SystemExit(code)
