"""Creates objects throughout a migration: the policy is in force at every moment."""

import threading
from contextlib import contextmanager

from tests.migrate.admission import Refused

_PAUSE_SECONDS = 0.2


class Witness:
    """What became of objects that were created one after another.

    Args:
        cluster: where.
        fine: an object that is let through, and what is stored of it.
        wrong: an object that is denied, and the words.
    """

    def __init__(self, cluster, *, fine, wrong):
        self._cluster, self._fine, self._wrong = cluster, fine, wrong
        self.seen, self.violations = 0, []

    def look(self):
        """Create both, now."""
        obj, stored = self._fine
        try:
            found, _ = self._cluster.admit(obj)
            if found != stored:
                self.violations.append(f"stored {found}")
        except Refused as refused:
            self.violations.append(f"refused: {refused}")
        obj, words = self._wrong
        try:
            self._cluster.admit(obj)
            self.violations.append("let through")
        except Refused as refused:
            if words not in str(refused):
                self.violations.append(f"refused in other words: {refused}")
        self.seen += 1


@contextmanager
def watching(witness):
    """Look all the time, in a thread."""
    over = threading.Event()

    def run():
        while not over.is_set():
            witness.look()
            over.wait(_PAUSE_SECONDS)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
