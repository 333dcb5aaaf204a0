"""Certificates of the gateway's own CAs: builds, reads and rotates them. No I/O; the caller passes the time."""
