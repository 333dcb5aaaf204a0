"""``admission-gateway uninstall`` and ``resume``: their options."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from gateway.cli.commands.registering_options import NamespaceType, name_option
from gateway.cli.options import option

_F = TypeVar("_F", bound=Callable[..., Any])


def _options(command: _F) -> _F:
    for each in (
        option(
            "--kubeconfig",
            type=click.Path(path_type=Path, dir_okay=False),
            help="Use the Kubernetes API with this kubeconfig file. Default: with the pod's service account.",
        ),
        name_option(),
        option("--namespace", required=True, type=NamespaceType(), help="Namespace of the gateway."),
    ):
        command = each(command)
    return command


@click.command()
@_options
def uninstall(**values: Any) -> None:
    """Unregister the gateway: delete both webhook configurations, and suspend the registration.

    Afterwards kube-apiserver calls the gateway for nothing, and no gateway registers itself until `resume`. It works
    while no gateway runs. Exit 2 if something could not be done.
    """
    from gateway.cli.registration import run_uninstall

    run_uninstall(**values)


@click.command()
@_options
def resume(**values: Any) -> None:
    """Let the gateways register themselves again: after `uninstall`, a deletion of a webhook configuration, or its
    annotation admission-gateway.dev/suspended.

    Exit 2 if something could not be done.
    """
    from gateway.cli.registration import run_resume

    run_resume(**values)
