"""Metrics and log lines, made from the Decision record. No review waits for them."""
