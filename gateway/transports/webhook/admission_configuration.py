"""Reads the file of kube-apiserver's --admission-control-config-file, as far as it is about webhooks.

An AdmissionConfiguration has a configuration for each admission plugin, inline or in a separate file. Those of
MutatingAdmissionWebhook and ValidatingAdmissionWebhook name a kubeconfig each: the two kinds of calls may have
different credentials. All other plugins are ignored.
"""

from pathlib import Path
from typing import Final

from gateway.policies import field_errors
from gateway.policies.decoding.field import Field
from gateway.transports.webhook.client_credentials import AccessError, Users, WebhookAccess
from gateway.transports.webhook.kubeconfig import read_document, read_kubeconfig, refuse_errors, require_type

_GROUP: Final = "apiserver.config.k8s.io"
_PLUGIN: Final = ("name", "path", "configuration")
_WEBHOOKS: Final = ("apiVersion", "kind", "kubeConfigFile")


def read_admission_configuration(path: Path) -> WebhookAccess:
    """The credentials for webhooks in the kubeconfigs that an AdmissionConfiguration names.

    Raises:
        AccessError: it, or a file that it names, cannot be read or used.
    """
    document = read_document(path)
    if document is None:
        raise AccessError(f"{path}: is empty; it must hold an AdmissionConfiguration of {_GROUP}/v1")
    document.mapping(("apiVersion", "kind", "plugins"))
    require_type(document, {f"{_GROUP}/v1", f"{_GROUP}/v1alpha1"}, {"AdmissionConfiguration"})
    plugins: dict[str, Field] = {}
    for item in document.get("plugins").items() or ():
        name = item.get("name").text("") or ""
        item.mapping(_PLUGIN)
        # "look for matching plugin and get configuration": the first one.
        plugins.setdefault(name, item)
    refuse_errors(document, path)
    return WebhookAccess(
        mutating=_users(plugins.get("MutatingAdmissionWebhook"), document, path),
        validating=_users(plugins.get("ValidatingAdmissionWebhook"), document, path),
    )


def _users(plugin: Field | None, document: Field, path: Path) -> Users:
    if plugin is None:
        return Users()
    configuration: Field | None = plugin.get("configuration")
    if configuration is not None and configuration.absent:
        file = plugin.get("path").text("")
        refuse_errors(document, path)
        if not file:
            return Users()
        path = path.parent / file
        configuration = document = read_document(path) or plugin.get("configuration")
    assert configuration is not None  # noqa: S101 - a Field stands for what is absent too
    kubeconfig = _kubeconfig(configuration)
    refuse_errors(document, path)
    return read_kubeconfig(Path(kubeconfig)) if kubeconfig else Users()


def _kubeconfig(configuration: Field) -> str:
    if not configuration.get("staticManifestsDir").absent:
        configuration.get("staticManifestsDir").refuse(
            "static manifests are for kube-apiserver; pass such files with --policies, and remove this field"
        )
    configuration.mapping((*_WEBHOOKS, "staticManifestsDir"))
    require_type(configuration, {f"{_GROUP}/v1"}, {"WebhookAdmissionConfiguration"})
    field = configuration.get("kubeConfigFile")
    file = field.text("") or ""
    if file and not Path(file).is_absolute():
        field.refuse(field_errors.invalid(file, "must be an absolute file path"))
        return ""
    return file
