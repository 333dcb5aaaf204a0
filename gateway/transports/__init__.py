"""How a worker is called: over gRPC, through a queue, as a webhook, as a hook.

Imported before gRPC, because gRPC reads its environment once.
"""

import os
from typing import Final

_SETTINGS: Final = {
    # Workers are started by fork and exec, never by fork alone, so gRPC need not survive a fork; its support for forks
    # only writes warnings to standard error.
    "GRPC_ENABLE_FORK_SUPPORT": "0",
    # Errors of gRPC's core are in the status of a call; on standard error they would break the log's format. Set this
    # to INFO to debug gRPC itself.
    "GRPC_VERBOSITY": "NONE",
}

for _name, _text in _SETTINGS.items():
    os.environ.setdefault(_name, _text)
