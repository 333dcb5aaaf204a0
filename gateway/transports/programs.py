"""The search path and the environment of the programs that the gateway starts: workers and hooks.

A program gets a few variables that any program needs, those for the cluster's API, and those of its contract. It never
gets the gateway's other variables, which may hold secrets: passwords of Redis, tokens, keys.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_PASSED: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ")

_CLUSTER: Final = "KUBERNETES_SERVICE_"
"""Where kubectl and the client libraries find the API server from inside a pod: KUBERNETES_SERVICE_HOST, …_PORT."""


def search_path() -> str:
    """The PATH of the workers that the gateway starts: ``python`` is found beside the gateway's own interpreter."""
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"


def clean_environment(
    given: Mapping[str, str] | None = None, *, own: Mapping[str, str] | None = None
) -> dict[str, str]:
    """All variables of a process that the gateway starts.

    Args:
        given: the variables that its contract names.
        own: this process' environment; None: the real one.
    """
    own = os.environ if own is None else own
    passed = {name: own[name] for name in _PASSED if name in own}
    cluster = {name: text for name, text in own.items() if name.startswith(_CLUSTER)}
    return {"PATH": os.defpath, **passed, **cluster, **(given or {})}
