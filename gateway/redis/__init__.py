"""Redis for whoever uses it here: where it is, a link to it, what goes wrong with it; seals, and files of their keys.

Each user (verdicts between reviews in ``caching``, queues of calls in ``transports.queue``) decides for itself when to
call, how long to wait, and what to do without it.
"""
