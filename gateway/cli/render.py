"""``admission-gateway render``: the objects that register the gateway with kube-apiserver, to be applied by kubectl.

The objects go to the standard output, errors and warnings to the standard error. A configuration with errors is not
rendered: it would register entries that the corrected one renames.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any, Final

import click
import yaml

from gateway.cli.configuration import counted, report_errors
from gateway.cli.hook_options import chosen_hooks, chosen_registration, require_policies
from gateway.cli.standard_streams import COULD_NOT, WRONG_CONFIGURATION, fail, note
from gateway.policies.model import Configuration
from gateway.registration.entries import make_entries
from gateway.registration.webhook_configurations import Registrar, register
from gateway.sources.files import SourceError
from gateway.sources.loading import load_configuration

_PLAIN: Final = re.compile(r"[A-Za-z/][-A-Za-z0-9./_]*")
_WORDS: Final = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


def run(paths: tuple[Path, ...], output: str, **values: Any) -> None:
    """See the command."""
    hooks, of_shell_operator = chosen_hooks(values), chosen_registration(values)
    require_policies(paths, hooks, "PATH")
    has_address = values["service"] is not None or values["url"]
    service, url = values["service"] if has_address else of_shell_operator.service, values["url"] or ""
    if (service is None) == (not url):
        raise click.UsageError("exactly one of --service and --url must be set")
    ca = values["ca_bundle"] or of_shell_operator.ca
    try:
        registrar = Registrar(
            name=values["name"],
            service=service,
            url=url,
            ca_bundle=b"" if ca is None else _certificates(ca),
            kube_version=values["kube_version"],
            excluded_namespaces=values["exclude_namespace"],
            path_secret=_path_secret(values["path_secret_file"]),
        )
    except ValueError as error:
        raise click.UsageError(f"--kube-version: {error}") from None
    try:
        configuration = load_configuration(paths, stdin=sys.stdin.buffer, hooks=hooks)
    except SourceError as error:
        fail(str(error), COULD_NOT)
    _refuse_errors(configuration)
    registration = register(make_entries(configuration), registrar)
    for warning in registration.warnings:
        _warn(warning)
    if not registrar.ca_bundle:
        _warn(
            "--ca-bundle is not set: kube-apiserver verifies the gateway's certificate with its system's roots, unless "
            "a controller adds a caBundle to the objects"
        )
    click.echo(_FORMATS[output](list(registration.objects)), nl=False)


def _path_secret(path: Path | None) -> str:
    if path is None:
        return ""
    from gateway.serving.credential_files import PATH_SECRETS, CredentialError, credentials_in  # noqa: PLC0415

    try:
        return credentials_in(path, PATH_SECRETS)[0]
    except CredentialError as error:
        fail(str(error), COULD_NOT)


def _certificates(path: Path) -> bytes:
    """The file's bytes: certificates, and no private key."""
    from cryptography import x509  # noqa: PLC0415 - it takes as long to load as the rest of the command

    try:
        content = path.read_bytes()
        if b"PRIVATE KEY-----" in content:
            fail(f"--ca-bundle: {path}: contains a private key; use a file with the CA's certificate only", COULD_NOT)
        x509.load_pem_x509_certificates(content)
    except OSError as error:
        fail(f"--ca-bundle: {path}: cannot be read: {error.strerror}; check the path and its permissions", COULD_NOT)
    except ValueError:
        fail(f"--ca-bundle: {path}: contains no certificates in PEM; use the file of the CA's certificate", COULD_NOT)
    return content


def _refuse_errors(configuration: Configuration) -> None:
    for warning in configuration.warnings:
        _warn(str(warning))
    report_errors(configuration.errors)
    if configuration.errors:
        fail(f"the configuration has {counted(len(configuration.errors))}: nothing is rendered", WRONG_CONFIGURATION)


def _warn(text: str) -> None:
    note(f"warning: {text}", fg="yellow")


class _Dumper(yaml.SafeDumper):
    """YAML that each parser reads in the same way.

    PyYAML writes ``1e3`` and ``y`` unquoted, because it reads them as strings; kubectl's parser reads a number and a
    boolean. So a string is quoted unless each parser reads it as a string.
    """

    def ignore_aliases(self, _data: Any) -> bool:
        return True

    def text(self, data: str) -> yaml.ScalarNode:
        plain = _PLAIN.fullmatch(data) and data.lower() not in _WORDS
        as_block = "\n" in data and data.isascii()
        style = None if plain else "|" if as_block else '"'
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=style)


_Dumper.add_representer(str, _Dumper.text)


def _as_yaml(objects: list[dict[str, Any]]) -> str:
    text: str = yaml.dump_all(objects, Dumper=_Dumper, sort_keys=False, explicit_start=True, width=120)
    return text


def _as_json(objects: list[dict[str, Any]]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}, indent=2) + "\n"


_FORMATS: Final = {"yaml": _as_yaml, "json": _as_json}
