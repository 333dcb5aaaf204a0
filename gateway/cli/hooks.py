"""The options that bring shell-operator's hooks, and shell-operator's own options for its webhook server.

The latter have shell-operator's names and variables, and mean what they mean there, so that a Deployment of it becomes
one of ours by its image and command. They are settings of the gateway like our own, by which they are overruled:

    ===================================================  =============================================================
    shell-operator's                                     here
    ===================================================  =============================================================
    --hooks-dir (SHELL_OPERATOR_HOOKS_DIR)               ``--hooks-dir``
    --validating-webhook-configuration-name              the name of the hooks' configurations, ``-hooks`` behind it
    --validating-webhook-listen-address, -listen-port    ``--listen``
    --validating-webhook-server-cert, -server-key        ``--tls-cert``, ``--tls-key``
    --validating-webhook-client-ca                       ``--client-ca``, more than one of them
    --validating-webhook-ca                              ``render --ca-bundle``
    --namespace, --validating-webhook-service-name       ``render --service``, port 443
    --validating-webhook-failure-policy                  nothing, as there: a binding that says none has Fail
    ===================================================  =============================================================

Their defaults (all interfaces, port 9680, /validating-certs/…) apply as soon as one of those that begin with
``--validating-webhook-`` is given, and not before: a Deployment of shell-operator may well name its Service alone.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import click

from gateway.cli.exits import note
from gateway.cli.options import PREFIX, SHELL_OPERATOR, SectionedOption
from gateway.hooks.configuration.names import CONFIGURATION
from gateway.policies.names import dns_label, dns_subdomain

if TYPE_CHECKING:
    from gateway.hooks.source.directory import HookDirectory
    from gateway.policies.model import ServiceReference

_F = TypeVar("_F", bound=Callable[..., Any])

_FLAG: Final = "--validating-webhook-"
_VARIABLE: Final = "VALIDATING_WEBHOOK_"

_CERTIFICATES: Final = Path("/validating-certs")
_DEFAULT_CA: Final = _CERTIFICATES / "ca.crt"
_DEFAULT_PORT: Final = 9680
_DEFAULT_ADDRESS: Final = "0.0.0.0"  # noqa: S104 - shell-operator's
_DEFAULT_SERVICE: Final = "shell-operator-validating-svc"
_LARGEST_PORT: Final = 65_535
_HOST: Final = re.compile(r"[0-9A-Za-z_.-]+|[0-9A-Fa-f:.]+(%[0-9A-Za-z_.-]+)?")

_FILE: Final = click.Path(path_type=Path, dir_okay=False)


class _FilesType(click.Path):
    """Files; in a variable one on each line, as shell-operator reads it."""

    envvar_list_splitter = "\n"


_FILES: Final = _FilesType(path_type=Path, dir_okay=False)


def _checked_name(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    for error in () if value is None else dns_subdomain(f"{value}-hooks"):
        raise click.BadParameter(f"{value!r}: with -hooks behind it, {error}")
    return value


def _checked_label(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    for error in () if value is None else dns_label(value):
        raise click.BadParameter(f"{value!r}: {error}")
    return value


def _theirs(name: str, **attributes: Any) -> Callable[[_F], _F]:
    return _option(_FLAG + name, _VARIABLE + name.upper().replace("-", "_"), **attributes)


def _option(flag: str, variable: str, **attributes: Any) -> Callable[[_F], _F]:
    """An option with a variable of ours, as all have, and shell-operator's."""
    ours = PREFIX + flag.removeprefix("--").upper().replace("-", "_")
    defaults: dict[str, Any] = {"cls": SectionedOption, "section": SHELL_OPERATOR}
    return click.option(flag, envvar=[ours, variable], show_envvar=True, **(defaults | attributes))


def hooks_options(command: _F) -> _F:
    """The options of ``chosen_hooks``."""
    made = _theirs(
        "configuration-name",
        callback=_checked_name,
        help=f"What the hooks' configurations are called, without -hooks. Default: {CONFIGURATION}.",
    )(command)
    return _option(
        "--hooks-dir",
        "SHELL_OPERATOR_HOOKS_DIR",
        type=click.Path(path_type=Path),
        help="A directory of shell-operator hooks, run as they are.",
        section="",
    )(made)


def chosen_hooks(values: dict[str, Any]) -> "HookDirectory | None":
    """The directory of hooks among a command's parameters; None: there is none."""
    directory, name = values["hooks_dir"], values[_parameter("configuration-name")]
    if directory is None:
        return None
    from gateway.hooks.source.directory import HookDirectory

    return HookDirectory(directory, configuration=name or CONFIGURATION)


def require_policies(paths: tuple[Path, ...], hooks: "HookDirectory | None", flag: str) -> None:
    """Refuse a command that is told of no policies at all.

    Raises:
        click.UsageError: so it is.
    """
    if not paths and hooks is None:
        raise click.UsageError(f"no policies: give {flag}, --hooks-dir, or both")


# ------------------------------------------------------------------------------------------------------ the server


def server_options(command: _F) -> _F:
    """The options of ``chosen_server``, and those that mean nothing to ``serve``."""
    for option in reversed(
        (
            _theirs("listen-address", metavar="HOST", help="As in shell-operator: where to listen; see --listen."),
            _theirs(
                "listen-port",
                type=click.IntRange(0, _LARGEST_PORT),
                help="As in shell-operator: the port to listen on.",
            ),
            _theirs("server-cert", type=_FILE, help="As in shell-operator; see --tls-cert."),
            _theirs("server-key", type=_FILE, help="As in shell-operator; see --tls-key."),
            _theirs("client-ca", type=_FILES, multiple=True, help="As in shell-operator; see --client-ca. Repeatable."),
            _theirs(
                "failure-policy",
                type=click.Choice(["Ignore", "Fail"]),
                help="Accepted; as in shell-operator, a binding without failurePolicy has Fail.",
            ),
        )
    ):
        command = option(command)
    return registration_options(command)


class Server(NamedTuple):
    """What shell-operator's options say of the server; None and () where nothing was said."""

    listen: tuple[str, int] | None = None
    cert: Path | None = None
    key: Path | None = None
    client_cas: tuple[Path, ...] = ()
    names_files: bool = False
    """Certificate or key were named, not only to be taken from their default places."""


def chosen_server(values: dict[str, Any]) -> Server:
    """What shell-operator's options say of the server, among a command's parameters.

    Raises:
        click.BadParameter: an address that cannot be one.
    """
    said = {name: values[_parameter(name)] for name in _ALL}
    if said["failure-policy"] == "Ignore":
        note(
            f"warning: {_FLAG}failure-policy Ignore changes nothing: as behind shell-operator, a binding without "
            "failurePolicy has Fail; write failurePolicy: Ignore into those that are to have it",
            fg="yellow",
        )
    if all(value is None or value == () for value in said.values()):
        return Server()
    return Server(
        listen=_address(said["listen-address"] or _DEFAULT_ADDRESS, said["listen-port"]),
        cert=said["server-cert"] or _CERTIFICATES / "tls.crt",
        key=said["server-key"] or _CERTIFICATES / "tls.key",
        client_cas=said["client-ca"],
        names_files=said["server-cert"] is not None or said["server-key"] is not None,
    )


_ALL: Final = (
    "configuration-name",
    "service-name",
    "server-cert",
    "server-key",
    "ca",
    "client-ca",
    "failure-policy",
    "listen-port",
    "listen-address",
)


def _address(host: str, port: int | None) -> tuple[str, int]:
    if not _HOST.fullmatch(host):
        raise click.BadParameter(f"{_FLAG}listen-address: {host!r} is no host name and no IP address")
    return host, _DEFAULT_PORT if port is None else port


def _parameter(name: str) -> str:
    return (_FLAG + name).removeprefix("--").replace("-", "_")


# ------------------------------------------------------------------------------------------------- the registration


def registration_options(command: _F) -> _F:
    """The options of ``chosen_registration``."""
    for option in reversed(
        (
            _option(
                "--namespace",
                "SHELL_OPERATOR_NAMESPACE",
                callback=_checked_label,
                help="As in shell-operator: the namespace of its Service; for render --service.",
            ),
            _theirs(
                "service-name", callback=_checked_label, help="As in shell-operator: its Service; for render --service."
            ),
            _theirs("ca", type=_FILE, help="As in shell-operator: its CA's certificate; for render --ca-bundle."),
        )
    ):
        command = option(command)
    return command


class RegistrationChoice(NamedTuple):
    """What shell-operator's options say of how the API server reaches the gateway; None where nothing was said."""

    service: "ServiceReference | None" = None
    ca: Path | None = None


def chosen_registration(values: dict[str, Any]) -> RegistrationChoice:
    """What shell-operator's options say of it, among a command's parameters.

    The CA's default place counts where there is such a file: whoever renders need not be in the pod.

    Raises:
        click.UsageError: a Service without its namespace.
    """
    from gateway.policies.model import ServiceReference

    namespace, name, ca = values["namespace"], values[_parameter("service-name")], values[_parameter("ca")]
    if namespace is None and name is None:
        return RegistrationChoice(ca=ca)
    if namespace is None:
        raise click.UsageError(f"{_FLAG}service-name {name} is in some namespace; give --namespace too")
    service = ServiceReference(namespace=namespace, name=name or _DEFAULT_SERVICE)
    return RegistrationChoice(service=service, ca=ca or (_DEFAULT_CA if _DEFAULT_CA.is_file() else None))
