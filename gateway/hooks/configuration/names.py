"""What becomes of the names of hooks and bindings: the id under which shell-operator serves a binding, and the Worker's
name of a hook.
"""

import hashlib
import re
from typing import Final

from gateway.policies.names import SUBDOMAIN_MAX, dns_subdomain

CONFIGURATION: Final = "shell-operator-hooks"
"""What shell-operator calls the configurations that it registers, unless it is told otherwise; ``-hooks`` follows."""

_PREFIX: Final = "hook."
_DIGEST_DIGITS: Final = 16
"""64 bits in hexadecimal: of a million hooks, two are equal once in 37 million times."""


def webhook_id(binding: str) -> str:
    """The URL-safe id that shell-operator makes of a binding's name, and registers as the last part of the path.

    Upper case becomes a dash and lower case, everything else but digits, dashes and slashes a dash, and several dashes
    one: ``private-repo-policy.example.com`` is ``private-repo-policy-example-com``.
    """
    lower = re.sub("([A-Z])", r"-\1", binding).lower()
    return re.sub("-+", "-", re.sub("[^a-z0-9/-]", "-", lower))


def worker_name(path: str) -> str:
    """The name of the Worker that a hook becomes, from its path in the directory of hooks.

    It is a legal name, different for different paths, and depends on nothing but the path: where the path itself is
    not legal as a name, a digest of it makes up for what had to be changed.
    """
    plain = _PREFIX + path
    if not dns_subdomain(plain):
        return plain
    digest = hashlib.sha256(path.encode(errors="surrogateescape")).hexdigest()[:_DIGEST_DIGITS]
    words = [re.sub("[^a-z0-9]+", "-", part.lower()).strip("-") for part in path.split("/")]
    room = SUBDOMAIN_MAX - len(_PREFIX) - len(digest) - 1
    readable = ".".join(filter(None, words))[:room].strip("-.")
    return f"{_PREFIX}{readable}-{digest}" if readable else _PREFIX + digest
