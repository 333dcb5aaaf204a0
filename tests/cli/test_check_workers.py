"""``check --with-workers``: what only the workers know. One configuration has every kind of error."""

import json

import pytest
import yaml

from tests.integration.process import WAIT_SECONDS

GROUP = "admission-gateway.dev/v1alpha1"


def worker(name, **grpc):
    """A Worker document."""
    return {"apiVersion": GROUP, "kind": "Worker", "metadata": {"name": name}, "spec": {"grpc": grpc}}


SAMPLES = worker("samples", command=["python", "-m", "admission_worker.samples"])


def policy(name, **fields):
    """A policy that is never called, of the sample worker."""
    fields = {"worker": "samples", "rules": [], "sideEffects": "None"} | fields
    return {"name": f"{name}.samples.example.com"} | fields


@pytest.fixture
def checked(run_process, tmp_path):
    """Check these documents and policies with the workers: exit code, report and standard error."""

    def check(*workers, policies=(), wait=WAIT_SECONDS, output="json"):
        chain = {"kind": "ValidatingPolicyConfiguration", "metadata": {"name": "a"}, "policies": list(policies)}
        path = tmp_path / "policies.yaml"
        path.write_text(yaml.safe_dump_all([*workers, {"apiVersion": GROUP} | chain], sort_keys=False))
        # A process of its own: gRPC keeps to the first event loop of a process.
        done = run_process("check", "--with-workers", "--worker-startup-timeout", wait, path, "-o", output)
        return done.code, json.loads(done.out) if output == "json" else done.out, done.err

    return check


def test_what_workers_reject_is_reported_at_its_place(checked):
    """A misspelt name, wrong settings, claims beyond the grant, the wrong phase: all at once; exit 1."""
    code, report, printed = checked(
        SAMPLES,
        policies=[
            policy("a", policy="required-lables"),
            policy("b", policy="required-labels", settings={"labels": {"team": "a"}, "extra": 1}),
            policy("c", policy="no-privileged", inputs=["/object/metadata"]),
            policy("d", policy="default-labels"),
            policy("e", policy="required-labels", settings={"labels": {"team": "a"}}),
        ],
    )
    assert (code, printed) == (1, f"waiting up to {WAIT_SECONDS:g} s for workers: samples\n")
    assert [error["path"] for error in report["errors"]] == [
        "policies[0].policy",
        "policies[1].settings.extra",
        "policies[2].inputs",
        "policies[3]",
    ]
    misspelt, settings, claims, _ = report["errors"]
    assert misspelt["message"] == "worker 'samples' holds no policy 'required-lables'"
    assert misspelt["hint"].startswith(
        'did you mean "required-labels"? it holds: "default-labels", "default-resources"'
    )
    assert settings["message"].startswith("worker 'samples' refuses it: ")
    assert "/object/spec/containers/*/image" in claims["message"]
    assert report["valid"] is False


def test_shadows_are_called_too(checked):
    """A policy that the worker of a shadow does not have is an error at the shadow's place."""
    shadow = {"worker": "samples", "policy": "no-priviledged", "settings": {}}
    settings = {"labels": {"team": "a"}}
    code, report, _ = checked(
        SAMPLES, policies=[policy("a", policy="required-labels", settings=settings, shadow=shadow)]
    )
    assert (code, [error["path"] for error in report["errors"]]) == (1, ["policies[0].shadow.policy"])


def test_what_is_offered_is_printed(checked):
    """The report lists a worker's policies and the unused ones, which are no error; exit 0."""
    settings = {"labels": {"team": "a"}}
    code, report, _ = checked(SAMPLES, policies=[policy("a", policy="required-labels", settings=settings)])
    (samples,) = report["workers"]
    assert (code, samples["name"], samples["reached"], samples["why"]) == (0, "samples", True, "")
    assert samples["policies"] == [
        "default-labels",
        "default-resources",
        "image-registry",
        "no-privileged",
        "required-labels",
        "sidecar",
    ]
    assert samples["unused"] == [name for name in samples["policies"] if name != "required-labels"]


def test_an_unreachable_worker_is_reported(checked, tmp_path):
    """Its policies are unknown: exit 2, unless there is an error as well."""
    away = worker("away", target=f"unix:{tmp_path}/missing.sock")
    code, report, _ = checked(away, policies=[policy("a", worker="away")], wait=0.5)
    (worker_report,) = report["workers"]
    assert (code, report["valid"], worker_report["reached"]) == (2, True, False)
    assert "missing.sock" in worker_report["why"]
    code, text, _ = checked(away, policies=[policy("a", worker="away", mode="x")], wait=0.5, output="text")
    assert code == 1
    assert "away  not reached: " in text


def test_a_worker_that_ends_at_once_is_reported_with_its_output(checked):
    """The command, its exit code, and what it wrote last."""
    crash = worker("crash", command=["python", "-c", "raise SystemExit('no such database')"])
    code, report, _ = checked(crash, policies=[policy("a", worker="crash")], wait=5)
    (worker_report,) = report["workers"]
    assert (code, worker_report["reached"]) == (2, False)
    assert "exit code 1" in worker_report["why"]
    assert "no such database" in worker_report["why"]


def test_a_command_that_does_not_exist_is_an_error_here(checked):
    """The command does not wait for it, and reports it once."""
    code, report, printed = checked(worker("gone", command=["./nothing"]), policies=[policy("a", worker="gone")])
    (error,) = report["errors"]
    assert (code, error["path"], report["workers"], printed) == (1, "spec.grpc.command[0]", [], "")


def test_without_the_flag_no_worker_is_called(run, tmp_path):
    """``workers`` is null, and nothing that calls workers is waited for."""
    path = tmp_path / "worker.yaml"
    path.write_text(yaml.safe_dump(worker("away", target=f"unix:{tmp_path}/missing.sock")))
    assert json.loads(run("check", path, "-o", "json").out)["workers"] is None
