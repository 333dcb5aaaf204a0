"""A hook as a worker of the gateway: one process per call."""
