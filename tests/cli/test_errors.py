"""Errors of an operator: each is reported at once, with what to do; the exit code gives the kind."""

import json
import socket

import pytest

from tests.integration.client import Client, message
from tests.integration.running import policy, source
from tests.traffic import recording

WRONG_CONFIGURATION = 1
COULD_NOT = 2

USAGE = {
    "no policies": (["serve"], "no policies: set --policies, --hooks-dir, or both"),
    "no certificate": (
        ["serve", "--policies", "POLICIES"],
        "no certificate: set --tls-cert and --tls-key, --tls-secret in a cluster, or --tls-dev-dir",
    ),
    "no key": (
        ["serve", "--policies", "POLICIES", "--tls-cert", "CERT"],
        "no certificate: set --tls-cert and --tls-key",
    ),
    "no certificate to a key": (["serve", "--policies", "POLICIES", "--tls-key", "KEY"], "no certificate: set"),
    "two kinds of certificate": (
        ["serve", "--policies", "POLICIES", "--tls-cert", "CERT", "--tls-key", "KEY", "--tls-dev-dir", "TMP/dev"],
        "--tls-dev-dir cannot be combined with --tls-cert and --tls-key",
    ),
    "a Secret and files": (
        ["SERVE", "--cluster", "--service", "a/b", "--tls-secret", "a/b"],
        "--tls-secret cannot be combined with --tls-cert",
    ),
    "a Secret without a cluster": (
        ["serve", "--policies", "POLICIES", "--service", "a/b", "--tls-secret", "a/b"],
        "--tls-secret requires --cluster",
    ),
    "a Secret without a Service": (
        ["serve", "--policies", "POLICIES", "--cluster", "--tls-secret", "a/b"],
        "--tls-secret requires --service",
    ),
    "no place of a Secret": (["SERVE", "--tls-secret", "b"], "'b' is not NAMESPACE/NAME"),
    "allowed names without a CA": (
        ["SERVE", "--client-allowed-name", "kube-apiserver"],
        "--client-allowed-name requires --client-ca",
    ),
    "an unknown option": (["serve", "--polices", "POLICIES"], "No such option"),
    "an unknown command": (["server"], "No such command 'server'"),
    "an unknown log level": (["SERVE", "--log-level", "loud"], "--log-level"),
    "a negative wait": (["SERVE", "--worker-startup-timeout", "-1"], "--worker-startup-timeout"),
    "seal keys without Redis": (["SERVE", "--seal-key-file", "KEY"], "--seal-key-file requires --redis"),
    "an unknown shell": (["completion", "tcsh"], "'tcsh' is not one of"),
}
USAGE |= {
    f"the address {address!r}": (["SERVE", "--listen", address], f"{address!r}")
    for address in ("localhost", ":", "host:port", "127.0.0.1:65536", "127.0.0.1:-1", "::1:8443", "127.0.0.1:١", "")
}
USAGE |= {
    f"{flag} {value}": (["SERVE", flag, value], text)
    for flag, value, text in (
        ("--limit-body-bytes", "0", "limit body_bytes is 0: it must be greater than zero"),
        ("--limit-body-bytes", "20MB", "--limit-body-bytes"),
        ("--limit-keepalive-seconds", "60", "must be greater than kube-apiserver's idle time, 90 s"),
        ("--limit-describe-seconds", "nan", "limit describe_seconds is nan"),
        ("--limit-worker-stop-seconds", "inf", "limit worker_stop_seconds is inf: it must be finite"),
        ("--limit-body-bytes", "1GB", "'1GB' is not a number of bytes such as 512Mi, 1Gi, 20M or 20000000"),
        ("--limit-body-bytes", "1Gi", "the memory budget is 1073741824 bytes: it must hold 8 of the largest"),
        ("--memory-budget", "100M", "raise --memory-budget or lower --limit-body-bytes"),
        ("--memory-budget", "lots", "'lots' is not a number of bytes"),
        ("--worker-startup-timeout", "nan", "'nan' is not a finite number of seconds"),
        ("--drain", "inf", "'inf' is not a finite number of seconds"),
        ("--limit-cache-memory-bytes", "0", "limit memory_bytes is 0: it must be greater than zero"),
        ("--limit-cache-memory-bytes", "1k", "limit memory_bytes is 1000: it must hold the largest verdict"),
        ("--idempotency-sample-ratio", "1.5", "--idempotency-sample-ratio"),
        ("--idempotency-sample-ratio", "nan", "'nan' is not a number from 0 to 1"),
    )
}


@pytest.fixture
def filled(policies, certificates, pair, tmp_path):
    """Arguments with the places of files filled in."""
    names = {"POLICIES": policies, "CERT": certificates.cert_file, "KEY": certificates.key_file}

    def fill(arguments):
        found = []
        for word in arguments:
            if word == "SERVE":
                found += ["serve", "--policies", policies, *pair]
            else:
                found.append(names.get(word, word.replace("TMP", str(tmp_path))))
        return found

    return fill


@pytest.mark.parametrize("name", USAGE)
def test_wrong_usage(run, filled, name):
    """A flag that is missing, unknown or invalid ends the command with exit code 2, the flag and the reason."""
    arguments, text = USAGE[name]
    done = run(*filled(arguments))
    assert (done.code, done.out) == (COULD_NOT, "")
    assert text in " ".join(done.err.replace("│", " ").split())


CANNOT = {
    "a policy path that is missing": (
        ["serve", "--policies", "TMP/none", "PAIR"],
        "none: cannot be read: No such file",
    ),
    "a directory without policies": (["serve", "--policies", "TMP/empty", "PAIR"], "holds no file that ends in .yaml"),
    "a certificate that is missing": (
        ["serve", "--policies", "POLICIES", "--tls-cert", "TMP/no.crt", "--tls-key", "KEY"],
        "no.crt",
    ),
    "a certificate that is none": (
        ["serve", "--policies", "POLICIES", "--tls-cert", "POLICIES", "--tls-key", "KEY"],
        "no readable PEM",
    ),
    "a key that is none": (
        ["serve", "--policies", "POLICIES", "--tls-cert", "CERT", "--tls-key", "CERT"],
        "no readable PEM",
    ),
    "a client CA that is missing": (["SERVE", "--client-ca", "TMP/no.crt"], "CA for client certificates"),
    "tokens that are missing": (
        ["SERVE", "--bearer-token-file", "TMP/none"],
        "--bearer-token-file TMP/none: cannot be",
    ),
    "tokens that are none": (["SERVE", "--admin-token-file", "KEY"], "line 1: a token has visible ASCII characters"),
    "passwords that are none": (["SERVE", "--basic-auth-file", "KEY"], "line 1: expected USER:PASSWORD"),
    "a path secret that is none": (["SERVE", "--path-secret-file", "KEY"], "line 1: expected 32 to 63 lower case"),
    "a directory for certificates that is a file": (
        ["serve", "--policies", "POLICIES", "--tls-dev-dir", "POLICIES/x"],
        "development certificates",
    ),
    "a name that is none": (
        ["serve", "--policies", "POLICIES", "--tls-dev-dir", "TMP/dev", "--tls-dev-name", "a b"],
        "development certificates",
    ),
    "a Redis URL that is none": (["SERVE", "--redis", "memcached://u:hunter2@h"], "the Redis URL has no known scheme"),
    "a Redis URL with a stray @": (["SERVE", "--redis", "redis://u:hunter2/@h"], "write / ? # @ as"),
    "seal keys that are missing": (
        ["SERVE", "--redis", "redis://h", "--seal-key-file", "TMP/none"],
        "seal key file TMP/none: No such file",
    ),
    "seal keys that are none": (
        ["SERVE", "--redis", "redis://h", "--seal-key-file", "KEY"],
        "line 1: expected base64 of 32 bytes (44 characters)",
    ),
    "an address of another machine": (["SERVE", "--listen", "192.0.2.1:0"], "cannot listen on 192.0.2.1:0"),
    "an unknown host": (
        ["SERVE", "--listen", "no-such-host.invalid:0"],
        "cannot listen on no-such-host.invalid",
    ),
}


@pytest.mark.parametrize("name", CANNOT)
def test_what_cannot_be_used_is_reported_in_one_line(run, filled, pair, tmp_path, policies, name):
    """A file or address that cannot be used refuses the start: exit code 2 and one line."""
    (tmp_path / "empty").mkdir()
    arguments, text = CANNOT[name]
    words = [word.replace("POLICIES/", f"{policies}/") for word in arguments if word != "PAIR"]
    words = filled(words) + (list(pair) if "PAIR" in arguments else [])
    done = run(*words, "--admin-listen", "127.0.0.1:0", "--worker-startup-timeout", 0)
    assert (done.code, done.out) == (COULD_NOT, "")
    reported = [line for line in done.err.splitlines() if line.startswith("error: ")]
    assert len(reported) == 1, done.err
    assert text.replace("TMP", str(tmp_path)) in reported[0]
    assert "hunter2" not in done.err


@pytest.mark.parametrize("flag", ["--listen", "--admin-listen"])
def test_a_port_in_use(run, policies, pair, flag):
    """If another process listens there, the command ends with exit code 2 and names the address."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        free = {"--listen": "127.0.0.1:0", "--admin-listen": "127.0.0.1:0"} | {flag: address}
        flags = [word for pair_ in free.items() for word in pair_]
        done = run("serve", "--policies", policies, *pair, *flags, "--worker-startup-timeout", 0)
    assert (done.code, done.out) == (COULD_NOT, "")
    assert f"cannot listen on {address}: Address already in use" in done.err


def test_a_chain_that_is_not_known_is_not_served(run, pair, tmp_path):
    """Errors that leave the policies unknown end with exit code 1; all are reported, with file and line."""
    (tmp_path / "a.yaml").write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n")
    (tmp_path / "b.yaml").write_text(
        "# a comment\napiVersion: admission-gateway.dev/v1alpha1\nkind: ValidatingPolicyConfiguration\nmetadata: {}\n"
        "policies:\n- name: judge.test.example.com\n  worker: missing\n  sideEffects: Some\n"
    )
    (tmp_path / "c.yaml").write_text("a: [\n")
    done = run("serve", "--policies", tmp_path, *pair)
    assert (done.code, done.out) == (WRONG_CONFIGURATION, "")
    errors = [line for line in done.err.splitlines() if line.startswith(f"error: {tmp_path}/")]
    assert [line.split(":")[1].rpartition("/")[2] for line in errors] == sorted(
        line.split(":")[1].rpartition("/")[2] for line in errors
    )
    for place in ("a.yaml:2: kind: ", "b.yaml:4: metadata.name: ", "b.yaml:8: policies[0].sideEffects: ", "c.yaml:"):
        assert any(place in line for line in errors), (place, done.err)
    assert f"error: the configuration has {len(errors)} errors" in done.err


def test_a_policy_with_an_error_is_served_as_a_failure(serve, tmp_path, trust):
    """An error within one policy is reported when loaded, counted, and refuses the requests that the policy matches."""
    path = tmp_path / "policies.yaml"
    about = policy("judge", timeoutSeconds=99)
    path.write_text(source(workers={"scripted": f"unix:{tmp_path}/w.sock"}, validating=[about]))
    process = serve("--policies", path, "--worker-startup-timeout", 0).ready()
    line_printed = process.err.find(lambda line: line.startswith("error: "))
    line = 1 + next(number for number, text in enumerate(path.read_text().splitlines()) if "timeoutSeconds" in text)
    assert line_printed.startswith(f"error: {path}:{line}: policies[0].timeoutSeconds: Invalid value: 99")
    logged = process.logged("an error in the configuration")
    assert logged["place"] == f"{path}:{line}: policies[0].timeoutSeconds"
    with Client(process.port, trust) as client:
        status = client.send(message(recording("pod-create.1v"))).response["status"]
    assert (status["code"], status["reason"]) == (500, "InternalError")
    assert status["message"].startswith("CONFIGURATION: ")
    assert "policies[0].timeoutSeconds" in status["message"]
    assert process.metric("configuration_errors") == 1
    assert process.admin("/readyz") == "ok\n"


def test_a_field_of_webhooks_is_an_error(serve, tmp_path, trust):
    """An unsupported field is an error when loaded, never ignored."""
    path = tmp_path / "policies.yaml"
    about = policy("judge", clientConfig={"url": "https://a.example.com"}, failurePolicy="Ignore")
    path.write_text(source(workers={"scripted": f"unix:{tmp_path}/w.sock"}, validating=[about]))
    process = serve("--policies", path, "--worker-startup-timeout", 0).ready()
    assert "policies[0].clientConfig: Forbidden" in process.err.find(lambda line: line.startswith("error: "))
    with Client(process.port, trust) as client:
        response = client.send(message(recording("pod-create.1v"))).response
    assert response["allowed"]
    assert "CONFIGURATION" in json.dumps(response["warnings"])
