"""Checks a worker of the admission gateway, in any language, by the contract alone."""

import os
from importlib.metadata import version

VERSION = version("admission-worker-conformance")

GRPC_VERBOSITY = os.environ.get("GRPC_VERBOSITY")
"""The caller's value, which workers that the kit starts inherit instead of the default below."""

# Otherwise gRPC logs each handshake that a check breaks on purpose. It reads the variable when it is imported.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
