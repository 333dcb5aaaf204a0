"""Workers that break a rule: each check has at least one that must fail it."""

FAULTS = {}
"""Classes of workers by the name of the check whose rule they break."""


def breaks(*names):
    """Register a class of workers that break the rules of these checks."""

    def register(worker):
        for name in names:
            FAULTS.setdefault(name, []).append(worker)
        return worker

    return register
