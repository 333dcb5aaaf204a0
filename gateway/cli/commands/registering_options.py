"""The options of how the gateway is registered with kube-apiserver: of ``render``, and of what shares them."""

import urllib.parse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from gateway.bounds import MAX_PORT
from gateway.cli.hook_options import registration_options as shell_operator_options
from gateway.cli.options import option
from gateway.policies.names import dns_label, dns_subdomain
from gateway.registration.kubernetes_versions import REFERENCE, KubeVersion, read_version

if TYPE_CHECKING:
    from gateway.policies.workers.targets import ServiceReference


class _ServiceType(click.ParamType["ServiceReference"]):
    """``NAMESPACE/NAME[:PORT]``, port 443 by default."""

    name = "NAMESPACE/NAME[:PORT]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> "ServiceReference":
        """The Service, or click's error with the reason."""
        from gateway.policies.workers.targets import ServiceReference

        if isinstance(value, ServiceReference):
            return value
        place, colon, port = value.partition(":")
        namespace, slash, name = place.partition("/")
        if not slash:
            self.fail(f"{value!r} is not NAMESPACE/NAME or NAMESPACE/NAME:PORT", param, ctx)
        for what, word in (("namespace", namespace), ("name", name)):
            for error in dns_label(word):
                self.fail(f"{value!r}: {what}: {error}", param, ctx)
        if not colon:
            return ServiceReference(namespace=namespace, name=name)
        if not port.isascii() or not port.isdigit() or not 0 < int(port) <= MAX_PORT:
            self.fail(f"{value!r}: the port must be a number from 1 to {MAX_PORT}", param, ctx)
        return ServiceReference(namespace=namespace, name=name, port=int(port))


class SecretType(click.ParamType[tuple[str, str]]):
    """``NAMESPACE/NAME``."""

    name = "NAMESPACE/NAME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """Both, or click's error with the reason."""
        if isinstance(value, tuple):
            return value
        namespace, slash, name = value.partition("/")
        if not slash:
            self.fail(f"{value!r} is not NAMESPACE/NAME", param, ctx)
        for what, errors in (("namespace", dns_label(namespace)), ("name", dns_subdomain(name))):
            for error in errors:
                self.fail(f"{value!r}: {what}: {error}", param, ctx)
        return namespace, name


class _UrlType(click.ParamType[str]):
    """``https://HOST[:PORT]``: Kubernetes accepts no other scheme, user, query or fragment; an entry adds a path."""

    name = "https://HOST[:PORT]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The URL without a trailing slash, or click's error with the reason."""
        try:
            parts = urllib.parse.urlsplit(value)
            port_is_valid = parts.port != 0
        except ValueError as error:
            self.fail(f"{value!r}: {error}", param, ctx)
        more = parts.username is not None or "?" in value or "#" in value or parts.path not in {"", "/"}
        if parts.scheme != "https" or not parts.hostname or more or not port_is_valid:
            self.fail(f"{value!r} is not https://HOST or https://HOST:PORT", param, ctx)
        return f"https://{parts.netloc}"


class _VersionType(click.ParamType[KubeVersion]):
    """A release of Kubernetes: ``1.36``, or the version that a server reports, such as ``v1.36.3``."""

    name = "X.Y"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> KubeVersion:
        """The release, or click's error."""
        release = value if isinstance(value, KubeVersion) else read_version(value)
        if release is None:
            self.fail(f"{value!r} is not a release of Kubernetes such as 1.36 or v1.36.3", param, ctx)
        return release


def _checked_name(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    for error in dns_subdomain(value):
        raise click.BadParameter(f"{value!r}: {error}")
    return value


class NamespaceType(click.ParamType[str]):
    """The name of a namespace."""

    name = "NAMESPACE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name, or click's error with the reason."""
        for error in dns_label(value):
            self.fail(f"{value!r}: {error}", param, ctx)
        return str(value)


_F = TypeVar("_F", bound=Callable[..., Any])


def name_option(section: str = "") -> Callable[[_F], _F]:
    """``--name``: of the webhook configurations."""
    return option(
        "--name", default="admission-gateway", callback=_checked_name, help="Name of both objects.", section=section
    )


def address_options(section: str = "") -> Callable[[_F], _F]:
    """Those that a gateway that registers itself has, too."""

    def decorate(command: _F) -> _F:
        command = option(
            "--exclude-namespace",
            multiple=True,
            type=NamespaceType(),
            help="Namespace whose requests are not sent to the gateway, like kube-system; repeatable.",
            section=section,
        )(command)
        command = option(
            "--ca-bundle",
            type=click.Path(path_type=Path, dir_okay=False),
            help="PEM: CA bundle with which kube-apiserver verifies the gateway's certificate. Default: its system's "
            "roots.",
            section=section,
        )(command)
        command = name_option(section)(command)
        return option(
            "--service",
            type=_ServiceType(),
            help="Service of the gateway; its namespace is excluded.",
            section=section,
        )(command)

    return decorate


_OPTIONS: Final = (
    address_options(),
    option("--url", type=_UrlType(), help="URL of the gateway, if it is no Service of the cluster."),
    option(
        "--kube-version",
        type=_VersionType(),
        default=str(REFERENCE),
        help="Oldest API server that must accept the objects.",
    ),
    option(
        "--path-secret-file",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Secrets of serve --path-secret-file: the paths begin with the first one.",
    ),
)


def registering_options(command: _F) -> _F:
    """The options of ``gateway.cli.registrar.loaded_registration``."""
    command = shell_operator_options(command)
    for each in reversed(_OPTIONS):
        command = each(command)
    return command
