"""The options for shell-operator's hooks, and shell-operator's own options for its webhook server.

The latter have shell-operator's names, variables and meanings, so that a Deployment of shell-operator becomes one of
the gateway by changing its image and command. The gateway's own options take precedence:

    ===================================================  =============================================================
    shell-operator's                                     here
    ===================================================  =============================================================
    --hooks-dir (SHELL_OPERATOR_HOOKS_DIR)               ``--hooks-dir``
    --validating-webhook-configuration-name              the name of the hooks' configurations, without ``-hooks``
    --validating-webhook-listen-address, -listen-port    ``--listen``
    --validating-webhook-server-cert, -server-key        ``--tls-cert``, ``--tls-key``
    --validating-webhook-client-ca                       ``--client-ca``, several
    --validating-webhook-ca                              ``render --ca-bundle``
    --namespace, --validating-webhook-service-name       ``render --service``, port 443
    --validating-webhook-failure-policy                  no effect, as there: a binding without one has Fail
    ===================================================  =============================================================

Their defaults (all interfaces, port 9680, /validating-certs/…) apply only if an option that begins with
``--validating-webhook-`` is given: a Deployment of shell-operator may name its Service alone.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import click

from gateway.bounds import MAX_PORT
from gateway.cli.options import PREFIX, SHELL_OPERATOR, SectionedOption
from gateway.cli.standard_streams import note
from gateway.hooks.configuration.names import CONFIGURATION
from gateway.policies.names import dns_label, dns_subdomain

if TYPE_CHECKING:
    from gateway.hooks.source.directory import HookDirectory
    from gateway.policies.workers.targets import ServiceReference

_F = TypeVar("_F", bound=Callable[..., Any])

_FLAG: Final = "--validating-webhook-"
_VARIABLE: Final = "VALIDATING_WEBHOOK_"

_CERTIFICATES: Final = Path("/validating-certs")
_DEFAULT_CA: Final = _CERTIFICATES / "ca.crt"
_DEFAULT_PORT: Final = 9680
_DEFAULT_ADDRESS: Final = "0.0.0.0"  # noqa: S104 - shell-operator's
_DEFAULT_SERVICE: Final = "shell-operator-validating-svc"
_PORT: Final = click.IntRange(0, MAX_PORT)
_HOST: Final = re.compile(r"[0-9A-Za-z_.-]+|[0-9A-Fa-f:.]+(%[0-9A-Za-z_.-]+)?")

_FILE: Final = click.Path(path_type=Path, dir_okay=False)


class _FilesType(click.Path):
    """Files; a variable has one per line, as in shell-operator."""

    envvar_list_splitter = "\n"


_FILES: Final = _FilesType(path_type=Path, dir_okay=False)


def _checked_name(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    for error in () if value is None else dns_subdomain(f"{value}-hooks"):
        raise click.BadParameter(f"{value!r}: with -hooks appended, {error}")
    return value


def _checked_label(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    for error in () if value is None else dns_label(value):
        raise click.BadParameter(f"{value!r}: {error}")
    return value


def _webhook(name: str, **attributes: Any) -> Callable[[_F], _F]:
    return _option(_FLAG + name, _VARIABLE + name.upper().replace("-", "_"), **attributes)


def _option(flag: str, variable: str, **attributes: Any) -> Callable[[_F], _F]:
    """An option with two variables: the gateway's, as all options have, and shell-operator's."""
    ours = PREFIX + flag.removeprefix("--").upper().replace("-", "_")
    defaults: dict[str, Any] = {"cls": SectionedOption, "section": SHELL_OPERATOR}
    return click.option(flag, envvar=[ours, variable], show_envvar=True, **(defaults | attributes))


def _with_options(command: _F, *options: Callable[[_F], _F]) -> _F:
    for option in reversed(options):
        command = option(command)
    return command


def hooks_options(command: _F) -> _F:
    """The options of ``chosen_hooks``."""
    made = _webhook(
        "configuration-name",
        callback=_checked_name,
        help=f"The name of the hooks' configurations, without -hooks. Default: {CONFIGURATION}.",
    )(command)
    return _option(
        "--hooks-dir",
        "SHELL_OPERATOR_HOOKS_DIR",
        type=click.Path(path_type=Path),
        help="A directory of shell-operator hooks, which run unchanged.",
        section="",
    )(made)


def chosen_hooks(values: dict[str, Any], **limits: float) -> "HookDirectory | None":
    """The directory of hooks among a command's parameters, with these limits of HookDirectory; None: there is none."""
    directory, name = values["hooks_dir"], values[_parameter("configuration-name")]
    if directory is None:
        return None
    from gateway.hooks.source.directory import HookDirectory

    return HookDirectory(directory, configuration=name or CONFIGURATION, **limits)


def require_policies(paths: tuple[Path, ...], hooks: "HookDirectory | None", flag: str) -> None:
    """Reject a command without policies and hooks.

    Raises:
        click.UsageError: there are none.
    """
    if not paths and hooks is None:
        raise click.UsageError(f"no policies: set {flag}, --hooks-dir, or both")


# ------------------------------------------------------------------------------------------------------ the server


def server_options(command: _F) -> _F:
    """The options of ``chosen_server``, and those that have no effect on ``serve``."""
    made = _with_options(
        command,
        _webhook(
            "listen-address", metavar="HOST", help="As in shell-operator: the address to listen on; see --listen."
        ),
        _webhook("listen-port", type=_PORT, help="As in shell-operator: the port to listen on."),
        _webhook("server-cert", type=_FILE, help="As in shell-operator; see --tls-cert."),
        _webhook("server-key", type=_FILE, help="As in shell-operator; see --tls-key."),
        _webhook("client-ca", type=_FILES, multiple=True, help="As in shell-operator; see --client-ca. Repeatable."),
        _webhook(
            "failure-policy",
            type=click.Choice(["Ignore", "Fail"]),
            help="Accepted; as in shell-operator, a binding without failurePolicy has Fail.",
        ),
    )
    return registration_options(made)


class Server(NamedTuple):
    """shell-operator's options of the server; None and () for those that are not given."""

    listen: tuple[str, int] | None = None
    cert: Path | None = None
    key: Path | None = None
    client_cas: tuple[Path, ...] = ()
    names_files: bool = False
    """Whether certificate or key are given, and not taken from their default paths."""


def chosen_server(values: dict[str, Any]) -> Server:
    """shell-operator's options of the server, among a command's parameters.

    Raises:
        click.BadParameter: an invalid address.
    """
    given = {name: values[_parameter(name)] for name in _ALL}
    if given["failure-policy"] == "Ignore":
        note(
            f"warning: {_FLAG}failure-policy Ignore has no effect: as in shell-operator, a binding without "
            "failurePolicy has Fail; set failurePolicy: Ignore in the bindings themselves",
            fg="yellow",
        )
    if all(value is None or value == () for value in given.values()):
        return Server()
    return Server(
        listen=_address(given["listen-address"] or _DEFAULT_ADDRESS, given["listen-port"]),
        cert=given["server-cert"] or _CERTIFICATES / "tls.crt",
        key=given["server-key"] or _CERTIFICATES / "tls.key",
        client_cas=given["client-ca"],
        names_files=given["server-cert"] is not None or given["server-key"] is not None,
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
        raise click.BadParameter(f"{_FLAG}listen-address: {host!r} is neither a host name nor an IP address")
    return host, _DEFAULT_PORT if port is None else port


def _parameter(name: str) -> str:
    return (_FLAG + name).removeprefix("--").replace("-", "_")


# ------------------------------------------------------------------------------------------------- the registration


def registration_options(command: _F) -> _F:
    """The options of ``chosen_registration``."""
    return _with_options(
        command,
        _option(
            "--namespace",
            "SHELL_OPERATOR_NAMESPACE",
            callback=_checked_label,
            help="As in shell-operator: the namespace of its Service; for render --service.",
        ),
        _webhook(
            "service-name", callback=_checked_label, help="As in shell-operator: its Service; for render --service."
        ),
        _webhook("ca", type=_FILE, help="As in shell-operator: its CA's certificate; for render --ca-bundle."),
    )


class RegistrationChoice(NamedTuple):
    """shell-operator's options of how the API server reaches the gateway; None for those that are not given."""

    service: "ServiceReference | None" = None
    ca: Path | None = None


def chosen_registration(values: dict[str, Any]) -> RegistrationChoice:
    """shell-operator's options of the registration, among a command's parameters.

    The CA's default path is used only if the file exists: ``render`` may run outside of the pod.

    Raises:
        click.UsageError: a Service without a namespace.
    """
    from gateway.policies.workers.targets import ServiceReference

    namespace, name, ca = values["namespace"], values[_parameter("service-name")], values[_parameter("ca")]
    if namespace is None and name is None:
        return RegistrationChoice(ca=ca)
    if namespace is None:
        raise click.UsageError(f"{_FLAG}service-name {name}: the namespace of the Service is missing; set --namespace")
    service = ServiceReference(namespace=namespace, name=name or _DEFAULT_SERVICE)
    return RegistrationChoice(service=service, ca=ca or (_DEFAULT_CA if _DEFAULT_CA.is_file() else None))
