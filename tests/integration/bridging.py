"""``admission-gateway bridge`` as an operator runs it, the Redis between it and a gateway, and what is in that."""

import os
import re
import signal
import subprocess

import redis

from gateway.transports.queue.names import GROUP, Names
from tests.integration.process import COMMAND, WAIT_SECONDS, Lines, Serving

STREAM = "admission:test"

_BRIDGING = re.compile(
    r"bridge started for queue \S+ and worker \S+; http://127\.0\.0\.1:(\d+)/readyz reports when it takes calls"
)


class Bridging(Serving):
    """One bridge process. ``arguments`` follow ``bridge``; the port is a free one; ``command``: of another version."""

    def __init__(self, *arguments, env=None, command=COMMAND):
        self.process = subprocess.Popen(
            [command, "bridge", *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "ADMISSION_GATEWAY_ADMIN_LISTEN": "127.0.0.1:0"} | (env or {}),
        )
        self.out, self.err = Lines(self.process.stdout), Lines(self.process.stderr)
        self.admin_port = 0

    def ready(self):
        """Wait until it takes work from its queue."""
        line = self.out.find(lambda line: line.startswith("bridge started "))
        assert line is not None, f"it ended before it began: {self.exit_code()}\n" + "\n".join(self.err)
        self.admin_port = int(_BRIDGING.fullmatch(line)[1])
        self.logged("the bridge takes calls from the queue")
        return self

    def event(self, name):
        """How often something happened to what it takes."""
        return self.metric("bridge_events_total", event=name)

    def kill(self):
        """As the kernel does when memory is short."""
        self.process.kill()
        self.process.wait(WAIT_SECONDS)

    def pause(self):
        """It does nothing, and keeps its connections."""
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        """It works again."""
        self.process.send_signal(signal.SIGCONT)

    def stop(self):
        """End it, whatever state it is in."""
        if self.process.poll() is None:
            self.go_on()
        super().stop()


class Contents:
    """What stands in a queue."""

    def __init__(self, server):
        self._names = Names(STREAM)
        self._client = redis.Redis(port=server.port, socket_timeout=5)

    def lanes(self):
        """The names of its lanes in Redis."""
        return list(self._client.scan_iter(self._names.calls("*")))

    def groups(self):
        """How the consumer group of each lane is doing."""
        return [
            each for lane in self.lanes() for each in self._client.xinfo_groups(lane) if each["name"] == GROUP.encode()
        ]

    def is_done(self):
        """Whether nothing waits, and nothing is pending."""
        return all(self._client.xlen(lane) == 0 for lane in self.lanes()) and not any(
            each["pending"] for each in self.groups()
        )

    def waiting(self):
        """How many entries there are."""
        return sum(self._client.xlen(lane) for lane in self.lanes())

    def is_late(self):
        """Whether all that waits is late, by Redis' clock."""
        seconds, microseconds = self._client.time()
        deadlines = [int(fields[b"d"]) for lane in self.lanes() for _, fields in self._client.xrange(lane)]
        return all(each < seconds * 1000 + microseconds // 1000 for each in deadlines)

    def present(self):
        """The names of the bridges that say that they are there."""
        return {name.decode() for name in self._client.hkeys(self._names.workers)}

    def write(self, **fields):
        """Put an unsealed entry into each lane."""
        for lane in self.lanes():
            self._client.xadd(lane, fields)

    def close(self):
        self._client.close()
