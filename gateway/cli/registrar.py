"""What would be registered with kube-apiserver, by a command's parameters: which policies, and under which name and
address.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from msgspec import Struct

from gateway.cli.hook_options import chosen_hooks, chosen_registration, require_policies
from gateway.cli.standard_streams import COULD_NOT, fail
from gateway.policies.model import Configuration
from gateway.registration.entries import Entries, make_entries
from gateway.registration.kubernetes_versions import MANIFESTS
from gateway.registration.webhook_configurations import Registrar, Registration, register
from gateway.sources.files import SourceError
from gateway.sources.loading import load_configuration


class ChosenRegistration(Struct, frozen=True, kw_only=True):
    """A configuration, its entries, and the objects that register them."""

    configuration: Configuration
    entries: Entries
    registrar: Registrar
    registration: Registration


def loaded_registration(
    paths: tuple[Path, ...], values: dict[str, Any], *, flag: str, require_sound: Callable[[Configuration], None]
) -> ChosenRegistration:
    """The registration of the policies in these paths and of hooks. Exits with 2 if they cannot be read.

    Args:
        paths: of policies.
        values: of the options of hooks and ``commands.registering_options``.
        flag: what names the paths, for an error.
        require_sound: exits if the configuration has errors.

    Raises:
        click.UsageError: the options cannot be combined.
    """
    hooks = chosen_hooks(values)
    require_policies(paths, hooks, flag)
    registrar = _chosen_registrar(values)
    try:
        configuration = load_configuration(paths, stdin=sys.stdin.buffer, hooks=hooks)
    except SourceError as error:
        fail(str(error), COULD_NOT)
    require_sound(configuration)
    entries = make_entries(configuration)
    return ChosenRegistration(
        configuration=configuration, entries=entries, registrar=registrar, registration=register(entries, registrar)
    )


def _chosen_registrar(values: dict[str, Any]) -> Registrar:
    """The registrar that ``commands.registering_options`` describe. Exits with 2 if a file cannot be used.

    Raises:
        click.UsageError: neither or both addresses are set, or the release of Kubernetes is too old.
    """
    of_shell_operator = chosen_registration(values)
    has_address = values["service"] is not None or values["url"]
    service, url = values["service"] if has_address else of_shell_operator.service, values["url"] or ""
    if (service is None) == (not url):
        raise click.UsageError("exactly one of --service and --url must be set")
    manifest = values.get("manifest") is not None
    if manifest and not url:
        raise click.UsageError("--manifest needs --url: a webhook of a manifest file cannot name a Service")
    if manifest and values["kube_version"] < MANIFESTS:
        raise click.UsageError(f"--manifest needs Kubernetes {MANIFESTS} or later, not {values['kube_version']}")
    ca = values["ca_bundle"] or of_shell_operator.ca
    if manifest and ca is None:
        raise click.UsageError("--manifest needs --ca-bundle: no controller adds a caBundle to a file")
    try:
        return Registrar(
            name=values["name"],
            service=service,
            url=url,
            ca_bundle=b"" if ca is None else _certificates(ca),
            kube_version=values["kube_version"],
            excluded_namespaces=values["exclude_namespace"],
            path_secret=_path_secret(values["path_secret_file"]),
            manifest=manifest,
        )
    except ValueError as error:
        raise click.UsageError(f"--kube-version: {error}") from None


def _path_secret(path: Path | None) -> str:
    if path is None:
        return ""
    from gateway.serving.credential_files import PATH_SECRETS, CredentialError, credentials_in  # noqa: PLC0415

    try:
        return credentials_in(path, PATH_SECRETS)[0]
    except CredentialError as error:
        fail(str(error), COULD_NOT)


def _certificates(path: Path) -> bytes:
    from gateway.serving.ca_bundle import CaBundleError, read_ca_bundle  # noqa: PLC0415 - as credentials_in

    try:
        return read_ca_bundle(path)
    except CaBundleError as error:
        fail(str(error), COULD_NOT)
