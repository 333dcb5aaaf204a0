"""One Decision record -> metrics and log lines. What the gateway shows of itself, and nothing that a review waits
for.
"""
