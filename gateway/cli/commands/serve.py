"""``admission-gateway serve``: its options."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import click

from gateway.caching.limits import CacheLimits
from gateway.cli.commands.registering_options import SecretType, address_options
from gateway.cli.commands.transport_options import reaching_options
from gateway.cli.hook_options import hooks_options, server_options
from gateway.cli.options import ADDRESS, IN_CLUSTER, SECONDS, SHARE, WITH_REDIS, SectionedCommand, limit_options, option
from gateway.cli.trace_options import sampling_options
from gateway.patching.limits import PatchLimits
from gateway.serving.limits import DRAIN_SECONDS, MAX_CONNECTION_AGE_SECONDS, SHUTDOWN_DELAY_SECONDS, Limits
from gateway.telemetry.log_level import LogLevel
from gateway.transports.limits import TransportLimits

_CLIENTS: Final = "Who may call; of several credentials of a client, any is enough. Default: every client"
"""A section of the help."""

_RECORDS: Final = "Decisions (docs/observe.md)"
"""A section of the help."""

_FILE: Final = click.Path(path_type=Path, dir_okay=False)
_DIRECTORY: Final = click.Path(path_type=Path, file_okay=False)


@click.command(cls=SectionedCommand)
@option("--policies", type=click.Path(path_type=Path), multiple=True, help="File or directory; repeatable.")
@hooks_options
@option("--listen", type=ADDRESS, default="127.0.0.1:8443", help="Address on which to serve kube-apiserver, over TLS.")
@option(
    "--admin-listen", type=ADDRESS, default="127.0.0.1:9443", help="Address for health and metrics, over plain HTTP."
)
@option(
    "--processes",
    type=click.IntRange(1, 64),
    default=1,
    help="Processes that serve, each on one core. They share --memory-budget.",
)
@option("--tls-cert", type=_FILE, help="PEM: server certificate and its chain.")
@option("--tls-key", type=_FILE, help="PEM: private key of the server certificate.")
@option(
    "--tls-dev-dir",
    type=_DIRECTORY,
    help="Create (or reuse) development certificates in this directory, and print the caBundle.",
)
@option("--tls-dev-name", multiple=True, help="DNS name or IP address for the development certificate; repeatable.")
@option(
    "--tls-secret",
    type=SecretType(),
    section=IN_CLUSTER,
    help="Secret with the certificate; created and rotated with a CA of its own, unless others created it. Requires "
    "--service.",
)
@option("--client-ca", type=_FILE, section=_CLIENTS, help="PEM: accept clients with a certificate of these CAs.")
@option(
    "--client-allowed-name",
    multiple=True,
    metavar="NAME",
    section=_CLIENTS,
    help="CN, DNS name or URI that a client's certificate must have; repeatable. Default: any certificate of the CAs.",
)
@option(
    "--bearer-token-file", type=_FILE, section=_CLIENTS, help="Accept clients with one of these tokens: one per line."
)
@option(
    "--basic-auth-file",
    type=_FILE,
    section=_CLIENTS,
    help="Accept clients with one of these USER:PASSWORD, in UTF-8: one per line.",
)
@option(
    "--path-secret-file",
    type=_FILE,
    section=_CLIENTS,
    help="Accept clients that call /SECRET/mutate/ENTRY, for one of these secrets: one per line; see render.",
)
@option(
    "--admin-token-file",
    type=_FILE,
    section=_CLIENTS,
    help="Tokens for the admin listener, one per line; health and metrics need none. Default: only this machine.",
)
@option(
    "--worker-startup-timeout",
    type=SECONDS,
    default=3.0,
    help="Maximum seconds that the startup waits for the workers.",
)
@option("--strict", is_flag=True, help="Do not start if the files have an error or a worker reports one: for CI.")
@option(
    "--shutdown-delay",
    type=SECONDS,
    default=SHUTDOWN_DELAY_SECONDS,
    help="Seconds to continue serving after SIGTERM in any case: endpoints may still lead here.",
)
@option(
    "--drain",
    type=SECONDS,
    default=DRAIN_SECONDS,
    help="Maximum seconds to continue serving after SIGTERM, the delay included, while clients are connected.",
)
@option(
    "--max-connection-age",
    type=SECONDS,
    default=MAX_CONNECTION_AGE_SECONDS,
    help="Seconds, a tenth more or less, after which a reply ends its connection: new replicas get their share; "
    "0: never.",
)
@option(
    "--reload-interval",
    type=SECONDS,
    default=1.0,
    help="Seconds between checks of the files for changes; 0: only on SIGHUP.",
)
@option("--cluster", is_flag=True, help="Use the Kubernetes API, with the pod's service account.", section=IN_CLUSTER)
@option("--kubeconfig", type=_FILE, help="Use the Kubernetes API, with this kubeconfig file.", section=IN_CLUSTER)
@option(
    "--cluster-policies",
    is_flag=True,
    help="Serve the Workers and policy configurations in the cluster too.",
    section=IN_CLUSTER,
)
@option(
    "--register",
    is_flag=True,
    help="Keep the objects that render prints in the cluster; one replica at a time does. Requires --service.",
    section=IN_CLUSTER,
)
@option(
    "--register-despite-findings",
    is_flag=True,
    help="With --register: register what could lock the cluster (see doctor), too, and log it.",
    section=IN_CLUSTER,
)
@address_options(IN_CLUSTER)
@option(
    "--redis",
    metavar="URL",
    section=WITH_REDIS,
    help="Redis through which replicas share verdicts. Default: in-process cache only.",
)
@option(
    "--seal-key-file",
    type=_FILE,
    section=WITH_REDIS,
    help="Keys that encrypt entries in Redis: one per line, base64 of 32 bytes; the first one encrypts.",
)
@reaching_options
@sampling_options
@option("--no-prefetch", is_flag=True, help="Call mutating policies one after another, without prefetch.")
@option(
    "--idempotency-sample-ratio",
    type=SHARE,
    default=0.01,
    help="Share of mutations checked for idempotency by calling their policies again; 0: none.",
)
@option(
    "--shadow-sample-ratio",
    type=SHARE,
    default=1.0,
    help="Share of reviews after which policies are compared with their shadows; 0: none.",
)
@option(
    "--decision-log",
    metavar="stdout|otlp|none|FILE",
    default="stdout",
    section=_RECORDS,
    help="Where decisions are logged, one line of JSON each; otlp: by OpenTelemetry's variables. A file is rotated.",
)
@option(
    "--decision-log-level",
    type=click.Choice([level.value for level in LogLevel]),
    default=LogLevel.DENIED.value,
    section=_RECORDS,
    help="Decisions in which a policy failed; also those in which one denied; or all.",
)
@option(
    "--recording-dir",
    type=_DIRECTORY,
    section=_RECORDS,
    help="Record reviews and their decisions, encrypted, in this directory; see recordings.",
)
@option(
    "--recording-key-file",
    type=_FILE,
    section=_RECORDS,
    help="Keys that encrypt recordings: one per line, base64 of 32 bytes; the first one encrypts.",
)
@option(
    "--recording-sample-ratio", type=SHARE, default=0.01, section=_RECORDS, help="Share of reviews that are recorded."
)
@option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info", help="Log level.")
@option("--log-format", type=click.Choice(["auto", "json", "text"]), default="auto", help="auto: text on a terminal.")
@server_options
@limit_options(Limits, TransportLimits, PatchLimits, CacheLimits)
def serve(policies: tuple[Path, ...], **values: Any) -> None:
    """Serve the policies in POLICIES, and the hooks in HOOKS_DIR, to kube-apiserver, until SIGTERM, then
    drain, or until SIGINT, then only answer reviews in flight; exit 0.

    Changed files are loaded while serving, all together and only if they have no error; SIGHUP loads them immediately.
    """
    # No garbage collection until the gateway is ready: it took a tenth of the startup, and modules are never freed.
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
