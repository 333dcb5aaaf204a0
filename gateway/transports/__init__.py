"""How a worker is called: over gRPC, through a queue, as a webhook, as a hook.

Imported before gRPC, because gRPC reads its environment once.
"""

import os
from typing import Final

_SETTINGS: Final = {
    # Workers are started by fork and exec, never by fork alone, so gRPC need not survive a fork; its attempt to do so
    # only complains on standard error.
    "GRPC_ENABLE_FORK_SUPPORT": "0",
    # What gRPC's core has to say comes back as the status of a call; on standard error it would be the one line that is
    # not of our log. Whoever looks into gRPC itself sets this to INFO.
    "GRPC_VERBOSITY": "NONE",
}

for _name, _text in _SETTINGS.items():
    os.environ.setdefault(_name, _text)
