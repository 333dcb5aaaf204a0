"""``admission-gateway demo``: what a newcomer sees."""

import json
import os
import re
import shlex
import signal
import ssl
import subprocess
import urllib.request

import pytest

from tests.examples import EXAMPLES, patient_examples
from tests.integration.process import COMMAND, WAIT_SECONDS, Lines

REVIEWS = sorted((EXAMPLES / "reviews").glob("*.json"))


@pytest.fixture
def demo(run_process, tmp_path):
    """Run the demonstration on a copy of the examples, on free ports: ``demo(*flags, env=...)``."""
    patient_examples(tmp_path)

    def command(*flags, env=None):
        ports = {"ADMISSION_GATEWAY_LISTEN": "127.0.0.1:0", "ADMISSION_GATEWAY_ADMIN_LISTEN": "127.0.0.1:0"}
        return run_process("demo", "--examples", "examples", *flags, env=ports | (env or {}), cwd=tmp_path)

    return command


@pytest.fixture
def demo_started(demo, tmp_path):
    """Start the demonstration, and go on: its process, and the lines that it prints."""
    started = []

    def command():
        ports = {"ADMISSION_GATEWAY_LISTEN": "127.0.0.1:0", "ADMISSION_GATEWAY_ADMIN_LISTEN": "127.0.0.1:0"}
        environment = {name: text for name, text in os.environ.items() if name != "CI"} | ports
        command = [COMMAND, "demo", "--examples", "examples"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, cwd=tmp_path)
        lines = Lines(process.stdout)
        started.append((process, lines))
        return process, lines

    yield command
    for process, lines in started:
        process.kill()
        process.wait()
        lines.all()


def test_each_review_is_reported(demo):
    """``demo --once`` exits with 0, and prints of each example review the request, the verdict and the reasons."""
    done = demo("--once")
    assert done.code == 0, done.err
    for number, path in enumerate(REVIEWS, 1):
        request = json.loads(path.read_text())["request"]
        line = next(line for line in done.out.splitlines() if re.match(rf" ?{number}  ", line))
        assert f"{request['operation']} {request['resource']['resource']}" in line
        assert re.search(r"\b(allowed|denied)\b", line)
    assert not re.search(r"\bfailed\b", done.out)
    assert "Serving until" not in done.out


def test_the_output_fits_a_screen(demo):
    """The whole demonstration is one screen that a newcomer can read: who changed what, who denied and why."""
    done = demo(env={"CI": "true"})
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert len(lines) <= 60
    assert max(map(len, lines)) <= 140
    assert re.search(r"default-labels\s+add\s+/metadata/labels/", done.out)
    assert re.search(r"no-privileged\s+denies\s+privileged containers are not allowed", done.out)
    assert "curl" not in done.out
    assert lines[-1] == "Without --once it continues to serve, and prints how to send your own reviews."


def test_an_answer_is_remembered(demo):
    """The first review once more is answered by the cache where its policies have one."""
    done = demo("--once")
    assert re.search(
        r"^The first review repeated: [1-9]\d* of \d+ verdicts came from the cache", done.out, re.MULTILINE
    )


def test_a_demonstration_without_reviews(run, tmp_path):
    """In a folder without reviews there is nothing to show: exit code 2, one line, and what to do."""
    done = run("demo", "--once", "--examples", tmp_path)
    assert (done.code, done.out) == (2, "")
    assert "no reviews in" in done.err
    assert "--examples must be" in done.err


def test_the_dashboard_shows_the_reviews(demo_started):
    """What a newcomer opens: its address is printed, and it has the reviews that were sent."""
    _, lines = demo_started()
    line = lines.find(lambda line: "/ui/ in a browser" in line)
    address = re.search(r"http://\S+/ui/", line).group()
    with urllib.request.urlopen(f"{address}api/live", timeout=WAIT_SECONDS) as stream:  # noqa: S310 - our own gateway
        assert next(line for line in stream if line.startswith(b"event: reviews"))
        reviews = json.loads(next(stream).removeprefix(b"data: "))["reviews"]
    assert len(reviews) >= len(REVIEWS)
    assert {"allowed", "denied"} == {review["outcome"] for review in reviews}


def test_the_printed_commands_lead_from_a_denial_to_the_line_of_its_policy(demo_started, tmp_path):
    """The review that is sent is denied, and its message has the uid of the explain command; so has one of the demo."""
    _, lines = demo_started()
    lines.find(lambda line: line == "Serving until Ctrl-C.")
    printed = list(lines)
    (curl,) = [number for number, line in enumerate(printed) if line.startswith("  curl ")]
    sent = shlex.split("\n".join(printed[curl : curl + 2]))
    (url,) = [word for word in sent if word.startswith("https://")]
    body = tmp_path / sent[sent.index("--data-binary") + 1].removeprefix("@")
    trust = ssl.create_default_context(cafile=tmp_path / sent[sent.index("--cacert") + 1])
    request = urllib.request.Request(url, body.read_bytes(), {"Content-Type": "application/json"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=WAIT_SECONDS, context=trust) as reply:  # noqa: S310 - our own gateway
        response = json.load(reply)["response"]
    first, second = [shlex.split(line) for line in printed if " explain " in line]
    assert response["allowed"] is False
    assert f"; uid: {second[2]})" in response["status"]["message"]
    assert any(f"; uid: {first[2]})" in line for line in printed)
    for _, *arguments in (first, second):
        done = subprocess.run([COMMAND, *arguments], check=True, capture_output=True, text=True)
        assert done.stdout.startswith("DENIED: CREATE pods default/kr-privileged by admin\n")
        place = re.search(r"no-privileged\S+ denied it: .*\n  configured at  (.*):(\d+): policies", done.stdout)
        line = (tmp_path / place[1]).read_text().splitlines()[int(place[2]) - 1]
        assert line == "- name: no-privileged.samples.example.com"


def test_a_denial_of_each_example_says_whom_to_ask(demo):
    """And its uid: with it a newcomer finds the line of the policy."""
    done = demo("--once")
    text = re.sub(r"\s+", " ", done.out)
    denials = re.findall(r"denies .*?; uid: ([0-9a-f-]{36})\)", text)
    recorded = {json.loads(path.read_text())["request"]["uid"] for path in REVIEWS}
    assert len(denials) == done.out.count(" denies ") == 2
    # kube-apiserver makes a new one for each call.
    assert not recorded.intersection(denials)


def test_a_demonstration_serves_until_it_is_stopped(demo_started):
    """Without --once it continues to serve after the reviews; SIGTERM ends it with exit code 0."""
    process, lines = demo_started()
    curl = re.compile(r"  curl --cacert \S+ -H 'Content-Type: application/json' 'https://127.0.0.1:\d+/validate")
    assert lines.find(curl.match) is not None
    assert lines.find(lambda line: line == "Serving until Ctrl-C.") is not None
    # zsh takes a question mark that is not quoted for a pattern.
    assert not [line for line in lines if "?" in re.sub(r"'[^']*'", "", line) and "http" in line]
    process.send_signal(signal.SIGTERM)
    assert process.wait(WAIT_SECONDS) == 0
