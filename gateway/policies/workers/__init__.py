"""The Worker document: where a worker is (gRPC, queue, webhook, hook), and how the connection is secured."""
