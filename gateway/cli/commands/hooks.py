"""``admission-gateway hook-worker`` and ``shell-lib``: their options."""

from pathlib import Path
from typing import Any, Final

import click

from gateway.cli.options import ADDRESS, SectionedCommand, limit_options, option
from gateway.cli.trace_options import endpoint_option
from gateway.transports.limits import TransportLimits

_DIRECTORY: Final = click.Path(path_type=Path, exists=True, file_okay=False)
_HOOK_LIMITS: Final = frozenset({"hook_processes", "hook_waiting", "hook_config_seconds", "hook_snapshot_bytes"})


@click.command("hook-worker", cls=SectionedCommand, context_settings={"ignore_unknown_options": True})
@option("--hooks-dir", type=_DIRECTORY, required=True, help="Directory of hooks, as for serve.")
@option(
    "--objects",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="PATH",
    help="Documents of the objects in the hooks' snapshots: a file or a directory; may be repeated.",
)
@option(
    "--cluster", is_flag=True, help="Use the Kubernetes API for snapshots and changes, with the pod's service account."
)
@option(
    "--kubeconfig",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Use the Kubernetes API for snapshots and changes, with this kubeconfig file.",
)
@click.option(
    "--listen",
    envvar="ADMISSION_WORKER_LISTEN",  # of a worker: the gateway may set it when it starts this command
    show_envvar=True,
    metavar="ADDRESS",
    help="Address to listen on: HOST:PORT or unix:PATH.  [default: 127.0.0.1:50051]",
)
@option("--admin-listen", type=ADDRESS, help="Health and metrics, over plain HTTP; without it, none.")
@endpoint_option
@limit_options(TransportLimits, names=_HOOK_LIMITS)
@click.argument("flags", nargs=-1, type=click.UNPROCESSED, metavar="[FLAGS OF A WORKER]...")
def hook_worker(hooks_dir: Path, listen: str | None, flags: tuple[str, ...], **values: Any) -> None:
    """Serve the hooks of a directory to gateways over gRPC, until SIGTERM, SIGINT or SIGHUP. Each binding is a policy.
    Its name is shell-operator's id of the binding: private-repo-policy-example-com for private-repo-policy.example.com.

    All other flags of a worker's command may follow: --tls-cert, --tls-key, --client-ca, --log-format, --log-level,
    --in-flight, --grace-period, --conformance. Each is also a variable ADMISSION_WORKER_....

    When the file of a hook changes, the worker exits with 0; the process supervisor must restart it.
    """
    from gateway.cli.hook_worker import run

    run(hooks_dir, listen, flags, **values)


@click.command("shell-lib")
def shell_lib() -> None:
    """Print the shell library that shell-operator hooks source: admission-gateway shell-lib > /shell_lib.sh."""
    from importlib.resources import files

    click.echo(files("gateway.hooks").joinpath("shell_lib.sh").read_text(encoding="utf-8"), nl=False)
