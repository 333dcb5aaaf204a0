"""Hot reload of a real gateway with real files and a real worker process: whole or not at all, and nothing lost."""

import asyncio
import base64
import json
import re
import signal
from collections import Counter
from pathlib import Path

import pytest

from tests.integration.client import AsyncClient, Client, post
from tests.integration.running import policy, source, until
from tests.traffic import recording

REPORTER = Path(__file__).parent / "reporter.py"
MUTATING = recording("pod-create.0m").body
VALIDATING = recording("pod-create.1v").body
REPORT = "test/report.test.example.com"

QUICK = ("--reload-interval", 0.02, "--worker-startup-timeout", 30)


def worker(name="reporter", **grpc):
    return {"command": ["python", str(REPORTER), name]} | grpc


def configured(word, *, grpc=None, mutating=(), **fields):
    """A policy file: the policy ``report`` with this word in its settings, and mutating policies with the same."""
    common = {"worker": "reporter", "settings": {"word": word}, "timeoutSeconds": 28}
    return source(
        workers={"reporter": grpc or worker()},
        mutating=[policy(name, **common) for name in mutating],
        validating=[policy("report", **(common | fields))],
    )


class ConfigMap:
    """A directory as the kubelet mounts a ConfigMap: links into ``..data``, a link itself that is swapped."""

    def __init__(self, folder):
        self.path = folder / "mounted"
        self.path.mkdir()
        self._versions = 0

    def put(self, **files):
        """Another version of the ConfigMap, all at once."""
        self._versions += 1
        version = self.path / f"..{self._versions}"
        version.mkdir()
        for name, text in files.items():
            (version / f"{name}.yaml").write_text(text)
        (self.path / "..data_tmp").symlink_to(version.name)
        (self.path / "..data_tmp").rename(self.path / "..data")
        for name in files:
            if not (self.path / f"{name}.yaml").is_symlink():
                (self.path / f"{name}.yaml").symlink_to(f"..data/{name}.yaml")
        for link in self.path.glob("*.yaml"):
            if not link.exists():
                link.unlink()


def replace(path, text):
    """A new file in the place of the old one."""
    path.with_suffix(".new").write_text(text)
    path.with_suffix(".new").rename(path)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "policies.yaml"


@pytest.fixture
def started(serve, path):
    """Serve the file ``path`` with this text."""

    def start(text, *flags):
        path.write_text(text)
        return serve("--policies", path, *QUICK, *flags).ready()

    return start


def reported(process, trust):
    """What the validating policy reports: word, name, pid."""
    with Client(process.port, trust) as client:
        answered = client.send(post(VALIDATING, "/validate?timeout=30s"))
    assert answered.response["allowed"], answered
    annotations = answered.response["auditAnnotations"]
    return tuple(annotations[f"report.test.example.com_{key}"] for key in ("word", "name", "pid"))


async def reloaded(process, result="loaded", times=1):
    """Wait until so many reloads have come to this result."""
    await until(lambda: process.metric("configuration_reloads_total", result=result) >= times)


# -------------------------------------------------------------------------------------------------- good ones


async def test_a_swapped_config_map_is_taken_over(serve, tmp_path, trust):
    """A mounted ConfigMap that changes is served as it is now, by the worker process that was there before."""
    mounted = ConfigMap(tmp_path)
    mounted.put(policies=configured("one"))
    process = serve("--policies", mounted.path, *QUICK).ready()
    word, _, pid = reported(process, trust)
    loaded = process.metric("configuration_loaded_timestamp_seconds")
    mounted.put(policies=configured("two"))
    await reloaded(process)
    assert (word, reported(process, trust)) == ("one", ("two", "reporter", pid))
    assert process.children() == [int(pid)]
    assert process.metric("configuration_loaded_timestamp_seconds") > loaded
    assert process.metric("configuration_last_reload_successful") == 1
    assert process.admin("/readyz?verbose").startswith("[+]configuration ok\n")
    assert process.internal_errors() == []


async def test_files_that_come_and_go_are_one_configuration(serve, tmp_path, trust):
    """Files of a directory are taken over together: a policy moves from one to another and is never away."""
    mounted = ConfigMap(tmp_path)
    mounted.put(policies=configured("one"))
    process = serve("--policies", mounted.path, *QUICK).ready()
    settings = {"worker": "reporter", "settings": {"word": "two"}}
    mounted.put(
        workers=source(workers={"reporter": worker()}),
        validating=source(workers={}, validating=[policy("report", **settings)]),
    )
    await reloaded(process)
    assert reported(process, trust)[0] == "two"
    # Who looks between the swap and the links' change finds a link that leads nowhere, and takes nothing over.
    assert [
        each for each in process.internal_errors() if "policies.yaml: cannot be read: No such file" not in each
    ] == []


async def test_sighup_reads_at_once(started, path, trust):
    """SIGHUP reloads without a watch; if nothing has changed, it reports that and changes nothing."""
    process = started(configured("one"), "--reload-interval", 0)
    process.process.send_signal(signal.SIGHUP)
    await reloaded(process, "unchanged")
    replace(path, configured("two"))
    process.process.send_signal(signal.SIGHUP)
    await reloaded(process)
    assert reported(process, trust)[0] == "two"


async def test_a_changed_worker_follows_the_one_before(started, path, trust):
    """A Worker that changes is started beside the one before, which is stopped when the new one has taken over."""
    process = started(configured("one", grpc=worker("old")))
    _, name, before = reported(process, trust)
    replace(path, configured("one", grpc=worker("new")))
    await reloaded(process)
    assert (name, reported(process, trust)[1]) == ("old", "new")
    await until(lambda: int(before) not in process.children())
    assert process.children() == [int(reported(process, trust)[2])]


async def test_a_removed_worker_is_stopped(started, path, trust):
    """A Worker that no policy names any more is stopped; the others are not disturbed."""
    two = source(
        workers={"reporter": worker(), "other": worker("other")},
        validating=[policy("report", worker="reporter"), policy("report-too", worker="other", policy="report")],
    )
    process = started(two)
    assert len(process.children()) == 2
    replace(path, configured("one"))
    await reloaded(process)
    await until(lambda: process.children() == [int(reported(process, trust)[2])])
    process.logged("a worker is closed: no configuration names it", worker="other")


async def test_series_of_removed_policies_and_entries_go(started, path):
    """The metrics of a policy come and go with it, those of an entry stay while it may be called; what stays goes on
    counting.
    """
    process = started(configured("one", mutating=("mark",)))
    mark = {"phase": "mutating", "policy": "test/mark.test.example.com"}
    entry = re.search(
        r'entry_reviews_total\{entry="([^"]*)",outcome="allowed",phase="mutating"\}', process.admin("/metrics")
    )[1]
    assert process.metric("policy_verdicts_total", **mark, verdict="allow") == 0
    replace(path, configured("one"))
    await reloaded(process)
    await until(lambda: "test/mark.test.example.com" not in process.admin("/metrics"))
    assert f'outdated_entry_reviews_total{{entry="{entry}"' in process.admin("/metrics")
    replace(path, configured("one", mutating=("mark",)))
    await reloaded(process, times=2)
    assert process.metric("policy_verdicts_total", **mark, verdict="allow") == 0
    assert process.metric("policy_verdicts_total", phase="validating", policy=REPORT, verdict="allow") == 0


async def test_entries_come_and_go(started, path, trust):
    """An entry's path is there as soon as its configuration is; while it may be called, it is judged by the policies
    that are left.
    """
    process = started(configured("one"))
    paths = {name: f"/mutate/{name}.test.example.com?timeout=10s" for name in ("mark",)}

    def answered():
        with Client(process.port, trust) as client:
            return client.send(post(MUTATING, paths["mark"]))

    assert answered().status == 404
    alone = source(
        workers={"reporter": worker()},
        mutating=[policy("mark", worker="reporter", isolate=True)],
        validating=[policy("report", worker="reporter", settings={"word": "one"})],
    )
    replace(path, alone)
    await reloaded(process)
    assert "patch" in answered().response
    replace(path, configured("one"))
    await reloaded(process, times=2)
    assert answered().response["allowed"]
    assert "patch" not in answered().response


# --------------------------------------------------------------------------------------------------- bad ones


ERRORS = {
    "no YAML": ("a: [\n", "cannot be read as YAML"),
    "an empty file": ("", "the file is empty"),
    "an unknown kind": ("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n", "no matches for kind"),
    "an error in a policy": (configured("two", timeoutSeconds=99), "policies[0].timeoutSeconds: Invalid value"),
    "a worker that is missing": (source(workers={}, validating=[policy("report", worker="reporter")]), "worker"),
}


@pytest.mark.parametrize("name", ERRORS)
async def test_the_last_good_configuration_stays(started, path, trust, name):
    """A bad configuration is reported once in the log, the metrics and on /readyz; the gateway stays ready and judges
    as before. When it is put right, all that ends.
    """
    text, why = ERRORS[name]
    process = started(configured("one"))
    before = reported(process, trust)
    replace(path, text)
    await reloaded(process, "invalid")
    assert reported(process, trust) == before
    assert process.admin("/readyz") == "ok\n"
    (line,) = [line for line in process.admin("/readyz?verbose").splitlines() if "configuration" in line]
    assert re.match(
        r"\[\+\]configuration ok: the last good configuration, of \d{4}-\d\d-\d\dT[\d:]+Z, is served, because ", line
    )
    assert why in line
    assert process.metric("configuration_last_reload_successful") == 0
    assert process.metric("configuration_errors") == 1
    replace(path, configured("good again"))
    await reloaded(process)
    assert reported(process, trust) == ("good again", *before[1:])
    assert process.metric("configuration_last_reload_successful") == 1
    assert process.metric("configuration_errors") == 0
    assert process.admin("/readyz?verbose").startswith("[+]configuration ok\n")
    assert process.children() == [int(before[2])]
    process.logged("a new configuration is in force")
    told_of = [
        f"{line['place']}: {line['error']}"
        for line in process.log()
        if line["message"] == "an error in the new configuration"
    ]
    assert [why in text for text in told_of].count(True) == 1, told_of


async def test_all_errors_are_reported(started, path):
    """Each error of a configuration that is not loaded is a log line of its own, with its place."""
    process = started(configured("one"))
    replace(path, configured("two", timeoutSeconds=99, failurePolicy="Perhaps"))
    process.logged("the new configuration is not loaded; the last good one stays", errors=2)
    places = {entry["place"] for entry in process.log() if entry["message"] == "an error in the new configuration"}
    assert {place.rpartition(" ")[2] for place in places} == {"policies[0].timeoutSeconds", "policies[0].failurePolicy"}
    assert process.metric("configuration_errors") == 2


async def test_a_source_that_is_gone(started, path, trust):
    """A file that cannot be read any more changes nothing, and is taken up when it is back, as it was or not."""
    process = started(configured("one"))
    path.rename(path.with_suffix(".away"))
    await reloaded(process, "unreadable")
    assert "cannot be read: No such file" in process.admin("/readyz?verbose")
    path.with_suffix(".away").rename(path)
    await reloaded(process, "unchanged")
    assert process.admin("/readyz?verbose").startswith("[+]configuration ok\n")
    assert reported(process, trust)[0] == "one"


# --------------------------------------------------------------------------------------------------- under load


CONNECTIONS = 8
RELOADS = 20


class Traffic:
    """Reviews on kept connections. Each must be answered by one configuration, never an older one than the last."""

    def __init__(self):
        self.words = Counter()
        self.names = set()
        self.ending = False

    async def run(self, port, context):
        client = await AsyncClient.connect(port, context)
        newest = 0
        try:
            while not self.ending:
                newest = self._marks((await client.send(post(MUTATING, "/mutate?timeout=30s"))).response, newest)
                newest = self._tells((await client.send(post(VALIDATING, "/validate?timeout=30s"))).response, newest)
        finally:
            await client.close()

    def _marks(self, response, newest):
        operations = json.loads(base64.b64decode(response["patch"]))
        labels = {operation["path"].rpartition("/")[2]: operation["value"] for operation in operations}
        word, _, name = labels["mark-too"].partition(".")
        assert labels["mark"] == word, "two configurations in one review"
        return self._seen(word, name, newest)

    def _tells(self, response, newest):
        annotations = response["auditAnnotations"]
        return self._seen(
            annotations["report.test.example.com_word"], annotations["report.test.example.com_name"], newest
        )

    def _seen(self, word, name, newest):
        assert int(word) >= newest, "a configuration that was followed by another already"
        assert name == _name(int(word)), "a worker of another configuration"
        self.words[word] += 1
        self.names.add(name)
        return int(word)


def _name(number):
    """Every fifth configuration has another worker."""
    return f"w{number // 5}"


def _text(number):
    return configured(str(number), grpc=worker(_name(number)), mutating=("mark", "mark-too"))


def descriptors(process):
    return len(list(Path(f"/proc/{process.process.pid}/fd").iterdir()))


def is_alive(pid):
    return Path(f"/proc/{pid}").exists()


async def test_no_review_is_lost_while_the_configuration_changes(started, path, trust):
    """Twenty reloads under load, four of them with another worker: every review is answered, whole, by one
    configuration, and no process and no file descriptor is left over.
    """
    process = started(_text(0))
    reported(process, trust)
    traffic = Traffic()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(traffic.run(process.port, trust)) for _ in range(CONNECTIONS)]
        for number in range(RELOADS + 1):
            if number:
                replace(path, _text(number))
            await until(lambda number=number: traffic.words[str(number)] > CONNECTIONS or any(t.done() for t in tasks))
        traffic.ending = True
    assert set(traffic.words) == {str(number) for number in range(RELOADS + 1)}
    assert traffic.names == {_name(number) for number in range(RELOADS + 1)}
    await until(lambda: len(process.children()) == 1)
    assert process.metric("configuration_reloads_total", result="loaded") == RELOADS
    await until(lambda: process.metric("connections") == 0)
    for outcome in ("denied", "failed"):
        assert process.metric("reviews_total", phase="mutating", outcome=outcome) == 0
        assert process.metric("reviews_total", phase="validating", outcome=outcome) == 0
    assert process.internal_errors() == []


async def test_reloads_leave_no_file_open(started, path, trust):
    """After any number of changes of a worker, the gateway has as many files open as after the first."""
    process = started(configured("0", grpc=worker("w0")))
    counts = []
    for number in range(1, 9):
        replace(path, configured(str(number), grpc=worker(f"w{number}")))
        await reloaded(process, times=number)
        assert reported(process, trust)[1] == f"w{number}"
        await until(lambda: len(process.children()) == 1)
        counts.append(descriptors(process))
    await until(lambda: descriptors(process) <= counts[1])
    process.terminate()
    children = process.children()
    assert process.exit_code() == 0
    assert not [pid for pid in children if is_alive(pid)]
