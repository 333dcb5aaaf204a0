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
from worker_conformance.conversation import calls, cancels
from worker_conformance.findings import BrokenRuleError, NotCheckableError, expect, listed, shown
from worker_conformance.launching import Launcher
from worker_conformance.questions import echo, first_phase, question, sleep
from worker_conformance.subject import LOOK, Subject
from worker_conformance.target import Target

section = Section("command")

LONG = 600.0


async def on_a_port(launcher: Launcher) -> tuple[str, str]:
    """A worker whose flag says any free port, and whose variable says a socket."""
    path = f"unix:{launcher.socket()}"
    async with launcher.started("--listen", "127.0.0.1:0", listen=path) as process:
        found = await process.listening()
        if not found["address"].startswith("unix:"):
            async with connected(Target(address=found["address"]), launcher.patience) as client:
                await client.describe()
        return found["address"], found[0]


@section.check(
    "listening-line",
    "It says once where it listens, with its name, its version and its policies.",
    readme("worker NAME VERSION listens on ADDRESS; policies: a, b"),
    needs="command",
)
async def listening_line(worker: Subject) -> None:
    """With the port that was found."""
    address, line = await worker.scene(on_a_port)
    names = ", ".join(policy.name for policy in worker.description.policies)
    said = line.split("policies: ")[-1].strip()
    expect(set(said.split(", ")) == set(names.split(", ")), f"a line that ends with: policies: {names}", line)
    version = f" {worker.description.version} listens on "
    expect(version in line, f"a line with{version}", line)
    expect(address.rpartition(":")[2] != "0", "the port that was found", line)


@section.check(
    "flag-before-variable",
    "A flag goes before its variable, and port 0 is any port.",
    readme("A flag takes precedence."),
    needs="command",
)
async def flag_before_variable(worker: Subject) -> None:
    """--listen and ADMISSION_WORKER_LISTEN."""
    address, _ = await worker.scene(on_a_port)
    expect(address.startswith("127.0.0.1:"), "a worker that listens on 127.0.0.1, as its flag says", address)


async def refused(launcher: Launcher, *flags: str, **variables: str) -> tuple[int, list[str]]:
    """Start a worker that cannot serve: its exit code and its log."""
    listen = variables.pop("LISTEN", "")
    async with launcher.started(*flags, listen=listen, environment=variables) as process:
        return await process.exit_code(launcher.start_patience), process.log


def is_refusal(found: tuple[int, list[str]], code: int, what: str) -> None:
    """See that a worker ended with this exit code, and said why in one line.

    Several lines are allowed around the error where a library of flags prints its usage; a stack trace is not.
    """
    ended, log = found
    expect(ended == code, f"exit code {code} for {what}", f"exit code {ended}:\n" + "\n".join(log[-10:]))
    expect(log, f"a line that says why, for {what}", "nothing on standard error")
    traces = [line for line in log if line.startswith(("Traceback", "    at ", "\tat ", "goroutine ", "thread 'main'"))]
    expect(not traces, f"no stack trace for {what}", "\n".join(log[-10:]))


def one_line(found: tuple[int, list[str]], what: str) -> None:
    """See that the log has one line."""
    lines = [line for line in found[1] if line.strip()]
    expect(len(lines) == 1, f"one line for {what}", f"{len(lines)} lines:\n" + "\n".join(lines[:10]))


async def socket_is_taken(launcher: Launcher) -> tuple[int, list[str]]:
    """Somebody listens on the Unix socket."""
    path = launcher.socket()
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        other.listen()
        found = await refused(launcher, LISTEN=f"unix:{path}")
        expect(path.exists(), "the other's socket left alone", "it was removed")
        return found


async def port_is_taken(launcher: Launcher) -> tuple[int, list[str]]:
    """Somebody listens on the port."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        return await refused(launcher, LISTEN=f"127.0.0.1:{other.getsockname()[1]}")


@section.check(
    "socket-is-taken",
    "A socket that somebody listens on is left alone: exit code 1, and one line.",
    readme("The worker replaces a socket file on which no process listens, and no other"),
    needs="command",
)
async def socket_that_is_taken(worker: Subject) -> None:
    """GRPC itself would take it over."""
    found = await worker.scene(socket_is_taken)
    is_refusal(found, 1, "a socket that is taken")
    one_line(found, "a socket that is taken")


@section.check(
    "port-is-taken",
    "A port that somebody listens on: exit code 1, and one line.",
    readme("1 could not listen (or a certificate could not be used)"),
    needs="command",
)
async def port_that_is_taken(worker: Subject) -> None:
    """Two workers must not share one."""
    found = await worker.scene(port_is_taken)
    is_refusal(found, 1, "a port that is taken")
    one_line(found, "a port that is taken")


async def wrong_flag(launcher: Launcher) -> tuple[int, list[str]]:
    """A flag that nobody has."""
    return await refused(launcher, "--no-such-flag")


@section.check(
    "wrong-flag",
    "A wrong flag: exit code 2, and no stack trace.",
    readme("2 a wrong flag or variable."),
    needs="command",
)
async def flag_that_is_wrong(worker: Subject) -> None:
    """A mistyped flag must not be ignored."""
    is_refusal(await worker.scene(wrong_flag), 2, "--no-such-flag")


async def wrong_variable(launcher: Launcher) -> tuple[int, list[str]]:
    """A variable with a value that cannot be."""
    return await refused(launcher, IN_FLIGHT="many")


@section.check(
    "wrong-variable",
    "A wrong variable: exit code 2, and no stack trace.",
    readme("2 a wrong flag or variable."),
    needs="command",
)
async def variable_that_is_wrong(worker: Subject) -> None:
    """ADMISSION_WORKER_IN_FLIGHT=many."""
    is_refusal(await worker.scene(wrong_variable), 2, "ADMISSION_WORKER_IN_FLIGHT=many")


async def wrong_address(launcher: Launcher) -> tuple[int, list[str]]:
    """An address that is none."""
    return await refused(launcher, "--listen", "nowhere")


@section.check(
    "wrong-address",
    "An address that is none: exit code 2, and no stack trace.",
    readme("2 a wrong flag or variable."),
    needs="command",
)
async def address_that_is_wrong(worker: Subject) -> None:
    """--listen nowhere."""
    is_refusal(await worker.scene(wrong_address), 2, "--listen nowhere")


async def small(launcher: Launcher) -> dict[str, str]:
    """A worker with room for four calls, on a socket whose file a killed worker has left."""
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
        seen["freed"] = await _room(client, launcher.patience)
        stream.breaks()
        return seen


async def _room(client: Client, patience: float) -> str:
    """Call until a call is taken: the cancelled work needs a moment to end."""
    end = asyncio.get_running_loop().time() + patience
    while asyncio.get_running_loop().time() < end:
        try:
            return str((await client.review(echo({}))).WhichOneof("verdict"))
        except grpc.aio.AioRpcError:
            await asyncio.sleep(LOOK)
    return "RESOURCE_EXHAUSTED for ever"


@section.check(
    "stale-socket",
    "The socket's file of a worker that was killed is taken over.",
    readme("The worker replaces a socket file on which no process listens"),
    needs="command",
)
async def stale_socket(worker: Subject) -> None:
    """Otherwise it could never be started again."""
    await worker.scene(small)


@section.check(
    "in-flight",
    "With --in-flight 4 the fifth call is refused at once, on the stream and by Review.",
    readme("RESOURCE_EXHAUSTED on `Review`, a failure on the stream; never a stall"),
    probes="sleep echo",
    needs="command stream",
)
async def in_flight(worker: Subject) -> None:
    """The limit counts over all calls; Describe is no call."""
    seen = await worker.scene(small)
    if not seen:
        raise NotCheckableError("the worker has no probe-sleep")
    expect(seen["fifth"] == "failure" and seen["early"] == "[5]", "a failure for the fifth call alone", str(seen))
    expect(seen["unary"] == "RESOURCE_EXHAUSTED", "RESOURCE_EXHAUSTED for a Review", seen["unary"])


@section.check(
    "in-flight-frees",
    "A place is free again when its work was cancelled.",
    readme("more calls than `--in-flight`"),
    probes="sleep echo",
    needs="command stream",
)
async def in_flight_frees(worker: Subject) -> None:
    """Room for one more."""
    seen = await worker.scene(small)
    expect(seen.get("freed") == "deny", "an answer after one of four was cancelled", str(seen.get("freed")))


CANARY = f"canary-{uuid.uuid4().hex}"
"""What no log may hold."""

UID = "0d2f8a3e-5c7b-4a1d-9e6f-1b2c3d4e5f60"


async def talkative(launcher: Launcher) -> list[str]:
    """A worker that logs as JSON, and all there is: its log, after good and bad calls."""
    variables = {"LOG_FORMAT": "json", "LOG_LEVEL": "debug"}
    async with launcher.started(environment=variables) as process:
        async with connected(await process.target(), launcher.patience) as client:
            described = await client.describe()
            document = {"operation": "CREATE", "object": {"data": {"password": CANARY}}}
            for policy in described.policies:
                settings = {"seconds": 0, "token": ""} if policy.name == "probe-sleep" else {}
                for text in (document, f'{{"object":{{"password":"{CANARY}"'.encode()):
                    call = question(policy.name, phase=first_phase(policy), settings=settings, document=text, uid=UID)
                    await client.review(call)
                    if launcher.holds_stream:
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
    """Each line, also those of libraries."""
    for line in await worker.scene(talkative):
        try:
            entry = json.loads(line)
            dt.datetime.fromisoformat(entry["time"])
            right = isinstance(entry["level"], str) and isinstance(entry["message"], str)
        except (ValueError, KeyError, TypeError) as error:
            raise BrokenRuleError(
                "a JSON object with time (RFC 3339), level and message", f"{error!r}: {shown(line)}"
            ) from None
        expect(right, "texts for level and message", shown(line))


@section.check(
    "log-holds-no-documents",
    "No document is in the log, whatever its level, and whatever went wrong.",
    readme("never documents"),
    needs="command",
)
async def log_holds_no_documents(worker: Subject) -> None:
    """They may hold a Secret."""
    found = [line for line in await worker.scene(talkative) if CANARY in line]
    expect(not found, "nothing of a document", listed(map(shown, found[:3])))


@section.check(
    "failures-are-logged",
    "A panic is logged with its uid and its policy.",
    readme("each failure of a policy with its uid"),
    probes="panic",
    needs="command",
)
async def failures_are_logged(worker: Subject) -> None:
    """So that the author finds it."""
    entries = []
    for line in await worker.scene(talkative):
        with suppress(ValueError):
            entries.append(json.loads(line))
    found = [
        one for one in entries if isinstance(one, dict) and one.get("policy") == "probe-panic" and one.get("uid") == UID
    ]
    expect(found, f"a line with uid {UID} and policy probe-panic", "none")
