"""Policies that wait for a test, and calls of them."""

import asyncio

from admission_worker import Worker, deny
from workers.python.tests.client import PATIENCE, policy_call


class Gates:
    """Policies that wait for a test: each coroutine waits for the gate that its document names."""

    def __init__(self):
        self.worker = Worker("test", version="1")
        self.begun, self.cancelled = [], []
        self.gates = {}
        self.changed = asyncio.Event()

        @self.worker.validating("waits")
        async def waits(request):
            name = request.name
            self.begun.append(name)
            self.changed.set()
            try:
                await self.gates.setdefault(name, asyncio.Event()).wait()
            except asyncio.CancelledError:
                self.cancelled.append(name)
                self.changed.set()
                raise
            return deny(name)

        @self.worker.validating("plain")
        def plain(request):
            return deny(request.name or "nameless")

    def open(self, name):
        """Open the gate."""
        self.gates.setdefault(name, asyncio.Event()).set()

    async def until(self, names, seen):
        """Wait until calls with these names have begun."""
        while not set(names) <= set(seen):
            self.changed.clear()
            await asyncio.wait_for(self.changed.wait(), PATIENCE)


def waits(name, **fields):
    return policy_call("waits", document={"name": name}, **fields)


def plain(name, **fields):
    return policy_call("plain", document={"name": name}, **fields)


def messages(outcomes):
    return {number: outcome.deny.message or outcome.failure.message for number, outcome in outcomes.items()}
