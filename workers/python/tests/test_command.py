"""The worker's command as a real process: its start, and each way in which it ends."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys

import grpc
import pytest

from workers.python.tests.authorities import Authority
from workers.python.tests.client import PATIENCE, Client, policy_call

AUTHORS = """
import asyncio, sys, threading
from admission_worker import Worker, deny

worker = Worker("test", version="1")

@worker.validating("plain")
def plain(request):
    return deny("no")

@worker.validating("slow")
async def slow(request):
    print("called", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    return deny("slow")

@worker.validating("stuck", blocking=True)
def stuck(request):
    print("called", flush=True)
    threading.Event().wait()

@worker.validating("exits")
def exits(request):
    sys.exit(3)

if __name__ == "__main__":
    worker.main()
"""


class Process:
    """A worker's process."""

    def __init__(self, process):
        self.process = process
        self.log = []

    async def line(self, pattern):
        """Read the log until a line matches."""
        while True:
            line = (await asyncio.wait_for(self.process.stderr.readline(), PATIENCE)).decode()
            assert line, f"the log ended without {pattern!r}: {self.log}"
            self.log.append(line)
            if found := re.search(pattern, line):
                return found

    async def called(self):
        """Wait until a policy has been called."""
        assert await asyncio.wait_for(self.process.stdout.readline(), PATIENCE) == b"called\n"

    async def end(self):
        """Its exit code, and the rest of its log."""
        self.log.append((await asyncio.wait_for(self.process.stderr.read(), PATIENCE)).decode())
        return await asyncio.wait_for(self.process.wait(), PATIENCE), "".join(self.log)


@pytest.fixture
async def start(tmp_path):
    """Start the author's worker with arguments and environment; kill it at the end."""
    module = tmp_path / "authors_worker.py"
    module.write_text(AUTHORS)
    started = []

    async def start(*arguments, stdin=subprocess.DEVNULL, **environment):
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(module),
            *arguments,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | environment,
            cwd=tmp_path,
        )
        started.append(process)
        return Process(process)

    yield start
    for process in started:
        if process.returncode is None:
            process.kill()
        await process.wait()
        process._transport.close()


async def _listening(worker):
    return (await worker.line(r"listens on (\S+);"))[1]


async def test_it_logs_its_address_in_one_line(start):
    """A worker logs its name, version, address with the actual port, and policies."""
    worker = await start("--listen", "127.0.0.1:0")
    address = await _listening(worker)
    assert re.fullmatch(r"127\.0\.0\.1:[1-9][0-9]*", address)
    assert len(worker.log) == 1
    assert "INFO worker test 1 listens on" in worker.log[0]
    assert "policies: plain, slow, stuck, exits" in worker.log[0]
    async with grpc.aio.insecure_channel(address) as channel:
        assert (await Client(channel).review(policy_call("plain"))).deny.message == "no"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it_gracefully(start, number, tmp_path):
    """At a signal a worker answers open calls, removes its socket, and exits 0 without a traceback."""
    worker = await start(
        "--grace-period", "3600", stdin=subprocess.PIPE, ADMISSION_WORKER_LISTEN=f"unix://{tmp_path}/w.sock"
    )
    async with grpc.aio.insecure_channel(await _listening(worker)) as channel:
        open_call = asyncio.create_task(Client(channel).review(policy_call("slow")))
        await worker.called()
        worker.process.send_signal(number)
        await worker.line("stopping")
        worker.process.stdin.write(b"go on\n")
        assert (await open_call).deny.message == "slow"
    code, log = await worker.end()
    assert code == 0
    assert "stopped" in log
    assert "Traceback" not in log
    assert not (tmp_path / "w.sock").exists()


async def test_a_second_signal_ends_it_at_once(start):
    """A second signal ends a worker without the grace period."""
    worker = await start("--listen", "127.0.0.1:0", "--grace-period", "3600", stdin=subprocess.PIPE)
    async with grpc.aio.insecure_channel(await _listening(worker)) as channel:
        open_call = asyncio.create_task(Client(channel).review(policy_call("slow")))
        await worker.called()
        worker.process.terminate()
        await worker.line("stopping")
        worker.process.terminate()
        with pytest.raises(grpc.aio.AioRpcError):
            await open_call
    code, log = await worker.end()
    assert code == 1
    assert "SIGTERM again: ending at once" in log


async def test_supervised_it_ends_with_its_standard_input(start):
    """A supervised worker stops when its standard input ends."""
    worker = await start("--listen", "unix:w.sock", stdin=subprocess.PIPE, ADMISSION_WORKER_SUPERVISED="1")
    await _listening(worker)
    assert worker.process.returncode is None
    worker.process.stdin.close()
    code, log = await worker.end()
    assert code == 0
    assert "standard input has ended" in log
    assert "Traceback" not in log


async def test_unsupervised_it_ignores_standard_input(start):
    """An unsupervised worker serves without a standard input."""
    worker = await start("--listen", "127.0.0.1:0")
    async with grpc.aio.insecure_channel(await _listening(worker)) as channel:
        assert (await Client(channel).review(policy_call("plain"))).deny.message == "no"
    assert worker.process.returncode is None


async def test_supervised_without_standard_input_it_ends(start):
    """A supervised worker with a closed standard input stops."""
    worker = await start("--listen", "unix:w.sock", ADMISSION_WORKER_SUPERVISED="1")
    assert (await worker.end())[0] == 0


async def test_a_killed_workers_socket_is_replaced(start):
    """A worker listens on the socket of a killed one."""
    first = await start("--listen", "unix:w.sock")
    await _listening(first)
    first.process.kill()
    await first.process.wait()
    second = await start("--listen", "unix:w.sock")
    assert await _listening(second) == "unix:w.sock"


async def test_an_address_in_use_is_one_line_and_exit_code_1(start):
    """An error names the component and the next step, without a traceback."""
    first = await start("--listen", "unix:w.sock")
    await _listening(first)
    second = await start("--listen", "unix:w.sock")
    code, log = await second.end()
    assert code == 1
    assert log.count("\n") == 1
    assert "cannot listen on unix:w.sock: another process listens there" in log
    assert first.process.returncode is None


@pytest.mark.parametrize(
    "arguments",
    [
        ["--listen", "nowhere"],
        ["--log-format", "xml"],
        ["--threads", "0"],
        ["--grace-period", "-1"],
        ["--unheard-of"],
        ["--tls-cert", "a.pem"],
        ["--tls-key", "a.pem"],
        ["--client-ca", "a.pem"],
        ["surplus"],
    ],
)
async def test_an_invalid_flag_is_exit_code_2(start, arguments):
    """An invalid flag is an error before the worker starts."""
    code, log = await (await start(*arguments)).end()
    assert code == 2
    assert log.startswith("Error: ")
    assert log.count("\n") == 1


async def test_an_invalid_environment_variable_is_exit_code_2(start):
    """An environment variable is checked like its flag."""
    code, log = await (await start(ADMISSION_WORKER_IN_FLIGHT="many")).end()
    assert code == 2
    assert "'--in-flight'" in log


async def test_a_certificate_that_cannot_be_used_is_exit_code_1(start):
    """An invalid certificate is an error of one line that names the file."""
    worker = await start("--listen", "unix:w.sock", "--tls-cert", "absent.crt", "--tls-key", "absent.key")
    code, log = await worker.end()
    assert code == 1
    assert log.count("\n") == 1
    assert "absent.crt cannot be read" in log


async def test_it_serves_tls(start, tmp_path):
    """A worker serves TLS with the certificate of its flags."""
    authority = Authority("ours")
    for name, content in zip(("tls.crt", "tls.key"), authority.issue("worker"), strict=True):
        (tmp_path / name).write_bytes(content)
    worker = await start("--listen", "localhost:0", "--tls-cert", "tls.crt", ADMISSION_WORKER_TLS_KEY="tls.key")
    credentials = grpc.ssl_channel_credentials(authority.pem)
    async with grpc.aio.secure_channel(await _listening(worker), credentials) as channel:
        assert (await Client(channel).review(policy_call("plain"))).deny.message == "no"


@pytest.mark.parametrize("how", [["--conformance"], {"ADMISSION_WORKER_CONFORMANCE": "1"}])
async def test_a_flag_adds_the_probe_policies(start, how):
    """With --conformance the log line of the start names the probe policies."""
    arguments, environment = (how, {}) if isinstance(how, list) else ([], how)
    worker = await start("--listen", "127.0.0.1:0", *arguments, **environment)
    await _listening(worker)
    assert "policies: plain, slow, stuck, exits, probe-answer, " in worker.log[0]


async def test_the_log_can_be_json(start):
    """Each line of the JSON log is one object, tracebacks included."""
    worker = await start("--listen", "127.0.0.1:0", "--log-format", "json")
    address = await _listening(worker)
    async with grpc.aio.insecure_channel(address) as channel:
        outcome = await Client(channel).review(policy_call("exits", uid="u-1"))
    assert "SystemExit" in outcome.failure.message
    worker.process.terminate()
    code, log = await worker.end()
    lines = [json.loads(line) for line in log.splitlines()]
    assert code == 0
    assert {"time", "level", "logger", "message"} <= set(lines[0])
    failed = next(line for line in lines if line["level"] == "error")
    assert failed["message"] == "policy exits raised (uid u-1)"
    assert (failed["policy"], failed["uid"]) == ("exits", "u-1")
    assert "SystemExit: 3" in failed["exception"]


async def test_a_blocked_thread_does_not_delay_the_end(start):
    """The process ends after its grace period even if a blocking policy still runs."""
    worker = await start("--listen", "127.0.0.1:0", "--grace-period", "0.1")
    async with grpc.aio.insecure_channel(await _listening(worker)) as channel:
        open_call = asyncio.create_task(Client(channel).review(policy_call("stuck")))
        await worker.called()
        worker.process.terminate()
        with pytest.raises(grpc.aio.AioRpcError):
            await open_call
    assert (await worker.end())[0] == 0


async def test_help_names_every_flag_and_its_environment_variable(start):
    """--help lists all flags."""
    worker = await start("--help")
    text = (await asyncio.wait_for(worker.process.stdout.read(), PATIENCE)).decode()
    for name in (
        "tls-cert",
        "tls-key",
        "client-ca",
        "conformance",
        "listen",
        "log-format",
        "in-flight",
        "message-bytes",
        "threads",
        "settings-kept",
        "grace-period",
    ):
        assert f"--{name}" in text
        assert f"ADMISSION_WORKER_{name.upper().replace('-', '_')}" in text
    assert (await worker.end())[0] == 0
