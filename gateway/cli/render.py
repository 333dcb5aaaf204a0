"""``admission-gateway render``: the objects that register the gateway with kube-apiserver, to be applied by kubectl.

What kubectl takes goes to the standard output, what its reader must know to the error output. The objects are made
from a configuration without mistakes only: one with a mistake would register entries that the next, right one renames.
"""

import json
import re
import sys
import urllib.parse
from pathlib import Path
from typing import Any, Final

import click
import yaml
from cryptography import x509

from gateway.cli.hooks import chosen_hooks, chosen_registration, hooks_options, registration_options, require_policies
from gateway.cli.options import option
from gateway.cli.serve import COULD_NOT, WRONG_CONFIGURATION, fail
from gateway.policies.entries import make_entries
from gateway.policies.model import Configuration, ServiceReference
from gateway.policies.names import dns_label, dns_subdomain
from gateway.policies.registration import Registrar, register
from gateway.policies.releases import REFERENCE, Release, read_release
from gateway.sources.files import SourceError
from gateway.sources.loading import load_configuration

_LARGEST_PORT: Final = 65_535

_PLAIN: Final = re.compile(r"[A-Za-z/][-A-Za-z0-9./_]*")
_WORDS: Final = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


class _ServiceType(click.ParamType[ServiceReference]):
    """``NAMESPACE/NAME[:PORT]``, port 443 by default."""

    name = "NAMESPACE/NAME[:PORT]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> ServiceReference:
        """The Service, or click's error that says what is wrong with it."""
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
        if not port.isascii() or not port.isdigit() or not 0 < int(port) <= _LARGEST_PORT:
            self.fail(f"{value!r}: the port is a number from 1 to {_LARGEST_PORT}", param, ctx)
        return ServiceReference(namespace=namespace, name=name, port=int(port))


class _UrlType(click.ParamType[str]):
    """``https://HOST[:PORT]``: Kubernetes takes no other scheme, user, query or fragment; the path is the entry's."""

    name = "https://HOST[:PORT]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The URL without a slash at the end, or click's error that says what is wrong with it."""
        try:
            parts = urllib.parse.urlsplit(value)
            port_is_right = parts.port != 0
        except ValueError as error:
            self.fail(f"{value!r}: {error}", param, ctx)
        more = parts.username is not None or "?" in value or "#" in value or parts.path not in {"", "/"}
        if parts.scheme != "https" or not parts.hostname or more or not port_is_right:
            self.fail(f"{value!r} is not https://HOST or https://HOST:PORT, and nothing more", param, ctx)
        return f"https://{parts.netloc}"


class _ReleaseType(click.ParamType[Release]):
    """``1.36``, or what a server says of itself."""

    name = "X.Y"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Release:
        """The release, or click's error."""
        release = value if isinstance(value, Release) else read_release(value)
        if release is None:
            self.fail(f"{value!r} is not a release of Kubernetes such as 1.36 or v1.36.3", param, ctx)
        return release


def _checked_name(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    for error in dns_subdomain(value):
        raise click.BadParameter(f"{value!r}: {error}")
    return value


def _checked_namespaces(_ctx: click.Context, _param: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    for each in value:
        for error in dns_label(each):
            raise click.BadParameter(f"{each!r}: {error}")
    return value


@click.command()
@click.argument("paths", metavar="[PATH]...", type=click.Path(path_type=Path), nargs=-1)
@hooks_options
@option("--service", type=_ServiceType(), help="The Service that leads to the gateway; its namespace is excluded.")
@option("--url", type=_UrlType(), help="Where the gateway is, if it is no Service of the cluster.")
@option(
    "--ca-bundle",
    type=click.Path(path_type=Path, dir_okay=False),
    help="PEM: what kube-apiserver trusts for the gateway's certificate. Default: its system's roots.",
)
@option("--name", default="admission-gateway", callback=_checked_name, help="The name of both objects.")
@option("--kube-version", type=_ReleaseType(), default=str(REFERENCE), help="The oldest API server they are for.")
@option(
    "--exclude-namespace",
    multiple=True,
    callback=_checked_namespaces,
    metavar="NAMESPACE",
    help="What happens in it is not sent to the gateway, as with kube-system; repeatable.",
)
@registration_options
# No variable: the words differ from command to command.
@click.option("-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True, help="Form.")
def render(paths: tuple[Path, ...], output: str, **values: Any) -> None:
    """Print the objects that register the policies in PATH... (- is the standard input) and hooks with kube-apiserver.

    A MutatingWebhookConfiguration and a ValidatingWebhookConfiguration, with one webhook for each entry (see check).
    Say how kube-apiserver reaches the gateway: --service or --url. Exit 1 if there is a mistake in the policies.
    """
    hooks, theirs = chosen_hooks(values), chosen_registration(values)
    require_policies(paths, hooks, "PATH")
    ours = values["service"] is not None or values["url"]
    ca = values["ca_bundle"] or theirs.ca
    try:
        registrar = Registrar(
            name=values["name"],
            service=values["service"] if ours else theirs.service,
            url=values["url"] or "",
            ca_bundle=b"" if ca is None else _certificates(ca),
            release=values["kube_version"],
            excluded_namespaces=values["exclude_namespace"],
        )
    except ValueError as error:
        raise click.UsageError(f"--service, --url, --kube-version: {error}") from None
    try:
        configuration = load_configuration(paths, stdin=sys.stdin.buffer, hooks=hooks)
    except SourceError as error:
        fail(str(error), COULD_NOT)
    _refuse_mistakes(configuration)
    registration = register(make_entries(configuration), registrar)
    for warning in registration.warnings:
        _warn(warning)
    if not registrar.ca_bundle:
        _warn("there is no --ca-bundle: kube-apiserver trusts its system's roots only, unless somebody puts one in")
    click.echo(_SHAPES[output](list(registration.objects)), nl=False)


def _certificates(path: Path) -> bytes:
    """The file's bytes, if they are certificates and nothing that must stay secret."""
    try:
        content = path.read_bytes()
        if b"PRIVATE KEY-----" in content:
            fail(f"--ca-bundle: {path}: holds a private key; name the file of the CA's certificate alone", COULD_NOT)
        x509.load_pem_x509_certificates(content)
    except OSError as error:
        fail(f"--ca-bundle: {path}: cannot be read: {error.strerror}; check the path and its permissions", COULD_NOT)
    except ValueError:
        fail(f"--ca-bundle: {path}: holds no certificates in PEM; name the file of the CA's certificate", COULD_NOT)
    return content


def _refuse_mistakes(configuration: Configuration) -> None:
    for warning in configuration.warnings:
        _warn(str(warning))
    for error in configuration.errors:
        click.secho(f"error: {error}", fg="red", err=True)
    if configuration.errors:
        count = len(configuration.errors)
        fail(f"{count} {'mistake' if count == 1 else 'mistakes'}: nothing is rendered", WRONG_CONFIGURATION)


def _warn(text: str) -> None:
    click.secho(f"warning: {text}", fg="yellow", err=True)


class _Dumper(yaml.SafeDumper):
    """YAML that every parser reads alike.

    PyYAML writes ``1e3`` and ``y`` as they are, because it reads them as strings; kubectl's parser reads a number and a
    boolean. So a string is in quotation marks unless it can be nothing else.
    """

    def ignore_aliases(self, _data: Any) -> bool:
        return True

    def text(self, data: str) -> yaml.ScalarNode:
        plain = _PLAIN.fullmatch(data) and data.lower() not in _WORDS
        legible_as_block = "\n" in data and data.isascii()
        style = None if plain else "|" if legible_as_block else '"'
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=style)


_Dumper.add_representer(str, _Dumper.text)


def _as_yaml(objects: list[dict[str, Any]]) -> str:
    text: str = yaml.dump_all(objects, Dumper=_Dumper, sort_keys=False, explicit_start=True, width=120)
    return text


def _as_json(objects: list[dict[str, Any]]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}, indent=2) + "\n"


_SHAPES: Final = {"yaml": _as_yaml, "json": _as_json}
