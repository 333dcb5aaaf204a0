"""``admission-gateway serve``: serve kube-apiserver until SIGTERM or SIGINT."""

import asyncio
import ctypes
import gc
import signal
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import uvloop
from msgspec.structs import replace

from gateway.cli.configuration import counted, loaded, report_errors
from gateway.cli.serve_settings import chosen_settings
from gateway.cli.standard_streams import COULD_NOT, WRONG_CONFIGURATION, fail, note, print_notes
from gateway.cli.transport_options import report_unused_hosts
from gateway.cluster.errors import KubeconfigError
from gateway.policies.configuration import load
from gateway.policies.decoding.texts import SourceText
from gateway.policies.model import Configuration
from gateway.serving.acceptor import ListenError
from gateway.serving.app import Gateway, StrictError, WatchedSource
from gateway.serving.credential_files import CredentialError
from gateway.serving.decision_outputs import OutputError
from gateway.serving.development_certificates import CertificateError
from gateway.serving.lifecycle import handle_exception, serve_until, start_unless
from gateway.serving.processes.channel import ProcessChannel, ProcessIdentity
from gateway.serving.settings import Address
from gateway.serving.tls import TlsError
from gateway.serving.verdict_cache import CacheError
from gateway.sources.files import SourceError
from gateway.sources.watching import Source
from gateway.telemetry.logs import configure_logs
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.table import LOG_LINES_DROPPED

_THREADS: Final = 64
"""Threads for name resolution, files and large answers. A name without a DNS answer blocks one for the resolver's
timeout, some 10 s. Python's default is 4 more than cores: a few webhooks with such names would block all file reads."""

_COLLECT_AFTER: Final = 20_000
"""New objects until a garbage collection: those of some fifty reviews, a few megabytes. A review makes a few hundred,
which reference counting frees; at the default threshold of 700 a collection ran every other review and took 3 % of the
time."""

_COLLECT_AGAIN_AFTER: Final = 5
"""Collections of new objects until one of those that survived them: at most 120,000, which takes some 20 ms."""

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
"""glibc's malloc.h."""

_MMAP_BYTES: Final = 131_072
"""glibc's own initial value: an ordinary review has no block as large."""

_TRIM_BYTES: Final = 1_048_576
"""Free bytes at the heap's end that are kept: with less, ordinary reviews would give back and ask again."""

_REFUSED: Final = (
    SourceError,
    CacheError,
    CredentialError,
    OutputError,
    TlsError,
    CertificateError,
    ListenError,
    KubeconfigError,
)
"""What refuses a start: their texts say what to do."""


def run(policies: tuple[Path, ...], **values: Any) -> None:
    """See the command."""
    process = ProcessIdentity.inherited()
    if process is None and values["processes"] > 1:
        # Imported here: one process needs none of it.
        from gateway.cli.serve_processes import run_processes  # noqa: PLC0415

        run_processes(policies, values)
        return
    print_notes(wanted=process is None or process.speaks)
    settings, hooks = chosen_settings(policies, values)
    if process is not None:
        transports = replace(settings.transport_config, starts_fixed_targets=process.number == 1)
        settings = replace(settings, process=process.number, transport_config=transports)
    metrics = Metrics()
    stop_logs = configure_logs(
        level=values["log_level"],
        form=values["log_format"],
        dropped=lambda: metrics.count(LOG_LINES_DROPPED),
        process=None if process is None else process.number,
    )
    try:
        source = Source(policies, hooks)
        watched = WatchedSource(source=source, texts=source.read())
        if settings.cluster_policies:
            configuration = _known_with_the_cluster(watched.texts)
        else:
            configuration = loaded(watched.texts, strict=settings.strict)
        report_unused_hosts(configuration, settings.transport_config)
        uvloop.run(_serve(Gateway(configuration, settings, metrics, watched=watched), process))
    except StrictError as error:
        report_errors(each for each in error.errors if each not in configuration.errors)
        fail(f"not served: {counted(len(error.errors))} in the configuration with --strict", WRONG_CONFIGURATION)
    except _REFUSED as error:
        fail(str(error), COULD_NOT)
    finally:
        stop_logs()


def _known_with_the_cluster(texts: Sequence[SourceText]) -> Configuration:
    """What is served until the cluster's objects are known: nothing. Exits if the files alone cannot be served.

    The errors of policies are reported then: what a file names may be in the cluster.
    """
    if load(texts).fatal:
        loaded(texts)
    return Configuration()


async def _serve(gateway: Gateway, process: ProcessIdentity | None) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(handle_exception)
    loop.set_default_executor(ThreadPoolExecutor(_THREADS, thread_name_prefix="gateway"))

    def interrupt() -> None:
        # Ctrl-C in a terminal: no endpoint leads here, and the user waits. Or the parent is gone, which had the socket.
        gateway.drain_seconds = 0.0
        stop.set()

    loop.add_signal_handler(signal.SIGTERM, stop.set)
    loop.add_signal_handler(signal.SIGINT, interrupt)
    loop.add_signal_handler(signal.SIGHUP, gateway.reload)
    channel = None if process is None else ProcessChannel(process.descriptor, gateway.settings.listen, interrupt)
    started = await start_unless(stop, gateway, channel)
    if started is None:
        return
    if gateway.certificates is not None:
        note(f"caBundle: {gateway.certificates.ca_bundle}", err=False)
    if channel is None:
        report_addresses(*started)
    if gateway.settings.strict:
        for each in gateway.unavailable:
            note(f"warning: {each.policy.place}: not verified: {each.message}", fg="yellow")
    configure_garbage_collection()
    return_freed_memory()
    if channel is not None:
        channel.ready()
    await serve_until(stop, gateway)


def report_addresses(serving: Address, admin: Address) -> None:
    """Print where the gateway serves."""
    note(
        f"serving https://{_url_host(serving[0])}:{serving[1]}/mutate and /validate; "
        f"http://{_url_host(admin[0])}:{admin[1]}/readyz",
        err=False,
    )


def configure_garbage_collection() -> None:
    """Enable garbage collection, except of the startup's objects: they live as long as the process."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER, _COLLECT_AGAIN_AFTER, 10)


def return_freed_memory() -> None:
    """Have the C library give large blocks back to the system when they are freed.

    glibc raises its threshold for blocks of their own (mmap) with the first large one that is freed. Later ones come
    from the heap, which shrinks only from its end: after 40 bodies of 3 MB, 390 MB of 660 stayed. A fixed threshold
    keeps that from happening. Other libraries have no ``mallopt``, or ignore it.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    mallopt(_M_MMAP_THRESHOLD, _MMAP_BYTES)
    mallopt(_M_TRIM_THRESHOLD, _TRIM_BYTES)


def _url_host(host: str) -> str:
    return f"[{host}]" if ":" in host else host
