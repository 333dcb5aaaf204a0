"""Hooks behind the whole gateway: in its own process, and over gRPC by ``admission-gateway hook-worker``."""

import asyncio
import base64
import json
import os
import re
import signal
import subprocess
import urllib.request

import grpc
import pytest

from gateway.telemetry.traces.settings import trace_settings
from tests.caching.servers import free_port
from tests.hooks.scripts import RULES, answering, bash_hook, gone, needs_jq, pid_in, python_hook, until
from tests.integration.client import message, post
from tests.integration.process import COMMAND, WAIT_SECONDS, Lines
from tests.integration.running import configuration, policy, source
from tests.otlp_receiver import otlp_grpc
from tests.traffic import recording

pytestmark = pytest.mark.workers

POD = recording("pod-create.1v").body
CALL = "admission.worker.v1.Worker/Review"
VALIDATE = message(recording("pod-create.1v"))
MUTATE = message(recording("pod-create.0m"))

JUDGE, CHANGE = "judge.test.example.com", "change.test.example.com"
IDS = {"validating": "judge-test-example-com", "mutating": "change-test-example-com"}

PROPOSAL = answering({"allowed": False, "status": {"code": 403, "message": "pods are not welcome on a Sunday"}})
"""The original proposal's own form of a denial."""

PATCH = base64.b64encode(b'[{"op":"add","path":"/spec/schedulerName","value":"hook"}]').decode()


@pytest.fixture
def hook_worker(tmp_path):
    """Start ``hook-worker`` on a directory of hooks; gives the process, its log and the target."""
    started = []

    def start(hooks, *arguments, ready=True):
        target = f"unix:{tmp_path}/hooks.sock"
        process = subprocess.Popen(
            [COMMAND, "hook-worker", "--hooks-dir", hooks, "--listen", target, *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        process.log = Lines(process.stderr)
        process.target = target
        started.append(process)
        if ready:
            assert process.log.find(lambda line: "listens on" in line), process.log.all()
        return process

    yield start
    for process in started:
        process.kill()
        process.wait(WAIT_SECONDS)


def validating(workers, **fields):
    """A gateway's configuration with one validating policy."""
    about = policy("judge", worker="hooks", **fields)
    return source(workers=workers, validating=[about])


def of_worker(process, **fields):
    return configuration(validating({"hooks": process.target}, policy=IDS["validating"], **fields))


# ---------------------------------------------------------------------------------------------- in the gateway itself


def of_hook(directory, path, phase="validating", **fields):
    """A configuration whose worker is a hook."""
    about = policy("judge", worker="hooks", policy=JUDGE if phase == "validating" else CHANGE, **fields)
    text = source(workers={"hooks": "127.0.0.1:1"}, **{phase: [about]})
    return configuration(
        text.replace('"grpc": {\n   "target": "127.0.0.1:1"\n  }', f'"hook": {{"path": "{path}"}}'), directory
    )


async def test_the_original_proposals_denial_reaches_the_client(gateway, tmp_path):
    """403 with its message, unchanged."""
    bash_hook(tmp_path, PROPOSAL)
    async with gateway(of_hook(tmp_path, "hook.sh")) as served:
        response = (await served.send(VALIDATE)).response
    assert response["allowed"] is False
    assert (response["status"]["code"], response["status"]["message"]) == (403, "pods are not welcome on a Sunday")


async def test_a_mutating_hook_in_python_changes_the_object(gateway, tmp_path):
    """By its patch."""
    answer = {"allowed": True, "patch": PATCH, "warnings": ["scheduled"]}
    python_hook(tmp_path, f"json.dump({answer!r}, open(os.environ['ADMISSION_RESPONSE_PATH'], 'w'))")
    async with gateway(of_hook(tmp_path, "hook.py", "mutating")) as served:
        response = (await served.send(MUTATE)).response
    assert response["allowed"] is True
    assert response["warnings"] == ["scheduled"]
    (operation,) = json.loads(base64.b64decode(response["patch"]))
    assert (operation["path"], operation["value"]) == ("/spec/schedulerName", "hook")


@pytest.mark.parametrize("failure_policy", ["Fail", "Ignore"])
async def test_a_hook_that_fails_denies_whatever_the_failure_policy(gateway, tmp_path, failure_policy):
    """As behind shell-operator."""
    bash_hook(tmp_path, "exit 1")
    async with gateway(of_hook(tmp_path, "hook.sh", failurePolicy=failure_policy)) as served:
        response = (await served.send(VALIDATE)).response
        status = response["status"]
        assert (response["allowed"], status["code"], status["message"]) == (False, 403, "Hook failed")
        assert served.metric("worker_events_total", worker="hooks", event="hook_run") == 1
        assert served.metric("hook_processes", worker="hooks") == 0


async def test_a_hook_that_hangs_goes_to_the_failure_policy(gateway, tmp_path):
    """And is killed."""
    bash_hook(tmp_path, "echo $$ > own; sleep 1e6")
    # Long enough for bash to begin on a machine that stands still for a moment.
    async with gateway(of_hook(tmp_path, "hook.sh", timeoutSeconds=5, failurePolicy="Ignore")) as served:
        response = (await served.send(VALIDATE)).response
        assert response["allowed"] is True
        assert "WORKER_TIMEOUT" in response["warnings"][0]
        await gone(await pid_in(tmp_path / "own"))
        await until(lambda: served.metric("worker_events_total", worker="hooks", event="hook_killed") == 1)


async def test_a_closed_connection_stops_the_hook(gateway, tmp_path):
    """The answer is not needed."""
    bash_hook(tmp_path, "echo $$ > own; sleep 1e6")
    async with gateway(of_hook(tmp_path, "hook.sh", timeoutSeconds=30)) as served:
        client = await served.client()
        sent = asyncio.create_task(client.send(VALIDATE))
        pid = await pid_in(tmp_path / "own")
        sent.cancel()
        await asyncio.gather(sent, return_exceptions=True)
        await client.close()
        await gone(pid)


# -------------------------------------------------------------------------------------------------------- hook-worker


async def test_over_grpc_the_denial_is_the_same(gateway, hook_worker, tmp_path):
    """Code and message."""
    bash_hook(tmp_path / "hooks", PROPOSAL)
    async with gateway(of_worker(hook_worker(tmp_path / "hooks"))) as served:
        response = (await served.send(VALIDATE)).response
    assert response["allowed"] is False
    assert (response["status"]["code"], response["status"]["message"]) == (403, "pods are not welcome on a Sunday")


async def test_over_grpc_hooks_allow_warn_and_patch(gateway, hook_worker, tmp_path):
    """Each phase by its own policy."""
    bash_hook(tmp_path / "hooks", answering({"allowed": True, "patch": PATCH, "warnings": ["w"]}))
    process = hook_worker(tmp_path / "hooks")
    text = source(workers={"hooks": process.target}, mutating=[policy("judge", worker="hooks", policy=IDS["mutating"])])
    async with gateway(configuration(text)) as served:
        response = (await served.send(MUTATE)).response
    assert (response["allowed"], response["warnings"]) == (True, ["w"])
    assert json.loads(base64.b64decode(response["patch"]))[0]["value"] == "hook"


async def test_over_grpc_a_hook_that_fails_denies(gateway, hook_worker, tmp_path):
    """And its output is in the worker's log, with uid and binding."""
    bash_hook(tmp_path / "hooks", "echo oh no >&2; exit 1")
    process = hook_worker(tmp_path / "hooks")
    async with gateway(of_worker(process, failurePolicy="Ignore")) as served:
        answer = await served.send(VALIDATE)
    assert answer.response["status"]["message"] == "Hook failed"
    line = process.log.find(lambda line: "oh no" in line)
    assert JUDGE in line
    assert answer.response["uid"] in line
    assert "stream=stderr" in line


def admin(port, path):
    """A page of its admin listener."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=WAIT_SECONDS) as response:
        return response.read().decode()


async def test_over_grpc_runs_are_counted(gateway, hook_worker, tmp_path):
    """On an admin listener of its own, if there is one; an address in use prevents the start."""
    bash_hook(tmp_path / "hooks", "exit 1")
    port = free_port()
    process = hook_worker(tmp_path / "hooks", "--admin-listen", f"127.0.0.1:{port}")
    async with gateway(of_worker(process)) as served:
        await served.send(VALIDATE)
    text = await asyncio.to_thread(admin, port, "/metrics")
    for result, times in (("ended", 1.0), ("killed", 0.0), ("rejected", 0.0)):
        labels = f'hook="{tmp_path}/hooks/hook.sh",result="{result}"'
        assert f"admission_gateway_hook_worker_runs_total{{{labels}}} {times}\n" in text
    assert "\nprocess_open_fds " in text
    assert "snapshot_complete{" not in text
    assert await asyncio.to_thread(admin, port, "/readyz?verbose") == "[+]snapshots ok\nreadyz check passed\n"
    second = hook_worker(tmp_path / "hooks", "--admin-listen", f"127.0.0.1:{port}", ready=False)
    assert await asyncio.to_thread(second.wait, WAIT_SECONDS) == 2
    assert f"127.0.0.1:{port}" in "\n".join(second.log.all())


async def test_over_grpc_a_deadline_stops_the_hook(gateway, hook_worker, tmp_path):
    """Its process group in the worker."""
    bash_hook(tmp_path / "hooks", "echo $$ > own; sleep 1e6 & echo $! > child; wait")
    # Long enough for bash to begin on a machine that stands still for a moment.
    async with gateway(of_worker(hook_worker(tmp_path / "hooks"), timeoutSeconds=5)) as served:
        response = (await served.send(VALIDATE)).response
        assert "WORKER_TIMEOUT" in response["status"]["message"]
        for name in ("own", "child"):
            await gone(await pid_in(tmp_path / "hooks" / name))


async def test_its_version_is_the_hooks_content(gateway, hook_worker, tmp_path):
    """So the cache never mixes the verdicts of two hooks."""
    bash_hook(tmp_path / "hooks", "")
    async with gateway(of_worker(hook_worker(tmp_path / "hooks"))) as served:
        assert re.fullmatch("[0-9a-f]{16}", served.availability("judge"))


async def test_over_grpc_hooks_get_snapshots(gateway, hook_worker, tmp_path):
    """From documents."""
    config = {
        "configVersion": "v1",
        "kubernetes": [{"name": "all", "apiVersion": "v1", "kind": "ConfigMap"}],
        "kubernetesValidating": [{"name": JUDGE, "rules": RULES, "includeSnapshotsFrom": ["all"]}],
    }
    body = """
(context,) = json.load(open(os.environ["BINDING_CONTEXT_PATH"]))
names = [each["object"]["metadata"]["name"] for each in context["snapshots"]["all"]]
json.dump({"allowed": False, "message": names[0]}, open(os.environ["ADMISSION_RESPONSE_PATH"], "w"))
"""
    python_hook(tmp_path / "hooks", body, config=config)
    (tmp_path / "objects.yaml").write_text("{apiVersion: v1, kind: ConfigMap, metadata: {name: one}}")
    process = hook_worker(tmp_path / "hooks", "--objects", tmp_path / "objects.yaml")
    async with gateway(of_worker(process)) as served:
        assert (await served.send(VALIDATE)).response["status"]["message"] == "one"


async def test_the_gateway_can_start_it(gateway, tmp_path):
    """As the command of a worker."""
    bash_hook(tmp_path / "hooks", PROPOSAL)
    grpc = {"command": [str(COMMAND), "hook-worker", "--hooks-dir", str(tmp_path / "hooks")]}
    text = validating({"hooks": grpc}, policy=IDS["validating"])
    async with gateway(configuration(text, tmp_path)) as served:
        assert (await served.send(VALIDATE)).response["status"]["code"] == 403


async def test_the_worker_stops_when_a_hook_changes(hook_worker, tmp_path):
    """Its descriptions are outdated; a supervisor starts it again."""
    bash_hook(tmp_path / "hooks", "")
    process = hook_worker(tmp_path / "hooks")
    bash_hook(tmp_path / "hooks", "echo")
    assert await asyncio.to_thread(process.wait, WAIT_SECONDS) == 0
    why = f"hook {tmp_path}/hooks/hook.sh has changed; stopping, to be started again"
    assert any(why in line for line in process.log.all()), process.log.all()


async def test_the_worker_logs_what_it_ignores(hook_worker, tmp_path):
    """As ``serve`` and ``check`` do: files that may not be executed, bindings that are not run, and what rules for pods
    leave open. In its log, whose form is the worker's.
    """
    config = {
        "configVersion": "v1",
        "schedule": [{"name": "often", "crontab": "* * * * *"}],
        "kubernetesValidating": [{"name": JUDGE, "rules": RULES}],
    }
    bash_hook(tmp_path / "hooks", "", config=config)
    bash_hook(tmp_path / "hooks", "", name="idle.sh").chmod(0o644)
    process = hook_worker(tmp_path / "hooks", "--log-format", "json")
    lines = [json.loads(line) for line in process.log]
    warned = [line["message"] for line in lines if line["level"] == "warning"]
    assert len(warned) == 3, lines
    assert "idle.sh:1: is not executable" in warned[0]
    assert "hook.sh --config:1: schedule: " in warned[1]
    assert "pods/ephemeralcontainers" in warned[2]


@pytest.mark.parametrize("numbers", [[signal.SIGTERM], [signal.SIGHUP, signal.SIGHUP]], ids=str)
async def test_a_stopped_worker_leaves_no_process(gateway, hook_worker, tmp_path, numbers):
    """Calls open after the grace period are stopped, on SIGHUP too, of which a closed terminal may send several."""
    bash_hook(tmp_path / "hooks", "echo $$ > own; sleep 1e6")
    process = hook_worker(tmp_path / "hooks", "--grace-period", "0.2")
    async with gateway(of_worker(process, timeoutSeconds=30)) as served:
        sent = asyncio.create_task(served.send(VALIDATE))
        pid = await pid_in(tmp_path / "hooks" / "own")
        for number in numbers:
            process.send_signal(number)
        assert await asyncio.to_thread(process.wait, WAIT_SECONDS) == 0
        await gone(pid)
        assert (await sent).response["allowed"] is False


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ("{", "is neither YAML nor JSON"),
        (
            {
                "configVersion": "v1",
                "kubernetesValidating": [{"name": "a.b.c"}, {"name": "a-b.c.d"}, {"name": "a.b-c.d"}],
            },
            "would both be policy 'a-b-c-d'",
        ),
        (
            {"configVersion": "v1", "kubernetesValidating": [{"name": f"{'a' * 60}.b.c"}]},
            "cannot be served as policy",
        ),
    ],
)
async def test_hooks_that_cannot_be_served_prevent_the_start(hook_worker, tmp_path, config, why):
    """With exit code 1 and the reason."""
    bash_hook(tmp_path / "hooks", "", config=config)
    process = hook_worker(tmp_path / "hooks", ready=False)
    assert await asyncio.to_thread(process.wait, WAIT_SECONDS) == 1
    assert any(why in line for line in process.log.all()), process.log.all()


@pytest.mark.parametrize(
    "flags",
    [
        ["--hooks-dir", "/nonexistent"],
        [],
        ["--hooks-dir", "HOOKS", "--in-flight", "x"],
        ["--hooks-dir", "HOOKS", "--kubeconfig", "/nonexistent"],
        ["--hooks-dir", "HOOKS", "--cluster", "--objects", "HOOKS"],
    ],
    ids=str,
)
def test_wrong_usage_is_rejected(tmp_path, flags):
    """With exit code 2; a worker's own flags too."""
    bash_hook(tmp_path, "")
    flags = [str(tmp_path) if flag == "HOOKS" else flag for flag in flags]
    done = subprocess.run(
        [COMMAND, "hook-worker", *flags], capture_output=True, text=True, timeout=WAIT_SECONDS, check=False
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


# --------------------------------------------------------------------------------------------------------- shell-lib


@needs_jq
async def test_a_hook_that_sources_the_printed_library_is_served(gateway, tmp_path):
    """shell-operator's own example, with the library where ``shell-lib`` was reported to put it."""
    library = tmp_path / "shell_lib.sh"
    printed = await asyncio.to_thread(subprocess.run, [COMMAND, "shell-lib"], capture_output=True, check=True)
    library.write_bytes(printed.stdout)
    body = f"""source {library}
function __config__(){{
    cat <<EOF
configVersion: v1
kubernetesValidating:
- name: {JUDGE}
  rules:
  - {{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods], scope: Namespaced}}
EOF
}}
function __on_validating::{JUDGE}() {{
  image=$(context::jq -r '.review.request.object.spec.containers[0].image')
  cat <<EOF > $VALIDATING_RESPONSE_PATH
{{"allowed":false, "message":"$image is not allowed"}}
EOF
}}
hook::run $@
"""
    (tmp_path / "hook.sh").write_text(f"#!/usr/bin/env bash\n{body}")
    (tmp_path / "hook.sh").chmod(0o755)
    image = json.loads(VALIDATE[VALIDATE.index(b"\r\n\r\n") :])["request"]["object"]["spec"]["containers"][0]["image"]
    async with gateway(of_hook(tmp_path, "hook.sh")) as served:
        response = (await served.send(VALIDATE)).response
    assert response["status"]["message"] == f"{image} is not allowed"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_a_worker_stopped_during_a_description_leaves_no_process(hook_worker, tmp_path, number):
    """With exit code 0. (The hook is run twice: for its policies, and for its description.)"""
    hooks = tmp_path / "hooks"
    hook = bash_hook(hooks, "")
    text = hook.read_text().replace(
        "\n", "\nif [[ -e ../asked ]]; then echo $$ > ../own; exec sleep 1e6; fi; touch ../asked\n", 1
    )
    hook.write_text(text)
    process = hook_worker(hooks, ready=False)
    pid = await pid_in(tmp_path / "own")
    process.send_signal(number)
    assert process.wait(WAIT_SECONDS) == 0
    await gone(pid)


# ------------------------------------------------------------------------------------------------------- traces

SHOW_TRACE = """
answer = {"allowed": False, "message": os.environ["TRACEPARENT"] + " " + os.environ["TRACESTATE"]}
json.dump(answer, open(os.environ["ADMISSION_RESPONSE_PATH"], "w"))
"""
TRACE_HEADERS = (("traceparent", f"00-{'a' * 32}-{'b' * 16}-01"), ("tracestate", "a=1"))


async def test_a_hook_goes_on_with_the_span_of_its_call(gateway, tmp_path):
    """In the gateway's own process the call is the span."""
    path = python_hook(tmp_path, SHOW_TRACE)
    with otlp_grpc() as (url, received):
        traces = trace_settings({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_BSP_SCHEDULE_DELAY": "50"}, endpoint=url)
        async with gateway(of_hook(tmp_path, path.name), traces=traces) as served:
            answered = await served.send(post(POD, "/validate?timeout=30s", *TRACE_HEADERS))
            await until(lambda: received.named("run hook.py"))
    (call,) = received.named("run hook.py")
    assert answered.response["status"]["message"].endswith(f"00-{'a' * 32}-{call.span_id}-01 a=1")


async def test_a_hook_of_hook_worker_goes_on_with_the_workers_span(gateway, hook_worker, tmp_path, monkeypatch):
    """The hook's parent is the span of hook-worker, whose parent is the gateway's call."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
    python_hook(tmp_path / "hooks", SHOW_TRACE)
    with otlp_grpc() as (url, received):
        process = await asyncio.to_thread(hook_worker, tmp_path / "hooks", "--traces-endpoint", url)
        traces = trace_settings(os.environ, endpoint=url)
        async with gateway(of_worker(process), traces=traces) as served:
            answered = await served.send(post(POD, "/validate?timeout=30s", *TRACE_HEADERS))
            await until(lambda: received.named(f"admission.worker/{IDS['validating']}") and received.named(CALL))
    (call,), (worked,) = received.named(CALL), received.named(f"admission.worker/{IDS['validating']}")
    assert (worked.service, worked.parent_id) == ("admission-gateway-hook-worker", call.span_id)
    assert answered.response["status"]["message"].endswith(f"00-{'a' * 32}-{worked.span_id}-01 a=1")


async def test_lost_spans_of_hook_worker_are_counted(gateway, hook_worker, tmp_path, monkeypatch):
    """Its metrics have what became of its spans: first the collector refuses them."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
    python_hook(tmp_path / "hooks", SHOW_TRACE)
    port = free_port()
    flags = ("--admin-listen", f"127.0.0.1:{port}", "--traces-endpoint")

    def lines():
        """Those of its spans."""
        return re.findall(r"hook_worker_trace_spans_total\{.*", admin(port, "/metrics"))

    with otlp_grpc() as (url, received):
        received.refusal = grpc.StatusCode.PERMISSION_DENIED
        process = await asyncio.to_thread(hook_worker, tmp_path / "hooks", *flags, url)
        async with gateway(of_worker(process), traces=trace_settings(os.environ, endpoint=url)) as served:
            for refusal, result in ((received.refusal, "failed"), (None, "exported")):
                received.refusal = refusal
                await served.send(post(POD, "/validate?timeout=30s", *TRACE_HEADERS))
                counted = f'hook_worker_trace_spans_total{{result="{result}"}} 1.0'
                async with asyncio.timeout(WAIT_SECONDS):
                    while counted not in await asyncio.to_thread(lines):  # noqa: ASYNC110 - another process has it
                        await asyncio.sleep(0.01)


async def test_without_exporting_a_hook_gets_the_gateways_call(gateway, hook_worker, tmp_path):
    """hook-worker without --traces-endpoint passes on what it gets."""
    python_hook(tmp_path / "hooks", SHOW_TRACE)
    process = await asyncio.to_thread(hook_worker, tmp_path / "hooks")
    async with gateway(of_worker(process)) as served:
        answered = await served.send(post(POD, "/validate?timeout=30s", *TRACE_HEADERS))
    assert answered.response["status"]["message"].endswith(f"{TRACE_HEADERS[0][1]} a=1")
