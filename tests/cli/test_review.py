"""``admission-gateway review``: decides requests without a cluster, and leaves nothing running."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.examples import EXAMPLES, patient_examples
from tests.integration.process import COMMAND, WAIT_SECONDS
from tests.integration.running import policy, source
from tests.traffic import recording

ROOT = Path(__file__).parents[2]

UNDERSTUDY = ROOT / "tests" / "integration" / "understudy.py"

ALLOWED, DENIED, COULD_NOT = 0, 1, 2

CREATE = recording("pod-create.1v").body


@pytest.fixture
def no_consumer(tmp_path):
    """A file with one policy on pods, whose worker never comes: fields of the policy -> path."""

    def write(**fields):
        path = tmp_path / "policies.yaml"
        path.write_text(source(workers={"scripted": f"unix:{tmp_path}/w.sock"}, validating=[policy("judge", **fields)]))
        return path

    return write


@pytest.fixture
def free(tmp_path):
    """A file with a policy that is about nothing that is called here: whatever is reviewed is allowed at once."""
    services = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["services"]}
    path = tmp_path / "free.yaml"
    path.write_text(
        source(workers={"scripted": f"unix:{tmp_path}/w.sock"}, validating=[policy("judge", rules=[services])])
    )
    return path


@pytest.fixture
def reviewed(run):
    """Run ``review`` with these policies on these files, waiting for no worker; more flags follow."""

    def review(policies, *arguments):
        return run("review", "--policies", policies, "--worker-startup-timeout", 0, *arguments)

    return review


@pytest.fixture
def file(tmp_path):
    """A file with this content."""

    def write(content, name="review.json"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def errors_of(done):
    """The command's errors. (gRPC logs errors about the closed loops of other tests in this process.)"""
    return [line for line in done.err.splitlines() if line.startswith("error: ")]


def test_a_shadow_is_neither_waited_for_nor_called(run_process, tmp_path):
    """What ``review`` prints is what it prints without: it comes before any answer would leave."""
    path, reviewed = tmp_path / "policies.yaml", tmp_path / "review.json"
    reviewed.write_bytes(CREATE)
    workers = {"understudy": {"command": ["python", str(UNDERSTUDY), "1"]}}
    documents = []
    for more, fields in (({}, {}), ({"next": "127.0.0.1:1"}, {"shadow": {"worker": "next"}})):
        about = [policy("report", worker="understudy", **fields)]
        path.write_text(source(workers=workers | more, validating=about))
        done = run_process("review", "--policies", path, "--worker-startup-timeout", 1000, "-o", "json", reviewed)
        assert done.code == ALLOWED
        documents.append([json.loads(line) for line in done.out.splitlines()])
    without, with_shadow = documents
    assert [each["phase"] for each in without] == ["mutating", "validating"]
    assert with_shadow == without


def test_a_queue_without_a_redis_is_not_waited_for(run_process, file, tmp_path):
    """No worker is reachable without it: its policy fails at once, and the message names the option."""
    worker = {
        "apiVersion": "admission-gateway.dev/v1alpha1",
        "kind": "Worker",
        "metadata": {"name": "queued"},
        "spec": {"queue": {"stream": "q", "keyFile": "queue.keys"}},
    }
    (tmp_path / "queue.keys").write_text("/" * 42 + "8=\n")
    path = tmp_path / "policies.yaml"
    path.write_text(f"{json.dumps(worker)}\n---\n{source(workers={}, validating=[policy('judge', worker='queued')])}")
    done = run_process("review", "--policies", path, "--worker-startup-timeout", 86_400, file(CREATE))
    assert done.code == DENIED
    assert "--queue-redis" in done.out + done.err


@pytest.mark.parametrize("failure_policy", ["Fail", "Ignore"])
def test_an_object_that_the_api_server_would_convert_is_not_decided(reviewed, no_consumer, file, failure_policy):
    """The cluster sends the policy its own version: a WRONG_VERSION that never happens there is not foretold here."""
    rule = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v2"], "resources": ["pods"]}
    done = reviewed(no_consumer(rules=[rule], failurePolicy=failure_policy), "--phase", "validate", file(CREATE))
    assert done.code == COULD_NOT
    assert "matches pods in v2, but the review has it in v1: the API server would convert the object" in done.err
    assert "WRONG_VERSION" not in done.out + done.err


def test_an_event_of_the_other_group_is_not_taken_for_another_resource(reviewed, no_consumer, file):
    """The API server would convert it to the core group, and call the policy."""
    review = json.loads(CREATE)
    resource = {"group": "events.k8s.io", "version": "v1", "resource": "events"}
    review["request"] |= {"resource": resource, "requestResource": resource}
    rule = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["events"]}
    done = reviewed(no_consumer(rules=[rule]), "--phase", "validate", file(json.dumps(review)))
    assert done.code == COULD_NOT
    assert "matches events in v1, but the review has it in events.k8s.io/v1" in done.err


# -------------------------------------------------------------------------------------- the examples, in full


@pytest.fixture(scope="module")
def patient(tmp_path_factory):
    """Arguments of a review by the policies of the examples, which have time for a machine that is busy."""
    policies = patient_examples(tmp_path_factory.mktemp("patient")) / "policies"
    return ("review", "--policies", policies, "--worker-startup-timeout", str(WAIT_SECONDS))


@pytest.fixture(scope="module")
def examples(patient):
    """The documents of all examples, by file and phase; the exit code."""
    files = sorted(map(str, (EXAMPLES / "reviews").glob("*.json")))
    done = subprocess.run(
        [COMMAND, *patient, "-o", "json", *files],
        capture_output=True,
        check=False,
        timeout=WAIT_SECONDS,
        stdin=subprocess.DEVNULL,
    )
    documents = [json.loads(line) for line in done.stdout.splitlines()]
    return {(Path(each["source"]).name, each["phase"]): each for each in documents}, done.returncode


def test_prefetch_changes_no_document(examples, run_process, patient):
    """With --no-prefetch the same reviews have the same documents."""
    files = sorted((EXAMPLES / "reviews").glob("*.json"))
    done = run_process(*patient, "--no-prefetch", "-o", "json", *files)
    assert [json.loads(line) for line in done.out.splitlines()] == list(examples[0].values())


def test_each_review_has_a_document_for_each_phase(examples):
    """One line of JSON for each review and phase, in one versioned form; one refusal makes exit code 1."""
    documents, code = examples
    files = {path.name for path in (EXAMPLES / "reviews").glob("*.json")}
    assert documents.keys() == {(name, phase) for name in files for phase in ("mutating", "validating")}
    assert {(each["apiVersion"], each["kind"]) for each in documents.values()} == {
        ("admission-gateway.dev/review/v1alpha1", "ReviewDecision")
    }
    assert code == DENIED


def test_validate_sees_what_mutate_made(examples):
    """The object of the validating phase is the one that the mutating phase left, patches included."""
    documents, _ = examples
    mutated = documents["1-pod-create.json", "mutating"]
    validated = documents["1-pod-create.json", "validating"]
    assert mutated["object"]["metadata"]["labels"]["team"] == "unassigned"
    assert validated["object"] == mutated["object"]
    assert {"op": "add", "path": "/metadata/labels/team", "value": "unassigned"} in mutated["patch"]
    assert validated["patch"] == []


def test_a_refusal_is_the_api_servers(examples):
    """Status, code and the complete message, and the entry that refuses."""
    documents, _ = examples
    document = documents["7-pod-privileged.json", "validating"]
    entry = document["refusedBy"]
    assert document["allowed"] is False
    assert document["status"]["message"].startswith(f'admission webhook "{entry}" denied the request: privileged')
    assert (document["status"]["code"], document["status"]["reason"]) == (403, "Forbidden")
    (visit,) = [visit for visit in document["entries"] if visit["name"] == entry]
    (call,) = [call for call in visit["policies"] if call["refuses"]]
    assert (call["verdict"], call["reason"], call["matched"], call["source"]) == ("deny", "DENIED", True, "called")


def test_why_a_policy_is_not_called(examples):
    """Each policy is listed with whether it matched, and if not, why."""
    documents, _ = examples
    document = documents["6-pod-exec.json", "validating"]
    calls = [call for visit in document["entries"] for call in visit["policies"]]
    assert calls
    assert {(call["matched"], call["why"], call["verdict"]) for call in calls} == {(False, "rules", None)}
    assert {visit["called"] for visit in document["entries"]} == {False}


def test_the_text_says_the_same(run_process, patient):
    """For people: the verdict, the message as the client sees it, and who changed what."""
    files = [EXAMPLES / "reviews" / name for name in ("1-pod-create.json", "7-pod-privileged.json")]
    done = run_process(*patient, *files)
    assert done.code == DENIED
    lines = done.out.splitlines()
    assert lines[0].endswith("1-pod-create.json: CREATE pods t/p1")
    assert "  mutate   allowed" in lines
    assert '        add     /metadata/labels/team = "unassigned"' in lines
    assert "  validate refused, 403 Forbidden" in lines
    assert any(" denied the request: privileged containers are not allowed" in line for line in lines)
    assert "\x1b" not in done.out
    assert "[error" not in done.err


def test_nothing_is_left_running(run_process):
    """The worker that was started has ended when the command has."""
    marker = {"ADMISSION_REVIEW_TEST": str(os.getpid())}
    run_process("review", "--policies", EXAMPLES / "policies", EXAMPLES / "reviews" / "1-pod-create.json", env=marker)
    left = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"ADMISSION_REVIEW_TEST={os.getpid()}".encode() in entry.read_bytes().split(b"\0"):
                left.append(entry)
        except OSError:
            continue
    assert left == []


@pytest.mark.integration
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_an_interrupted_review_is_no_verdict(no_consumer, file, number):
    """While it waits for a worker, it prints its name; a signal ends it with exit code 2, and no traceback."""
    process = subprocess.Popen(
        [
            COMMAND,
            "review",
            "--policies",
            no_consumer(inputs=["/object/metadata"]),
            "--worker-startup-timeout",
            "60",
            file(CREATE),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr.readline() == "waiting for the workers: scripted (--log-level info shows what they print)\n"
    process.send_signal(number)
    out, err = process.communicate(timeout=WAIT_SECONDS)
    assert (process.returncode, out) == (COULD_NOT, "")
    assert "Traceback" not in err


# ------------------------------------------------------------------------------------------------ exit codes


def test_allowed_is_0(reviewed, free, file):
    """No policy matches the request."""
    done = reviewed(free, file(CREATE))
    assert (done.code, errors_of(done)) == (ALLOWED, [])
    assert "no policy matches this request" in done.out


def test_a_failure_under_fail_is_1(reviewed, no_consumer, file):
    """A worker that cannot be called refuses the request, as serve would."""
    done = reviewed(no_consumer(), file(CREATE))
    assert done.code == DENIED
    assert "denied the request: CONFIGURATION: worker 'scripted'" in done.out


def test_a_failure_under_ignore_is_0(reviewed, no_consumer, file):
    """The failure is ignored, and reported."""
    done = reviewed(no_consumer(failurePolicy="Ignore"), file(CREATE))
    assert done.code == ALLOWED
    assert "failed, ignored by failurePolicy Ignore" in done.out
    assert "    warning: judge.test.example.com: could not judge this request: CONFIGURATION" in done.out


def test_the_remedy_of_a_failure_is_printed(reviewed, no_consumer, file):
    """A refusal in kube-apiserver's words is followed by what to do about it here."""
    done = reviewed(no_consumer(namespaceSelector={"matchLabels": {"a": "b"}}), file(CREATE))
    assert done.code == DENIED
    (hint,) = [line.strip() for line in done.out.splitlines() if "namespaceSelector of policy" in line]
    assert hint.startswith("the namespaceSelector of policy judge.test.example.com needs the labels of namespace 't'")
    assert hint.endswith("; serve with --cluster, or add a Namespace document for it")


def test_the_mode_is_printed(reviewed, no_consumer, file):
    """What is not enforced does not refuse."""
    done = reviewed(no_consumer(mode="warn"), file(CREATE))
    assert done.code == ALLOWED
    assert "judge.test.example.com (mode warn): failed" in done.out


def test_what_could_not_be_decided_is_2_and_the_others_are_decided(reviewed, no_consumer, file, tmp_path):
    """A file that is missing does not keep the others from being decided."""
    done = reviewed(no_consumer(), tmp_path / "none.json", file(CREATE))
    assert done.code == COULD_NOT
    assert f"error: {tmp_path}/none.json: cannot be read: No such file or directory" in done.err
    assert "refused" in done.out


@pytest.mark.parametrize(("phase", "phases"), [("mutate", ["mutating"]), ("validate", ["validating"])])
def test_one_phase_only(reviewed, free, file, phase, phases):
    """As called."""
    done = reviewed(free, file(CREATE), "--phase", phase, "-o", "json")
    assert [json.loads(line)["phase"] for line in done.out.splitlines()] == phases


def test_the_same_bytes_each_time(reviewed, no_consumer, file):
    """The JSON form depends on nothing but review, configuration and workers."""
    arguments = (no_consumer(), file(CREATE), "-o", "json")
    assert reviewed(*arguments).out == reviewed(*arguments).out


# ------------------------------------------------------------------------------------------------- the files


FORMS = {
    "JSON lines": lambda one: (one.strip() + b"\n") * 3,
    "JSON, one after another": lambda one: one.strip() * 3,
    "indented JSON": lambda one: (json.dumps(json.loads(one), indent=2).encode() + b"\n") * 3,
    "YAML documents": lambda one: yaml.safe_dump_all([json.loads(one)] * 3).encode(),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_file_may_hold_several_reviews(reviewed, free, file, form):
    """Each is decided, and called by its number."""
    path = file(FORMS[form](CREATE), "several")
    done = reviewed(free, path, "-o", "json", "--phase", "validate")
    documents = [json.loads(line) for line in done.out.splitlines()]
    assert (done.code, [each["source"] for each in documents]) == (ALLOWED, [f"{path} ({n})" for n in (1, 2, 3)])
    assert {each["request"]["name"] for each in documents} == {"p1"}
    assert all(each["object"] == json.loads(CREATE)["request"]["object"] for each in documents)


@pytest.mark.integration
def test_standard_input(free):
    """``-`` is read to its end."""
    done = subprocess.run(
        [COMMAND, "review", "--policies", free, "--worker-startup-timeout", "0", "-"],
        input=CREATE,
        capture_output=True,
        check=False,
        timeout=WAIT_SECONDS,
    )
    assert (done.returncode, done.stderr) == (ALLOWED, b"")
    assert done.stdout.startswith(b"<stdin>: CREATE pods t/p1\n")


BAD = {
    "an empty file": ("", "contains no AdmissionReview"),
    "blanks": (" \n\n", "contains no AdmissionReview"),
    "no JSON": ("{", "invalid JSON: line 1 column 2"),
    "half a review behind a whole one": (CREATE + CREATE[:100], "invalid JSON: line 2"),
    "no YAML": ("a: [", "invalid YAML: line "),
    "no UTF-8": (b"\xff\xfe", "invalid UTF-8: byte 0"),
    "a list": ("[]", "not an AdmissionReview"),
    "a number": ("5", "not an AdmissionReview"),
    "another kind": ('{"apiVersion": "v1", "kind": "Pod"}', "not an AdmissionReview"),
    "another version": (CREATE.replace(b"admission.k8s.io/v1", b"admission.k8s.io/v2"), "apiVersion is not one of"),
    "no request": ('{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}', "has no request"),
    "no uid": (json.dumps({**json.loads(CREATE), "request": {"a": 1}}), "uid is missing"),
    "an object that is none": (
        json.dumps({**json.loads(CREATE), "request": json.loads(CREATE)["request"] | {"object": 5}}),
        "request.object is neither a JSON object nor null",
    ),
    "too deep": ('{"a":' * 5000 + "1" + "}" * 5000, "deep"),
    "a long number": ('{"a": ' + "1" * 5000 + "}", "invalid JSON: "),
    "not a number": ("apiVersion: .nan\n", "line 1"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_review_is_reported_in_one_line(reviewed, no_consumer, file, name):
    """Which file, what is wrong; exit code 2; the next file is decided."""
    content, why = BAD[name]
    path = file(content, "bad")
    done = reviewed(no_consumer(), path, file(CREATE))
    assert done.code == COULD_NOT
    (line,) = errors_of(done)
    assert line.startswith(f"error: {path}")
    assert why in line
    assert "refused, 500 InternalError" in done.out


def test_a_directory_is_no_review(reviewed, free, tmp_path):
    """It cannot be read as a file."""
    done = reviewed(free, tmp_path)
    assert done.code == COULD_NOT
    assert "Is a directory" in done.err


def test_a_review_that_serve_would_not_take(reviewed, free, file):
    """The limits are those of serve."""
    done = reviewed(free, file(CREATE), "--limit-body-bytes", 100)
    assert done.code == COULD_NOT
    assert "the limit is 100 (--limit-body-bytes)" in done.err


CONFIGURATIONS = {
    "an unknown kind": ("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n", "its policies are not known"),
    "no object": ("# nothing\n", "there is no object in this file"),
    "no YAML": ("a: [\n", "cannot be read as YAML"),
    "an empty file": ("", "the file is empty"),
}


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_configuration_that_cannot_be_served(reviewed, file, tmp_path, name):
    """Nothing is decided, and it is not taken for a denial: exit code 2."""
    text, why = CONFIGURATIONS[name]
    done = reviewed(file(text, "policies.yaml"), file(CREATE))
    assert (done.code, done.out) == (COULD_NOT, "")
    assert why in done.err


def test_policies_that_cannot_be_read(reviewed, file, tmp_path):
    """Likewise."""
    done = reviewed(tmp_path / "none", file(CREATE))
    assert (done.code, done.out) == (COULD_NOT, "")
    assert "cannot be read: No such file" in done.err


def test_a_policy_with_an_error_is_a_failure(reviewed, no_consumer, file):
    """As in serve: the error is reported, and the policy fails for each request that it matches."""
    done = reviewed(no_consumer(timeoutSeconds=99), file(CREATE))
    assert done.code == DENIED
    assert "policies[0].timeoutSeconds: Invalid value" in done.err
    assert "CONFIGURATION" in done.out


def test_what_would_move_the_cursor_is_not_printed(reviewed, no_consumer, file):
    """Texts of a request are printed without control characters."""
    review = json.loads(CREATE)
    review["request"]["name"] = "a\x1b[2Jb"
    done = reviewed(no_consumer(), file(json.dumps(review)))
    assert "a?[2Jb" in done.out
    assert "\x1b" not in done.out
