"""Redis, as the verdict cache and the queues use it: addresses, clients, links, errors, seals and key files.

Each user (``caching`` for verdicts between reviews, ``transports.queue`` for calls) decides for itself when to call
Redis, how long to wait, and what to do without it.
"""
