"""``command.*``: a worker's flags, variables, exit codes and log."""

import asyncio
import datetime as dt
import json
import signal
import socket
import uuid
from contextlib import suppress

import grpc

from worker_conformance.check import Section, readme
from worker_conformance.checks.stopping import GRACE
from worker_conformance.client import Client, connected
from worker_conformance.findings import BrokenRuleError, NotCheckableError, expect, listed, shown
from worker_conformance.policy_calls import echo, first_phase, policy_call, sleep
from worker_conformance.processes import Launcher
from worker_conformance.review_stream import calls, cancels
from worker_conformance.subject import LOOK, Subject
from worker_conformance.target import Target

section = Section("command")

LONG = 600.0


async def on_a_port(launcher: Launcher) -> tuple[str, str]:
    """A worker whose flag is port 0, and whose variable is a Unix socket."""
    path = f"unix:{launcher.socket()}"
    async with launcher.started("--listen", "127.0.0.1:0", listen=path) as process:
        found = await process.listening()
        if not found["address"].startswith("unix:"):
            async with connected(Target(address=found["address"]), launcher.patience) as client:
                await client.describe()
        return found["address"], found[0]


@section.check(
    "listening-line",
    "The worker logs its address, name, version and policies when it listens.",
    readme("worker NAME VERSION listens on ADDRESS; policies: a, b"),
    needs="command",
)
async def listening_line(worker: Subject) -> None:
    """With the actual port."""
    address, line = await worker.scenario(on_a_port)
    names = ", ".join(policy.name for policy in worker.description.policies)
    logged = line.split("policies: ")[-1].strip()
    expect(set(logged.split(", ")) == set(names.split(", ")), f"a line that ends with: policies: {names}", line)
    version = f" {worker.description.version} listens on "
    expect(version in line, f"a line with{version}", line)
    expect(address.rpartition(":")[2] != "0", "the actual port", line)


@section.check(
    "flag-before-variable",
    "A flag takes precedence over its variable, and port 0 selects any free port.",
    readme("A flag takes precedence."),
    needs="command",
)
async def flag_before_variable(worker: Subject) -> None:
    """--listen and ADMISSION_WORKER_LISTEN."""
    address, _ = await worker.scenario(on_a_port)
    expect(address.startswith("127.0.0.1:"), "a worker that listens on 127.0.0.1, from its flag", address)


async def start_failure(launcher: Launcher, *flags: str, **variables: str) -> tuple[int, list[str]]:
    """Start a worker that cannot serve; return its exit code and its log."""
    listen = variables.pop("LISTEN", "")
    async with launcher.started(*flags, listen=listen, environment=variables) as process:
        return await process.exit_code(launcher.start_patience), process.log


def is_start_error(found: tuple[int, list[str]], code: int, what: str) -> None:
    """Expect this exit code, and an error in the log.

    A flag library may print its usage around the error; a stack trace is not allowed.
    """
    ended, log = found
    expect(ended == code, f"exit code {code} for {what}", f"exit code {ended}:\n" + "\n".join(log[-10:]))
    expect(log, f"an error in the log for {what}", "nothing on standard error")
    traces = [line for line in log if line.startswith(("Traceback", "    at ", "\tat ", "goroutine ", "thread 'main'"))]
    expect(not traces, f"no stack trace for {what}", "\n".join(log[-10:]))


def one_line(found: tuple[int, list[str]], what: str) -> None:
    """Expect one line in the log."""
    lines = [line for line in found[1] if line.strip()]
    expect(len(lines) == 1, f"one line for {what}", f"{len(lines)} lines:\n" + "\n".join(lines[:10]))


async def socket_is_taken(launcher: Launcher) -> tuple[int, list[str]]:
    """Another process listens on the Unix socket."""
    path = launcher.socket()
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        other.listen()
        found = await start_failure(launcher, LISTEN=f"unix:{path}")
        expect(path.exists(), "the other process's socket to remain", "it was removed")
        return found


async def port_is_taken(launcher: Launcher) -> tuple[int, list[str]]:
    """Another process listens on the port."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        return await start_failure(launcher, LISTEN=f"127.0.0.1:{other.getsockname()[1]}")


@section.check(
    "socket-in-use",
    "If another process listens on the socket, the worker exits with code 1 and logs one line.",
    readme("The worker replaces a socket file on which no process listens, and no other"),
    needs="command",
)
async def socket_that_is_taken(worker: Subject) -> None:
    """Without the worker's own check, gRPC replaces the socket file."""
    found = await worker.scenario(socket_is_taken)
    is_start_error(found, 1, "a socket in use")
    one_line(found, "a socket in use")


@section.check(
    "port-in-use",
    "If another process listens on the port, the worker exits with code 1 and logs one line.",
    readme("1 could not listen (or a certificate could not be used)"),
    needs="command",
)
async def port_that_is_taken(worker: Subject) -> None:
    """Two workers must not share a port."""
    found = await worker.scenario(port_is_taken)
    is_start_error(found, 1, "a port in use")
    one_line(found, "a port in use")


async def wrong_flag(launcher: Launcher) -> tuple[int, list[str]]:
    """An unknown flag."""
    return await start_failure(launcher, "--no-such-flag")


@section.check(
    "invalid-flag",
    "With an unknown flag the worker exits with code 2, without a stack trace.",
    readme("2 a wrong flag or variable."),
    needs="command",
)
async def flag_that_is_wrong(worker: Subject) -> None:
    """A mistyped flag must not be ignored."""
    is_start_error(await worker.scenario(wrong_flag), 2, "--no-such-flag")


async def wrong_variable(launcher: Launcher) -> tuple[int, list[str]]:
    """A variable with an invalid value."""
    return await start_failure(launcher, IN_FLIGHT="many")


@section.check(
    "invalid-variable",
    "With an invalid variable the worker exits with code 2, without a stack trace.",
    readme("2 a wrong flag or variable."),
    needs="command",
)
async def variable_that_is_wrong(worker: Subject) -> None:
    """ADMISSION_WORKER_IN_FLIGHT=many."""
    is_start_error(await worker.scenario(wrong_variable), 2, "ADMISSION_WORKER_IN_FLIGHT=many")


async def wrong_address(launcher: Launcher) -> tuple[int, list[str]]:
    """An invalid address."""
    return await start_failure(launcher, "--listen", "nowhere")


@section.check(
    "invalid-address",
    "With an invalid address the worker exits with code 2, without a stack trace.",
    readme("2 a wrong flag or variable."),
    needs="command",
)
async def address_that_is_wrong(worker: Subject) -> None:
    """--listen nowhere."""
    is_start_error(await worker.scenario(wrong_address), 2, "--listen nowhere")


async def limited(launcher: Launcher) -> dict[str, str]:
    """A worker with --in-flight 4, on the socket file of a killed worker."""
    path = launcher.socket()
    seen: dict[str, str] = {}
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(str(path))
    variables = {"IN_FLIGHT": "4"}
    async with (
        launcher.started(listen=f"unix:{path}", environment=variables) as process,
        connected(await process.target(), launcher.patience) as client,
    ):
        described = await client.describe()
        if not any(policy.name == "probe-sleep" for policy in described.policies):
            return seen
        stream = client.stream()
        await stream.send(calls([*[sleep(LONG)] * 4, echo({})]))
        seen["fifth"] = str((await stream.until(5))[5].WhichOneof("verdict"))
        seen["early"] = str(sorted(stream.outcomes))
        try:
            seen["unary"] = shown(await client.review(echo({})))
        except grpc.aio.AioRpcError as error:
            seen["unary"] = error.code().name
        await client.describe()
        await stream.send(cancels(1))
        seen["freed"] = await _first_accepted(client, launcher.patience)
        stream.breaks()
        return seen


async def _first_accepted(client: Client, patience: float) -> str:
    """Call until the worker accepts a call: the cancelled work needs a moment to end."""
    end = asyncio.get_running_loop().time() + patience
    while asyncio.get_running_loop().time() < end:
        try:
            return str((await client.review(echo({}))).WhichOneof("verdict"))
        except grpc.aio.AioRpcError:
            await asyncio.sleep(LOOK)
    return f"RESOURCE_EXHAUSTED for {patience:g} s"


@section.check(
    "stale-socket",
    "The worker replaces the socket file of a killed worker.",
    readme("The worker replaces a socket file on which no process listens"),
    needs="command",
)
async def stale_socket(worker: Subject) -> None:
    """Otherwise it could not start again."""
    await worker.scenario(limited)


@section.check(
    "in-flight",
    "With --in-flight 4 the worker rejects a fifth call at once, on the stream and by Review.",
    readme("RESOURCE_EXHAUSTED on `Review`, a failure on the stream; never a stall"),
    probes="sleep echo",
    needs="command stream",
)
async def in_flight(worker: Subject) -> None:
    """The limit is for all policy calls together; Describe does not count."""
    seen = await worker.scenario(limited)
    if not seen:
        raise NotCheckableError("the worker has no probe-sleep")
    expect(seen["fifth"] == "failure" and seen["early"] == "[5]", "a failure for the fifth call only", str(seen))
    expect(seen["unary"] == "RESOURCE_EXHAUSTED", "RESOURCE_EXHAUSTED for a Review", seen["unary"])


@section.check(
    "in-flight-released",
    "A cancelled call no longer counts for --in-flight.",
    readme("more calls than `--in-flight`"),
    probes="sleep echo",
    needs="command stream",
)
async def in_flight_released(worker: Subject) -> None:
    """The worker accepts another call."""
    seen = await worker.scenario(limited)
    expect(seen.get("freed") == "deny", "an answer after one of four was cancelled", str(seen.get("freed")))


CANARY = f"canary-{uuid.uuid4().hex}"
"""Part of each document, which no log may have."""

UID = "0d2f8a3e-5c7b-4a1d-9e6f-1b2c3d4e5f60"


async def json_logging(launcher: Launcher) -> list[str]:
    """The log of a worker with JSON and level debug, after valid and invalid calls."""
    variables = {"LOG_FORMAT": "json", "LOG_LEVEL": "debug"}
    async with launcher.started(environment=variables) as process:
        async with connected(await process.target(), launcher.patience) as client:
            described = await client.describe()
            document = {"operation": "CREATE", "object": {"data": {"password": CANARY}}}
            for policy in described.policies:
                settings = {"seconds": 0, "token": ""} if policy.name == "probe-sleep" else {}
                for text in (document, f'{{"object":{{"password":"{CANARY}"'.encode()):
                    call = policy_call(
                        policy.name, phase=first_phase(policy), settings=settings, document=text, uid=UID
                    )
                    await client.review(call)
                    if launcher.has_stream:
                        stream = client.stream()
                        await stream.send(calls([call]))
                        await stream.rest()
        process.signal(signal.SIGTERM)
        await process.exit_code(GRACE + launcher.patience)
        return process.log


@section.check(
    "json-log",
    "With ADMISSION_WORKER_LOG_FORMAT=json each line is an object with time, level and message.",
    readme("an object on each line with `time` (RFC 3339), `level`, `message`, and where known `uid` and `policy`"),
    needs="command",
)
async def json_log(worker: Subject) -> None:
    """Lines of libraries included."""
    for line in await worker.scenario(json_logging):
        try:
            entry = json.loads(line)
            dt.datetime.fromisoformat(entry["time"])
            right = isinstance(entry["level"], str) and isinstance(entry["message"], str)
        except (ValueError, KeyError, TypeError) as error:
            raise BrokenRuleError(
                "a JSON object with time (RFC 3339), level and message", f"{error!r}: {shown(line)}"
            ) from None
        expect(right, "strings for level and message", shown(line))


@section.check(
    "log-holds-no-documents",
    "The log never has a document, at no level and after no error.",
    readme("never documents"),
    needs="command",
)
async def log_holds_no_documents(worker: Subject) -> None:
    """A document may have a Secret."""
    found = [line for line in await worker.scenario(json_logging) if CANARY in line]
    expect(not found, "no part of a document in the log", listed(map(shown, found[:3])))


@section.check(
    "failures-are-logged",
    "The worker logs a panic with its uid and policy.",
    readme("each failure of a policy with its uid"),
    probes="panic",
    needs="command",
)
async def failures_are_logged(worker: Subject) -> None:
    """The author needs both to find the cause."""
    entries = []
    for line in await worker.scenario(json_logging):
        with suppress(ValueError):
            entries.append(json.loads(line))
    found = [
        one for one in entries if isinstance(one, dict) and one.get("policy") == "probe-panic" and one.get("uid") == UID
    ]
    expect(found, f"a line with uid {UID} and policy probe-panic", "none")
