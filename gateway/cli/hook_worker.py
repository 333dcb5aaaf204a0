"""``admission-gateway hook-worker``: serve a directory of shell-operator hooks as an ordinary gRPC worker.

It is a worker made with the Python SDK: all flags of such a worker's command are taken, and mean the same. Exit codes:
0 told to stop (SIGTERM, SIGINT, SIGHUP), or a hook has changed; 1 mistakes in the hooks or the objects, or it cannot
listen; 2 could not, or wrong usage.
"""

from pathlib import Path
from typing import Any, Final

import click

from gateway.cli.options import chosen_limits, limit_options, option
from gateway.cli.serve import COULD_NOT, WRONG_CONFIGURATION, fail
from gateway.sources.files import SourceError
from gateway.sources.hooks import HookDirectory
from gateway.sources.loading import load_configuration
from gateway.transports.hook.surroundings import hook_limits
from gateway.transports.limits import TransportLimits

_DIRECTORY: Final = click.Path(path_type=Path, exists=True, file_okay=False)
_HOOK_LIMITS: Final = frozenset({"hook_processes", "hook_waiting", "hook_config_seconds"})


@click.command("hook-worker", context_settings={"ignore_unknown_options": True})
@option("--hooks-dir", type=_DIRECTORY, required=True, help="The directory of hooks, as for serve.")
@option(
    "--objects",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="PATH",
    help="Documents of the objects that the hooks' snapshots are made of: a file or a directory; may be repeated.",
)
@click.option(
    "--listen",
    envvar="ADMISSION_WORKER_LISTEN",  # a worker's: the gateway that starts us may have its own address in ours
    show_envvar=True,
    metavar="ADDRESS",
    help="Where to serve: HOST:PORT or unix:PATH.  [default: 127.0.0.1:50051]",
)
@limit_options(TransportLimits, names=_HOOK_LIMITS)
@click.argument("flags", nargs=-1, type=click.UNPROCESSED, metavar="[FLAGS OF A WORKER]...")
def hook_worker(
    hooks_dir: Path, objects: tuple[Path, ...], listen: str | None, flags: tuple[str, ...], **limits: Any
) -> None:
    """Serve the hooks of a directory to gateways over gRPC, until SIGTERM, SIGINT or SIGHUP. Each binding is a policy;
    it is called as shell-operator calls it in URLs: private-repo-policy.example.com is private-repo-policy-example-com.

    All other flags of a worker's command may follow: --tls-cert, --tls-key, --client-ca, --log-format, --log-level,
    --in-flight, --grace-period, --conformance. Each is also a variable ADMISSION_WORKER_....

    When the file of a hook changes, the worker stops as if it were told to; whoever runs it starts it again.
    """
    try:
        from gateway.cli.hook_policies import UnservedError, serve_hooks  # noqa: PLC0415 - the SDK may not be installed
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("admission_worker"):
            raise
        fail("hook-worker needs the Python SDK of workers; pip install admission-worker", COULD_NOT)
    chosen = hook_limits(*chosen_limits(limits, TransportLimits))
    directory = HookDirectory(hooks_dir, seconds=chosen.config_seconds)
    try:
        configuration = load_configuration(objects, hooks=directory)
    except SourceError as error:
        fail(str(error), COULD_NOT)
    for mistake in configuration.errors:
        click.secho(str(mistake), fg="red", err=True)
    if configuration.errors:
        raise SystemExit(WRONG_CONFIGURATION)
    arguments = [*(("--listen", listen) if listen is not None else ()), *flags]
    try:
        serve_hooks(configuration, chosen, arguments)
    except UnservedError as error:
        fail(str(error), WRONG_CONFIGURATION)
