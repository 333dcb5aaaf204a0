"""Checks a worker of the admission gateway by the contract alone, whatever it is written in."""

import os
from importlib.metadata import version

VERSION = version("admission-worker-conformance")

GRPC_VERBOSITY = os.environ.get("GRPC_VERBOSITY")
"""What whoever runs the kit says; workers that it starts get this, and not what follows."""

# gRPC would write of each handshake that a check breaks on purpose. It reads this when it is imported.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
