"""The options of ``serve``, ``review`` and ``check`` for connections to workers. See ``cli.transport_options``."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from gateway.cli.options import WITH_REDIS, option

_F = TypeVar("_F", bound=Callable[..., Any])


_FILE: Final = click.Path(path_type=Path, dir_okay=False)

_OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "--queue-redis": {
        "metavar": "URL",
        "section": WITH_REDIS,
        "help": "The Redis of the workers' queues; for serve, --redis by default.",
    },
    "--webhook-kubeconfig": {
        "type": _FILE,
        "help": "Credentials for existing webhooks: a kubeconfig whose users are named HOST:PORT, as kube-apiserver's.",
    },
    "--admission-control-config-file": {
        "type": _FILE,
        "help": "The same in kube-apiserver's own format: an AdmissionConfiguration that names kubeconfigs.",
    },
    "--resolve": {
        "multiple": True,
        "metavar": "NAME:PORT=HOST:PORT",
        "help": "Address of an existing webhook (NAME: name.namespace.svc, or a url's host); repeatable.",
    },
}


def reaching_options(command: _F) -> _F:
    """The options of ``chosen_transport_config``."""
    for flag, attributes in reversed(_OPTIONS.items()):
        command = option(flag, **attributes)(command)
    return command
