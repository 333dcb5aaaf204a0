"""``admission-gateway hook-worker``: serves a directory of shell-operator hooks as a gRPC worker.

It is a worker of the Python SDK, and accepts all flags of such a worker's command. Exit codes: 0 stopped by
SIGTERM, SIGINT or SIGHUP, or because a hook has changed; 1 errors in the hooks or the objects, or it cannot listen; 2 a
file cannot be read, or wrong usage.
"""

from pathlib import Path
from typing import Any

from gateway.cli.options import chosen_limits
from gateway.cli.standard_streams import COULD_NOT, WRONG_CONFIGURATION, fail, note
from gateway.hooks.server.handlers import UnservedError, serve_hooks
from gateway.hooks.source.directory import HookDirectory
from gateway.sources.files import SourceError
from gateway.sources.loading import load_configuration
from gateway.transports.limits import TransportLimits


def run(hooks_dir: Path, objects: tuple[Path, ...], listen: str | None, flags: tuple[str, ...], **limits: Any) -> None:
    """See the command."""
    (chosen,) = chosen_limits(limits, TransportLimits)
    directory = HookDirectory(hooks_dir, seconds=chosen.hook_config_seconds)
    try:
        configuration = load_configuration(objects, hooks=directory)
    except SourceError as error:
        fail(str(error), COULD_NOT)
    for found in configuration.errors:
        note(str(found), fg="red")
    if configuration.errors:
        raise SystemExit(WRONG_CONFIGURATION)
    arguments = [*(("--listen", listen) if listen is not None else ()), *flags]
    try:
        serve_hooks(configuration, chosen, arguments)
    except UnservedError as error:
        fail(str(error), WRONG_CONFIGURATION)
