"""Which worker breaks which rule: for each check at least one that must fail it."""

FAULTS = {}
"""By the check's name: classes of workers that break its rule."""


def breaks(*names):
    """A class of workers that breaks the rules of these checks."""

    def register(worker):
        for name in names:
            FAULTS.setdefault(name, []).append(worker)
        return worker

    return register
