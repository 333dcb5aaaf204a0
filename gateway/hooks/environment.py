"""What a program that the gateway starts, a hook or a worker, is told by its environment: a few variables that any
program needs, those that lead to the cluster's API, and those that its contract names. Never the gateway's own, which
hold secrets: passwords of Redis, tokens, keys.
"""

import os
from collections.abc import Mapping
from typing import Final

_PASSED: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ")

_CLUSTER: Final = "KUBERNETES_SERVICE_"
"""Where kubectl and the client libraries find the API server from inside a pod: KUBERNETES_SERVICE_HOST, …_PORT."""


def clean_environment(
    given: Mapping[str, str] | None = None, *, own: Mapping[str, str] | None = None
) -> dict[str, str]:
    """All variables of such a process.

    Args:
        given: further ones, by its contract.
        own: this process' environment; None: the real one.
    """
    own = os.environ if own is None else own
    passed = {name: own[name] for name in _PASSED if name in own}
    cluster = {name: text for name, text in own.items() if name.startswith(_CLUSTER)}
    return {"PATH": os.defpath, **passed, **cluster, **(given or {})}
