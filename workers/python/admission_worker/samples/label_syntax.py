"""Kubernetes' syntax of a label's key and value (k8s.io/apimachinery/pkg/util/validation).

A key is an optional prefix and a name: "name part must consist of alphanumeric characters, '-', '_' or '.', and must
start and end with an alphanumeric character" in at most 63 characters; the prefix is a DNS-1123 subdomain of at most
253. A value is empty or a name.
"""

import re

_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")

SUBDOMAIN_CHARACTERS = 253


def is_key(key: str) -> bool:
    """Whether a text is a valid key of a label, such as ``team`` or ``app.kubernetes.io/name``."""
    prefix, slash, name = key.rpartition("/")
    if slash and (len(prefix) > SUBDOMAIN_CHARACTERS or not _SUBDOMAIN.fullmatch(prefix)):
        return False
    return _NAME.fullmatch(name) is not None


def is_value(value: str) -> bool:
    """Whether a text is a valid value of a label."""
    return value == "" or _NAME.fullmatch(value) is not None
