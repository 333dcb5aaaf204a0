"""Two readings of JSON Patch: the standard's, and that of the library in kube-apiserver (evanphx/json-patch v4.13)."""

from gateway.enums import StrEnum


class PatchDialect(StrEnum):
    """By whose rules a JSON Patch is read."""

    RFC_6902 = "rfc6902"
    """The standard. What workers are promised."""

    KUBERNETES = "kubernetes"
    """kube-apiserver's library, in every corner. What existing webhooks were written against."""
