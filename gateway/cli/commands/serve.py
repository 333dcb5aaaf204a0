"""``admission-gateway serve``: its options."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import click

from gateway.caching.limits import CacheLimits
from gateway.cli.commands.reaching import reaching_options
from gateway.cli.hook_options import hooks_options, server_options
from gateway.cli.options import ADDRESS, SECONDS, SHARE, WITH_REDIS, SectionedCommand, limit_options, option
from gateway.patching.limits import PatchLimits
from gateway.serving.limits import Limits
from gateway.transports.limits import TransportLimits

_FILE: Final = click.Path(path_type=Path, dir_okay=False)
_DIRECTORY: Final = click.Path(path_type=Path, file_okay=False)


@click.command(cls=SectionedCommand)
@option("--policies", type=click.Path(path_type=Path), multiple=True, help="File or directory; repeatable.")
@hooks_options
@option("--listen", type=ADDRESS, default="127.0.0.1:8443", help="Where kube-apiserver reaches the gateway, over TLS.")
@option("--admin-listen", type=ADDRESS, default="127.0.0.1:9443", help="Health and metrics, over plain HTTP.")
@option("--tls-cert", type=_FILE, help="PEM: the server's certificate and its chain.")
@option("--tls-key", type=_FILE, help="PEM: its private key.")
@option("--tls-dev-dir", type=_DIRECTORY, help="Make (or keep) development certificates here, and print the caBundle.")
@option("--tls-dev-name", multiple=True, help="A name or address for the development certificate; repeatable.")
@option("--client-ca", type=_FILE, help="PEM: only clients with a certificate of this CA are let in.")
@option("--worker-startup-timeout", type=SECONDS, default=3.0, help="Seconds that the start waits for the workers.")
@option("--strict", is_flag=True, help="Refuse to start on mistakes, in files or told by workers: for CI.")
@option("--drain", type=SECONDS, default=25.0, help="Seconds at most to serve on after SIGTERM.")
@option("--shutdown-delay", type=SECONDS, default=0.0, help="Seconds at least to serve on after SIGTERM.")
@option(
    "--reload-interval", type=SECONDS, default=1.0, help="Seconds from look to look at the files; 0: only on SIGHUP."
)
@option(
    "--redis",
    metavar="URL",
    section=WITH_REDIS,
    help="The Redis by which replicas share verdicts; without it, memory only.",
)
@option(
    "--seal-key-file",
    type=_FILE,
    section=WITH_REDIS,
    help="Keys that seal entries in Redis: base64 of 32 bytes a line; the first seals.",
)
@reaching_options
@option("--no-prefetch", is_flag=True, help="Ask mutating policies one after another, each in its turn.")
@option(
    "--idempotency-sample-ratio",
    type=SHARE,
    default=0.01,
    help="Share of mutations put to their policies again afterwards; 0: none.",
)
@option(
    "--shadow-sample-ratio",
    type=SHARE,
    default=1.0,
    help="Share of reviews of which policies are compared with their shadows afterwards; 0: none.",
)
@option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info", help="What is logged.")
@option("--log-format", type=click.Choice(["auto", "json", "text"]), default="auto", help="auto: text on a terminal.")
@server_options
@limit_options(Limits, TransportLimits, PatchLimits, CacheLimits)
def serve(policies: tuple[Path, ...], **values: Any) -> None:
    """Serve the policies in POLICIES, and the hooks in HOOKS_DIR, to kube-apiserver, until SIGTERM or SIGINT; then
    drain and exit 0.

    Changed files are taken over while serving, all together and only without mistakes; SIGHUP reads them at once.
    """
    # No garbage collection until the gateway is ready: it took a tenth of the startup, and modules are no garbage.
    thresholds = gc.get_threshold()
    gc.set_threshold(0)
    try:
        # structlog imports rich if it is installed. The log does not use it.
        with _hidden("rich"):
            from gateway.cli.serve import run
        run(policies, **values)
    finally:
        gc.set_threshold(*thresholds)


@contextmanager
def _hidden(name: str) -> Iterator[None]:
    """Make imports of a package fail inside the block, unless it is imported already."""
    modules: dict[str, Any] = sys.modules
    if name in modules:
        yield
        return
    modules[name] = None
    try:
        yield
    finally:
        del modules[name]
