"""Names derived from hooks and bindings: the id under which shell-operator serves a binding, the Worker's name of a
hook.
"""

import hashlib
import re
from typing import Final

from gateway.policies.names import SUBDOMAIN_MAX, dns_subdomain

CONFIGURATION: Final = "shell-operator-hooks"
"""shell-operator's default name of the configurations that it registers, without the suffix ``-hooks``."""

_PREFIX: Final = "hook."
_DIGEST_DIGITS: Final = 16
"""64 bits in hexadecimal: among a million hooks, two collide with a probability of 1 in 37 million."""


def webhook_id(binding: str) -> str:
    """The URL-safe id that shell-operator derives from a binding's name, and registers as the last part of the path.

    An upper case letter becomes a dash and the lower case letter; each other character but digits, dashes and slashes
    becomes a dash; several dashes become one: ``private-repo-policy.example.com`` is
    ``private-repo-policy-example-com``.
    """
    lower = re.sub("([A-Z])", r"-\1", binding).lower()
    return re.sub("-+", "-", re.sub("[^a-z0-9/-]", "-", lower))


def worker_name(path: str) -> str:
    """The name of a hook's Worker, derived from the hook's path in the directory of hooks.

    It is a valid name, different for different paths, and depends on the path only: where the path itself is not valid
    in a name, a digest of it is appended.
    """
    plain = _PREFIX + path
    if not dns_subdomain(plain):
        return plain
    digest = hashlib.sha256(path.encode(errors="surrogateescape")).hexdigest()[:_DIGEST_DIGITS]
    words = [re.sub("[^a-z0-9]+", "-", part.lower()).strip("-") for part in path.split("/")]
    room = SUBDOMAIN_MAX - len(_PREFIX) - len(digest) - 1
    readable = ".".join(filter(None, words))[:room].strip("-.")
    return f"{_PREFIX}{readable}-{digest}" if readable else _PREFIX + digest
