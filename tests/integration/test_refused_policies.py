"""A policy that its worker refuses, in a real gateway with a real worker: its last good version, or a failure."""

from pathlib import Path

import pytest

from tests.integration.client import Client, post
from tests.integration.running import policy, source, until
from tests.integration.test_reload import QUICK, VALIDATING, configured, reloaded, replace, reported, worker

REPORTER = Path(__file__).parent / "reporter.py"
REPORT = "test/report.test.example.com"

REFUSED = {
    "unknown_policy": (
        configured("two", policy="repor"),
        (
            'worker \'reporter\' holds no policy \'repor\'; did you mean "report"? it holds: "mark", "mark-too", '
            '"report", "report-labels"'
        ),
    ),
    "settings": (configured("odd"), "worker 'reporter' refuses the settings: settings/word: is odd"),
    "claims": (
        configured("two", policy="report-labels", inputs=["/object/spec"]),
        "it claims inputs for policy 'report-labels' that are not granted: /object/metadata/labels",
    ),
    "description": (
        configured("two", policy="mark"),
        "policy 'mark' of worker 'reporter' cannot be used for validating",
    ),
    "undescribed": (
        configured("two", grpc={"command": ["/nonexistent/worker"]}),
        "worker 'reporter' does not run; its command cannot be started: No such file or directory: /nonexistent/worker",
    ),
}


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


def listed(process):
    """What /readyz?verbose says of policies that are not in force as they are configured. It is ready all the same."""
    assert process.admin("/readyz") == "ok\n"
    return [line for line in process.admin("/readyz?verbose").splitlines() if line.startswith("[!]")]


def degraded(process, reason, effect):
    return process.metric("degraded_policies", reason=reason, effect=effect)


def logged(process, message):
    return [line for line in process.log() if line["message"] == message and line["policy"] == REPORT]


@pytest.mark.parametrize("reason", REFUSED)
async def test_a_refused_policy_keeps_its_last_good_version(started, path, trust, reason):
    """It is called as it was, by the process that it was called of, while a policy beside it changes; it is listed with
    its reason, counted, and logged once. When it is put right, all that ends.
    """
    text, why = REFUSED[reason]
    process = started(configured("one"), "--worker-startup-timeout", 3)
    before = reported(process, trust)
    assert listed(process) == []
    assert degraded(process, reason, "last_good") == 0
    replace(path, text)
    await reloaded(process)
    assert reported(process, trust) == before
    (line,) = listed(process)
    assert line.startswith(f"[!]validating policy {REPORT} runs in its last good version ({reason}): ")
    assert why in line
    assert "[+]configuration ok\n" in process.admin("/readyz?verbose")
    assert (degraded(process, reason, "last_good"), degraded(process, reason, "failure")) == (1, 0)
    assert process.metric("configuration_last_reload_successful") == 1
    replace(path, configured("good again"))
    await reloaded(process, times=2)
    assert reported(process, trust) == ("good again", *before[1:])
    assert (listed(process), degraded(process, reason, "last_good")) == ([], 0)
    await until(lambda: process.children() == [int(before[2])])
    process.logged("a policy is in force as it is configured, again or at last", policy=REPORT)
    (begun,) = logged(process, "a policy is not in force as it is configured")
    assert (begun["reason"], begun["effect"]) == (reason, "last_good")
    assert why in begun["why"]


async def test_the_rest_of_the_configuration_is_taken_over(started, path, trust):
    """Beside a refused policy, another one changes and a third is new."""
    process = started(configured("one", mutating=("mark",)))
    replace(path, configured("two", policy="nobody", mutating=("mark", "mark-too")))
    await reloaded(process)
    assert reported(process, trust)[0] == "one"
    process.logged("a policy can be called", policy="test/mark-too.test.example.com")
    new = {"phase": "mutating", "policy": "test/mark-too.test.example.com"}
    assert process.metric("policy_verdicts_total", **new, verdict="allow") == 0
    assert len(listed(process)) == 1


@pytest.mark.parametrize("reason", ["unknown_policy", "settings", "claims", "description"])
async def test_at_a_start_a_refused_policy_fails(started, trust, reason):
    """There is no last good version: it fails as CONFIGURATION, under its failurePolicy, and is listed."""
    text, why = REFUSED[reason]
    process = started(text)
    (line,) = listed(process)
    assert line.startswith(f"[!]validating policy {REPORT} fails ({reason}): ")
    assert why in line
    assert degraded(process, reason, "failure") == 1
    assert len(logged(process, "a policy is not in force as it is configured")) == 1
    status = _refusal(process, trust)
    assert status["code"] == 500
    assert "CONFIGURATION" in status["message"]


def _refusal(process, trust):
    """The Status with which the validating policy refuses."""
    with Client(process.port, trust) as client:
        return client.send(post(VALIDATING, "/validate?timeout=10s")).response["status"]


async def test_a_misspelt_name_is_a_new_policy(started, path, trust):
    """It fails as CONFIGURATION, and /readyz reports it: its policy is unknown."""
    process = started(configured("one"))
    misspelt = policy("repor", worker="reporter", settings={"word": "one"})
    replace(path, source(workers={"reporter": worker()}, validating=[misspelt]))
    await reloaded(process)
    (line,) = listed(process)
    assert line.startswith("[!]validating policy test/repor.test.example.com fails (unknown_policy): worker 'reporter'")
    assert 'did you mean "report"?' in line
    assert _refusal(process, trust)["code"] == 500
    failed = {"phase": "validating", "policy": "test/repor.test.example.com"}
    assert process.metric("policy_failures_total", **failed, reason="CONFIGURATION") == 1


async def test_a_worker_that_comes_later_takes_over(started, path, tmp_path, trust):
    """Its policies run in their last good version until it has described itself; then the worker before is stopped."""
    process = started(configured("one"), "--worker-startup-timeout", 0)
    await until(lambda: listed(process) == [])
    before = reported(process, trust)
    script = tmp_path / "later.sh"
    replace(path, configured("two", grpc={"command": ["sh", str(script)]}))
    await reloaded(process)
    assert (reported(process, trust), len(listed(process))) == (before, 1)
    script.write_text(f"exec python {REPORTER} later\n")
    await until(lambda: reported(process, trust)[:2] == ("two", "later"))
    await until(lambda: int(before[2]) not in process.children())
    assert listed(process) == []


async def test_a_process_keeps_its_address_to_itself(started, path, tmp_path, trust):
    """A changed command at the same target cannot run beside the first: it is not started, and the log has why; with a
    target of its own it follows.
    """
    target = f"unix:{tmp_path}/reporter.sock"
    process = started(configured("one", grpc=worker("old", target=target)), "--worker-startup-timeout", 0)
    await until(lambda: listed(process) == [])
    before = reported(process, trust)
    replace(path, configured("one", grpc=worker("new", target=target)))
    await reloaded(process)
    assert f"another process that the gateway started still listens at {target}" in listed(process)[0]
    assert (reported(process, trust), len(process.children())) == (before, 1)
    replace(path, configured("one", grpc=worker("new", target=f"{target}.2")))
    await until(lambda: reported(process, trust)[1] == "new")
    await until(lambda: listed(process) == [])


# ------------------------------------------------------------------------------------------------------ strictly


@pytest.mark.parametrize("reason", ["unknown_policy", "settings", "claims", "description"])
def test_a_strict_start_is_refused_by_what_a_worker_answers(serve, path, reason):
    """Exit 1, with the place and the words of the worker; nothing listens, and no process is left."""
    text, why = REFUSED[reason]
    path.write_text(text)
    process = serve("--policies", path, "--strict", "--worker-startup-timeout", 30)
    assert process.exit_code() == 1
    errors = [line for line in process.err.all() if line.startswith("error: ")]
    assert errors[1:] == ["error: not served: 1 error in the configuration with --strict"]
    assert errors[0].startswith(f"error: {path}:")
    assert "policies[0]" in errors[0]
    assert why.rpartition(": ")[2] in errors[0]  # a place in the settings stands before it, as that of the error
    assert process.out.all() == []


def test_a_strict_start_reports_all_errors(serve, path):
    """Those in the files, once, and those that workers report of."""
    two = [
        policy("report", worker="reporter", settings={"word": "odd"}),
        policy("report-too", worker="reporter", policy="report", timeoutSeconds=99),
    ]
    path.write_text(source(workers={"reporter": worker()}, validating=two))
    process = serve("--policies", path, "--strict", "--worker-startup-timeout", 30)
    assert process.exit_code() == 1
    *errors, last = [line for line in process.err.all() if line.startswith("error: ")]
    places = [error.partition(" policies")[2].partition(": ")[0] for error in errors]
    assert places == ["[1].timeoutSeconds", "[0].settings.word"]
    assert last == "error: not served: 2 errors in the configuration with --strict"


def test_a_strict_start_does_not_wait_for_a_worker_that_is_away(serve, path):
    """It serves, and says of which policies it does not know."""
    path.write_text(configured("one", grpc={"command": ["/nonexistent/worker"]}))
    process = serve("--policies", path, "--strict", "--worker-startup-timeout", 0.1).ready()
    line = process.err.find(lambda line: "not verified" in line)
    assert line.startswith(f"warning: {path}:")
    assert "policies[0]: not verified: worker 'reporter'" in line
