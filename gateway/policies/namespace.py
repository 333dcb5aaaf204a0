"""The v1 Namespace document, as kubectl prints it: a name and labels; what else stands in it is Kubernetes' affair."""

from typing import Final

from gateway.policies.fields import Field
from gateway.policies.names import dns_label
from gateway.policies.selectors import read_labels

NAME_LABEL: Final = "kubernetes.io/metadata.name"
"""Kubernetes: "The Kubernetes control plane sets an immutable label kubernetes.io/metadata.name on all namespaces. The
value of the label is the namespace name." """


def read_namespace(document: Field) -> tuple[str | None, dict[str, str] | None]:
    """The Namespace's name (None: it has no usable one), and its labels if there is no mistake in it."""
    before = len(document.findings)
    metadata = document.get("metadata")
    if not metadata.absent and not metadata.mapping():
        return None, None
    name = metadata.get("name").name(dns_label)
    labels = read_labels(metadata.get("labels"))
    if name is None or len(document.findings) > before:
        return name, None
    return name, labels | {NAME_LABEL: name}
