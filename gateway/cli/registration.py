"""``admission-gateway uninstall`` and ``resume``: they talk to the Kubernetes API only, never to a gateway."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NoReturn

import click

from gateway.cli.standard_streams import COULD_NOT, fail
from gateway.cluster.client import KubernetesClient
from gateway.cluster.errors import ApiError, KubeconfigError
from gateway.cluster.suspension import NotUninstalledError, resume, uninstall


def run_uninstall(kubeconfig: Path | None, name: str, namespace: str) -> None:
    """See the command."""
    _run(kubeconfig, lambda client: uninstall(client, name=name, namespace=namespace))


def run_resume(kubeconfig: Path | None, name: str, namespace: str) -> None:
    """See the command."""
    _run(kubeconfig, lambda client: resume(client, name=name, namespace=namespace))


def _run(kubeconfig: Path | None, command: Callable[[KubernetesClient], Awaitable[list[str]]]) -> None:
    try:
        lines = asyncio.run(_connected(kubeconfig, command))
    except NotUninstalledError as error:
        _print(error.done)
        _fail(error)
    except (KubeconfigError, ApiError) as error:
        _fail(error)
    _print(lines)


async def _connected(kubeconfig: Path | None, command: Callable[[KubernetesClient], Awaitable[list[str]]]) -> list[str]:
    client = KubernetesClient(kubeconfig)
    await client.connect()
    try:
        return await command(client)
    finally:
        await client.close()


def _print(lines: list[str]) -> None:
    for line in lines:
        click.echo(line)


def _fail(error: Exception) -> NoReturn:
    fail(str(error), COULD_NOT)
