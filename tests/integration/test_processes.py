"""`serve --processes`: one gateway of several processes, as its clients, its operator and Prometheus see it."""

import asyncio
import json
import os
import signal
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path

import pytest

from tests.integration.client import AsyncClient, post
from tests.integration.process import WAIT_SECONDS, children, runs
from tests.integration.running import policy, source, until
from tests.traffic import recording

pytestmark = pytest.mark.integration

REPORTER = Path(__file__).parent / "reporter.py"
BODY = recording("pod-create.1v").body
REVIEW = post(BODY, "/validate?timeout=10s")
CACHED = "test/cached.test.example.com"
CONFIGMAPS = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
NO_CALLS = source(
    workers={"none": "127.0.0.1:1"},
    validating=[policy("cached", worker="none", cache={"ttl": "1m"}, rules=[CONFIGMAPS])],
)
"""A configuration that calls no worker for BODY."""


def arguments(folder, text=NO_CALLS, *more, processes=2):
    path = folder / "policies.yaml"
    path.write_text(text)
    fixed = ("--log-format", "json", "--worker-startup-timeout", "0", "--reload-interval", "0")
    return ("--policies", path, "--processes", processes, *fixed, *more)


@pytest.fixture
def pod(serve, tmp_path):
    """Start a gateway of two processes: ``pod(text, *arguments)``."""

    def start(*given, env=None, **options):
        return serve(*arguments(tmp_path, *given, **options), env=env)

    return start


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the configuration of ``served`` is."""
    return tmp_path_factory.mktemp("policies")


@pytest.fixture(scope="module")
def served(serving, folder):
    """A gateway of two processes that several tests use: each leaves it with two that serve."""
    return serving(*arguments(folder)).ready()


@pytest.fixture
async def connect(trust):
    """Open connections, each of which has an answer: ``await connect(served, 5)``; closed at the end."""
    opened = []

    async def one(served):
        client = await AsyncClient.connect(served.port, trust)
        opened.append(client)
        assert (await client.send(REVIEW)).response["allowed"]
        return client

    async def several(served, number):
        return [await one(served) for _ in range(number)]

    yield several
    for client in opened:
        await client.close()


async def reviews(served):
    """Reviews that /metrics counts as allowed."""
    return await asyncio.to_thread(served.metric, "reviews_total", phase="validating", outcome="allowed")


def sockets(pid):
    """How many TCP connections to clients a process has: established sockets among its open files."""
    established = {
        line.split()[9]
        for name in ("tcp", "tcp6")
        for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]
        if line.split()[3] == "01"
    }
    links = (str(each.readlink()) for each in Path(f"/proc/{pid}/fd").iterdir())
    return len([link for link in links if link.startswith("socket:[") and link[8:-1] in established])


def process(served, number):
    """The process id of one of the processes."""
    for pid in children(served.process.pid):
        environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        if any(each.startswith(f"_ADMISSION_GATEWAY_PROCESS={number}:".encode()) for each in environment):
            return pid
    return None


async def killed(served, number):
    """Kill a process, and wait until another one serves in its place."""
    pid, restarts = process(served, number), served.metric("process_restarts_total")
    os.kill(pid, signal.SIGKILL)
    await asyncio.to_thread(served.logged, "a process has ended and is started again", pid=pid, how="by SIGKILL")
    await until(lambda: served.metric("process_restarts_total") == restarts + 1)
    await until(lambda: served.metric("processes_serving") == 2)


class Load:
    """Clients that send one review after another, each on a connection of its own, and note what becomes of them."""

    def __init__(self, served, trust):
        self.served, self.trust = served, trust
        self.outcomes = Counter()
        self.broken = []
        self._ends = asyncio.Event()
        self._tasks = []

    async def _send(self, number):
        client = None
        while not self._ends.is_set():
            try:
                client = client or await AsyncClient.connect(self.served.port, self.trust)
                answer = await client.send(REVIEW)
            except (OSError, asyncio.IncompleteReadError):
                self.broken.append(number)
                client = None
                continue
            self.outcomes[answer.response["allowed"]] += 1
            if answer.headers.get("connection") == "close":
                # As when no endpoint leads here any more.
                break
        if client is not None:
            await client.close()

    async def start(self, clients):
        self._tasks = [asyncio.create_task(self._send(number)) for number in range(clients)]
        await self.more(clients)

    async def more(self, reviews):
        """Wait for so many more answers."""
        enough = self.outcomes.total() + reviews
        await until(lambda: self.outcomes.total() >= enough or any(task.done() for task in self._tasks))

    async def left(self):
        """Wait until each client has had a last reply on its connection."""
        async with asyncio.timeout(WAIT_SECONDS):
            await asyncio.gather(*self._tasks)

    async def end(self):
        self._ends.set()
        await self.left()


async def test_connections_are_spread_evenly_and_reviews_add_up(served, connect):
    """Each process gets as many connections, and /metrics counts the reviews of all."""
    before = await reviews(served)
    clients = await connect(served, 10)
    assert [sockets(pid) for pid in children(served.process.pid)] == [5, 5]
    for client in clients:
        await client.send(REVIEW)
    assert await reviews(served) == before + 20
    assert await asyncio.to_thread(served.metric, "connections") == 10
    assert await asyncio.to_thread(served.metric, "processes_serving") == 2


async def test_a_killed_process_costs_its_clients_one_request_each(served, trust):
    """A client of a process that is killed sees its connection end, and no other client notices; it runs again."""
    load = Load(served, trust)
    await load.start(8)
    before, own = await reviews(served), sockets(process(served, 2))
    await killed(served, 2)
    await load.more(50)
    await load.end()
    assert await reviews(served) > before
    assert set(load.outcomes) == {True}
    assert 0 < own < 8
    assert len(load.broken) == len(set(load.broken)) == own
    assert served.page("/readyz")[0] == 200


async def test_counters_keep_what_a_killed_process_has_counted(served, connect):
    """The sum equals the reviews that were sent, after a process was killed, and after it counts again."""
    before = await reviews(served)
    await connect(served, 6)
    assert await reviews(served) == before + 6
    await killed(served, 1)
    assert await reviews(served) == before + 6
    await connect(served, 6)
    assert await reviews(served) == before + 12
    counted = await asyncio.to_thread(served.metric, "review_duration_seconds_count", phase="validating")
    assert counted == before + 12


async def test_a_drain_under_load_loses_nothing(pod, trust):
    """On SIGTERM all processes answer what they are sent, end each connection with a reply, and exit with 0."""
    served = pod(NO_CALLS, "--drain", "60").ready()
    load = Load(served, trust)
    await load.start(8)
    served.terminate()
    await load.left()
    assert set(load.outcomes) == {True}
    assert load.broken == []
    assert await asyncio.to_thread(served.exit_code) == 0
    assert {entry["process"] for entry in served.log()} >= {1, 2}
    assert served.internal_errors() == []


async def test_a_reload_reaches_all(served, folder):
    """SIGHUP loads changed files in every process."""
    before = await asyncio.to_thread(served.metric, "configuration_reloads_total", result="loaded")
    (folder / "policies.yaml").write_text(NO_CALLS.replace('"1m"', '"2m"'))
    served.process.send_signal(signal.SIGHUP)
    await until(lambda: served.metric("configuration_reloads_total", result="loaded") == before + 2)


async def test_a_killed_parent_leaves_no_process(pod, connect):
    """Processes without their parent answer what is in flight, and exit."""
    served = pod().ready()
    await connect(served, 2)
    pids = children(served.process.pid)
    assert len(pids) == 2
    served.process.kill()
    await asyncio.to_thread(served.exit_code)
    await until(lambda: not any(map(runs, pids)))


def test_an_error_at_the_start_is_reported_once(pod):
    """An invalid configuration ends the start with its exit code, and no second process repeats its errors."""
    served = pod("kind: Nothing\n", processes=3)
    assert served.exit_code() == 1
    errors = [line for line in served.err.all() if line.startswith("error: ")]
    assert len(errors) == len(set(errors)) == 2
    assert served.out.all() == []


def test_an_address_in_use_ends_the_start(pod, served):
    """The parent reports an address that it cannot use, and ends its first process."""
    second = pod(env={"ADMISSION_GATEWAY_LISTEN": f"127.0.0.1:{served.port}"})
    assert second.exit_code() == 2
    assert [line for line in second.err.all() if line.startswith("error: cannot listen")]


def test_readyz_names_the_process(served):
    """A process that hangs makes the gateway unready and not alive, by its number."""
    status, text = served.page("/readyz?verbose")
    assert (status, text.splitlines()[:2]) == (200, ["[+]processes ok", "[+]configuration ok"])
    hung = process(served, 2)
    os.kill(hung, signal.SIGSTOP)
    try:
        status, text = served.page("/readyz")
        assert status == 503
        assert "process 2" in text
        assert "no answer within" in text
        # By its heartbeats: it is not asked, and has 10 seconds.
        assert served.page("/livez") == (200, "ok\n")
    finally:
        os.kill(hung, signal.SIGCONT)
    assert served.page("/readyz")[0] == 200


async def test_connections_to_a_hanging_process_go_to_others(served, connect):
    """A process that takes no connections gets one of them, and when it ends another one answers on it."""
    os.kill(process(served, 1), signal.SIGSTOP)
    clients = []
    for number in range(6):
        clients.append(asyncio.create_task(connect(served, 1)))
        await until(lambda: sum(task.done() for task in clients) >= number)  # noqa: B023 - used at once
    await killed(served, 1)


async def test_workers_are_started_once_where_they_have_a_target(pod, connect, tmp_path):
    """A worker with a command has one process for each of the gateway's; with a target, one for all."""
    command = ["python", str(REPORTER), "reporter"]
    for grpc, expected in (({}, 2), ({"target": f"unix:{tmp_path}/worker.sock"}, 1)):
        text = source(
            workers={"reporter": {"command": command} | grpc},
            validating=[policy("report", worker="reporter", settings={"word": "a"}, timeoutSeconds=9)],
        )
        served = pod(text, "--worker-startup-timeout", WAIT_SECONDS, "--drain", "0").ready()
        await connect(served, 4)
        started = [entry["process"] for entry in served.log() if entry["message"] == "a worker is started"]
        assert sorted(started) == list(range(1, expected + 1))
        served.terminate()
        assert await asyncio.to_thread(served.exit_code) == 0


def test_purge_reaches_all(served):
    """A purge is that of all processes; what none knows is what one process answers."""
    assert purge(served, CACHED) == (200, {"purged": [CACHED], "replicasNotified": None})
    for number in (1, 2):
        served.logged("the cache was purged", process=number)
    assert purge(served, "other")[0] == 404


def purge(served, name):
    """Status and content of the answer to a purge."""
    address = f"http://127.0.0.1:{served.admin_port}/purge?policy={name}"
    request = urllib.request.Request(address, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=WAIT_SECONDS) as response:  # noqa: S310 - the same
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


async def test_explain_finds_what_any_process_has_judged(served, trust, connect):
    """The two calls of one request may come to two processes; an explanation of one has both."""
    first, second = await connect(served, 2)
    mutating, validating = (json.loads(recording(name).body) for name in ("pod-create.0m", "pod-create.1v"))
    for each in (mutating, validating):
        each["request"]["name"] = "explained"
    uid = validating["request"]["uid"] = "1b4b3a2c-0000-4000-8000-00000000c0de"
    await first.send(post(json.dumps(mutating).encode(), "/mutate?timeout=10s"))
    await second.send(post(json.dumps(validating).encode(), "/validate?timeout=10s"))
    status, text = await asyncio.to_thread(served.page, f"/explain/{uid}")
    assert status == 200, text
    found = json.loads(text)
    assert [each["uid"] for each in found["decisions"]] == [uid]
    assert [each["phase"] for each in found["related"]] == ["mutating"]
    status, text = await asyncio.to_thread(served.page, "/explain/unknown")
    assert status == 404
    assert "no decision of review" in text


def test_a_page_of_one_process(served):
    """Below /process/N are the pages of process N; the dashboard is of all processes."""
    assert "admission_gateway_reviews_total" in served.admin("/process/2/metrics")
    assert "processes_serving" not in served.admin("/process/2/metrics")
    with urllib.request.urlopen(f"http://127.0.0.1:{served.admin_port}/ui", timeout=WAIT_SECONDS) as response:
        assert response.url.endswith("/ui/")
        assert b"<html" in response.read()
    alone, together = (json.loads(served.admin(f"{path}/ui/api/policies"))["policies"] for path in ("/process/1", ""))
    assert [each["name"] for each in alone] == [each["name"] for each in together] != []
    assert served.page("/process/3/metrics")[0] == 503
    status, text = served.page("/nothing")
    assert status == 404
    assert "there are /livez, /readyz, /metrics, /purge, /explain/, /ui/, /process/N/" in text
    assert served.page("/findings")[0] == 404


def test_the_live_stream_of_a_process(served):
    """Its events come as they are made, until the browser leaves."""
    address = f"http://127.0.0.1:{served.admin_port}/process/2/ui/api/live"
    for _ in range(10):
        with urllib.request.urlopen(address, timeout=WAIT_SECONDS) as response:
            lines = [response.readline() for _ in range(3)]
        assert lines[0] == b"event: state\n"
