"""``hook-worker``: the hooks of a directory, served over gRPC by a worker made with the Python SDK."""
