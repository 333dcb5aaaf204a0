"""The reference worker as a command; ``--fault NAME`` makes it break a rule for processes."""

# ruff: noqa: ASYNC110 - a worker of the tests may poll

import argparse
import asyncio
import json
import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path

import grpc

from workers.conformance.tests.reference_judging import POLICIES
from workers.conformance.tests.reference_serving import HEALTH, Stream, Worker

PREFIX = "ADMISSION_WORKER_"


def wrong(message, code=2):
    sys.stderr.write(f"error: {message}\n")
    if FAULT == "traces":
        sys.stderr.write("Traceback (most recent call last):\n")
    sys.exit({"exits-3": 3}.get(FAULT, code))


class Flags(argparse.ArgumentParser):
    def error(self, message):
        wrong(message)


def flags():
    parser = Flags(allow_abbrev=False)
    parser.add_argument("--conformance", action="store_true")
    parser.add_argument("--fault", default="")
    names = {"listen": "127.0.0.1:50051", "tls-cert": "", "tls-key": "", "client-ca": "", "log-format": "text",
             "log-level": "info", "in-flight": "4096", "grace-period": "8"}  # fmt: skip
    for name, default in names.items():
        variable = PREFIX + name.upper().replace("-", "_")
        parser.add_argument(f"--{name}", default=os.environ.get(variable, default))
    known = parser.parse_known_args()[0] if "ignores-flags" in sys.argv else parser.parse_args()
    global FAULT  # noqa: PLW0603 - the whole process reads it
    FAULT = known.fault
    if FAULT == "variable-first":
        known.listen = os.environ.get(PREFIX + "LISTEN", known.listen)
    return known


FAULT = ""


class Command(Worker):
    def __init__(self, given):
        super().__init__()
        self.given = given
        try:
            self.room = int(given.in_flight)
        except ValueError:
            if FAULT != "ignores-variables":
                wrong("--in-flight must be a number")
        self.room = 4096 if FAULT == "has-room" else self.room

    def log(self, level, message, **fields):
        if self.given.log_format == "json" and FAULT != "logs-text":
            now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            message = json.dumps({"time": now, "level": level, "message": message} | fields)
        sys.stderr.write(f"{message}\n")
        sys.stderr.flush()

    async def judge(self, call, document, trace=""):
        if FAULT == "logs-documents":
            self.log("debug", f"called about {document!r}")
        if FAULT == "logs-no-uid" and call.policy == "probe-panic":
            call.uid = ""
        return await super().judge(call, document, trace)

    async def counted(self, call, document, trace):
        self.in_flight += 1
        try:
            return await self.judge(call, document, trace)
        finally:
            self.in_flight -= FAULT != "frees-nothing"

    async def watch(self, request, context):
        if FAULT == "reports-nothing":
            await context.write(HEALTH(status=HEALTH.SERVING))
            await asyncio.Event().wait()
        await super().watch(request, context)

    class stream_class(Stream):  # noqa: N801 - the worker's attribute
        async def lame(self):
            await self.worker.stopping.wait()
            if FAULT == "drops-streams":
                for number in list(self.open):
                    self.drop(number)
                self.close()
            elif FAULT == "waits-for-streams":
                await asyncio.Event().wait()
            await super().lame()

        def left(self, task):
            if FAULT != "frees-nothing":
                super().left(task)


def address(worker):
    """The address to listen on, if it is free."""
    where = worker.given.listen
    if where.startswith("unix:"):
        path = Path(where.removeprefix("unix:"))
        if path.exists() and FAULT != "takes-over":
            with socket.socket(socket.AF_UNIX) as probe:
                try:
                    probe.connect(str(path))
                except OSError:
                    if FAULT == "minds-old-files":
                        wrong(f"{where}: the file exists", 1)
                else:
                    wrong(f"{where}: another process listens there", 1)
        path.unlink(missing_ok=True)
        return where
    host, _, port = where.rpartition(":")
    if not host or not port.isdecimal():
        if FAULT == "listens-anywhere":
            return "127.0.0.1:0"
        wrong(f"--listen {where}: must be HOST:PORT or unix:PATH")
    try:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, int(port)))
            probe.listen()
    except OSError as error:
        if FAULT == "listens-anywhere":
            return "127.0.0.1:0"
        wrong(f"{where}: {error.strerror}", 1)
    return where


def credentials(given):
    """TLS, if it is configured; each handshake reads the files again."""
    if given.client_ca and not given.tls_cert and FAULT != "serves-in-the-clear":
        wrong("--client-ca needs --tls-cert and --tls-key")
    if not given.tls_cert or FAULT == "serves-in-the-clear":
        return None

    def read():
        pair = (Path(given.tls_key).read_bytes(), Path(given.tls_cert).read_bytes())
        ca = Path(given.client_ca).read_bytes() if given.client_ca else None
        return grpc.ssl_server_certificate_configuration([pair], root_certificates=ca)

    first = read()
    wants = bool(given.client_ca) and FAULT != "trusts-strangers"
    if wants and first and b"bm9uZQ" in Path(given.tls_cert).read_bytes():
        wrong("the certificate cannot be used", 1)
    if b"bm9uZQ" in Path(given.tls_cert).read_bytes() and FAULT != "serves-with-nothing":
        wrong("the certificate cannot be used", 1)
    return grpc.dynamic_ssl_server_credentials(
        first, lambda: first if FAULT == "keeps-certificates" else read(), require_client_authentication=wants
    )


async def serve(worker):
    given = worker.given
    where, secret = address(worker), credentials(given)
    server = grpc.aio.server(options=worker.options)
    server.add_generic_rpc_handlers(worker.handlers())
    port = server.add_secure_port(where, secret) if secret else server.add_insecure_port(where)
    await server.start()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping, worker)
    found = where if where.startswith("unix:") else f"127.0.0.1:{0 if FAULT == 'logs-port-0' else port}"
    policies = ", ".join(POLICIES)
    worker.log("info", f"worker {worker.name} {worker.version} listens on {found}; policies: {policies}")
    if os.environ.get(PREFIX + "SUPERVISED") == "1" and FAULT != "orphan":
        threading.Thread(target=ends, args=(loop, worker), daemon=True).start()
    await worker.stopping.wait()
    grace = 600 if FAULT == "is-patient" else float(given.grace_period)
    if FAULT == "leaves-at-once":
        grace = 0
    else:
        await asyncio.sleep(0.5 if FAULT != "waits-for-streams" else 0)
        end = loop.time() + grace
        while worker.in_flight > 0 and loop.time() < end and FAULT != "frees-nothing":
            await asyncio.sleep(0.05)
    await server.stop(max(0.0, grace))
    sys.exit({"exits-3": 3}.get(FAULT, 0))


def stopping(worker):
    if worker.stopping.is_set() and FAULT != "is-patient":
        os._exit(1)
    worker.stopping.set()


def ends(loop, worker):
    while os.read(0, 4096):
        pass
    loop.call_soon_threadsafe(worker.stopping.set)


if __name__ == "__main__":
    asyncio.run(serve(Command(flags())))
