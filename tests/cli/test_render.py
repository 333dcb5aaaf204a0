"""``render``: the objects for kubectl, and the warnings and errors beside them."""

import base64
import json

import pytest
import yaml

from gateway.policies.configuration import load
from gateway.policies.decoding.texts import SourceText
from tests.cli.test_check import policy, written

__all__ = ["written"]

SERVICE = ("--service", "gw/gateway:8443")


@pytest.fixture
def ca(certificates):
    """The file of a CA's certificate."""
    return certificates.ca_file


def documents(done):
    """The documents on the output."""
    return list(yaml.safe_load_all(done.out))


def test_yaml(run, written, ca):
    """Two documents of YAML: both configurations, nothing on the error output; exit 0."""
    done = run("render", written(policy("a")), *SERVICE, "--ca-bundle", ca)
    assert (done.code, done.err) == (0, "")
    mutating, validating = documents(done)
    assert [each["kind"] for each in (mutating, validating)] == [
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
    ]
    assert mutating["webhooks"][0]["clientConfig"] == {
        "service": {"namespace": "gw", "name": "gateway", "path": "/mutate/chain.a.example.com/e3848d15", "port": 8443},
        "caBundle": base64.b64encode(ca.read_bytes()).decode(),
    }
    assert validating["webhooks"] == []


@pytest.mark.parametrize("where", [SERVICE, ("--url", "https://gw.example.com")])
def test_a_path_secret_is_the_first_segment_of_all_paths(run, written, tmp_path, where):
    """The first secret of the file: the others are those that kube-apiserver may still use, or will."""
    first, second = "0123456789abcdef" * 2, "fedcba9876543210" * 2
    (tmp_path / "secrets").write_text(f"{first}\n{second}\n")
    done = run("render", written(policy("a")), *where, "--path-secret-file", tmp_path / "secrets")
    config = documents(done)[0]["webhooks"][0]["clientConfig"]
    registered = (
        config["service"]["path"] if "service" in config else config["url"].removeprefix("https://gw.example.com")
    )
    assert registered == f"/{first}/mutate/chain.a.example.com/e3848d15"


def test_a_path_secret_that_kubernetes_would_refuse_is_exit_2(run, written, tmp_path):
    """kube-apiserver accepts no other path than one of DNS names."""
    (tmp_path / "secrets").write_text("S" * 32)
    done = run("render", written(policy("a")), *SERVICE, "--path-secret-file", tmp_path / "secrets")
    assert (done.code, done.out) == (2, "")
    assert f"--path-secret-file {tmp_path}/secrets, line 1: expected 32 to 63 lower case letters" in done.err


def test_json(run, written):
    """As JSON, one List of the same objects."""
    arguments = ("render", written(policy("a"), validating=[policy("v")]), *SERVICE)
    made = json.loads(run(*arguments, "-o", "json").out)
    assert (made["apiVersion"], made["kind"]) == ("v1", "List")
    assert made["items"] == documents(run(*arguments))


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_loads_again(run, written, form):
    """What is rendered is a configuration to our own loader as well, without an error."""
    rendered = run("render", written(policy("a"), validating=[policy("v")]), *SERVICE, "-o", form).out
    again = load([SourceText(name="rendered", content=rendered.encode())])
    assert again.errors == ()
    assert [each.name for each in again.mutating + again.validating] == ["chain.a.example.com", "group.v.example.com"]


@pytest.mark.parametrize(
    "value", ["y", "No", "1e3", "0x1f", "12e4", "1_000", "off", "0o7", "007", "null", "1.0", "2020-01-01"]
)
def test_strings_stay_strings(run, written, value):
    """A label's value that some YAML parser takes for a number, a boolean or nothing is in quotation marks."""
    done = run("render", written(policy("a", objectSelector={"matchLabels": {"tier": value}})), *SERVICE)
    assert f'tier: "{value}"\n' in done.out


def test_expressions_of_several_lines(run, written):
    """An expression of several lines stays legible, and the same."""
    expression = "request.name == 'a' ||\nrequest.name == 'b'\n"
    conditions = [{"name": "named", "expression": expression}]
    done = run("render", written(policy("a", isolate=True, matchConditions=conditions)), *SERVICE)
    assert documents(done)[0]["webhooks"][0]["matchConditions"] == conditions
    assert "    expression: |\n" in done.out


def test_choices(run, written):
    """Name, URL, excluded namespaces and release are the operator's choice."""
    arguments = ("--url", "https://gw.example.com:9443/", "--name", "gw", "--exclude-namespace", "kube-system")
    done = run("render", written(policy("a")), *arguments, "--exclude-namespace", "infra", "--kube-version", "v1.20.1")
    (webhook,) = documents(done)[0]["webhooks"]
    assert documents(done)[0]["metadata"]["name"] == "gw"
    assert webhook["clientConfig"] == {"url": "https://gw.example.com:9443/mutate/chain.a.example.com/e3848d15"}
    assert webhook["namespaceSelector"]["matchExpressions"][0]["values"] == ["kube-system", "infra"]
    assert "Kubernetes 1.20 does not label namespaces" in done.err


def test_choices_from_the_environment(run, written):
    """Each flag is an environment variable too."""
    env = {"ADMISSION_GATEWAY_SERVICE": "gw/gateway", "ADMISSION_GATEWAY_EXCLUDE_NAMESPACE": "a b"}
    (webhook,) = documents(run("render", written(policy("a")), env=env))[0]["webhooks"]
    assert webhook["clientConfig"]["service"]["port"] == 443
    assert webhook["namespaceSelector"]["matchExpressions"][0]["values"] == ["gw", "a", "b"]


def test_warnings(run, written):
    """Warnings go to the error output, and no CA is one; the output is still what kubectl takes."""
    done = run("render", written(policy("a"), policy("none", rules=[])), *SERVICE)
    assert done.code == 0
    assert "warning: team/none.example.com: has no rules" in done.err
    assert "warning: --ca-bundle is not set" in done.err
    assert len(documents(done)) == 2


def test_errors(run, written):
    """A configuration with an error is not rendered: the errors on the standard error, no objects; exit 1."""
    done = run("render", written(policy("a"), policy("b", matchPolicy="Never")), *SERVICE)
    assert (done.code, done.out) == (1, "")
    assert "policies[1].matchPolicy: Unsupported value" in done.err
    assert "the configuration has 1 error: nothing is rendered" in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "exactly one of --service and --url"),
        ([*SERVICE, "--url", "https://gw.example.com"], "exactly one of --service and --url"),
        (["--service", "gateway"], "is not NAMESPACE/NAME"),
        (["--service", "gw/"], "name: a lowercase RFC 1123 label"),
        (["--service", "Gw/gateway"], "namespace: a lowercase RFC 1123 label"),
        (["--service", "gw/gateway:0"], "the port must be a number from 1 to 65535"),
        (["--service", "gw/gateway:https"], "the port must be a number from 1 to 65535"),
        (["--url", "http://gw.example.com"], "is not https://HOST"),
        (["--url", "https://user@gw.example.com"], "is not https://HOST"),
        (["--url", "https://gw.example.com/path"], "is not https://HOST"),
        (["--url", "https://gw.example.com?a=b"], "is not https://HOST"),
        (["--url", "https://gw.example.com:99999"], "Port out of range"),
        (["--url", "https://[::1"], "Invalid IPv6 URL"),
        ([*SERVICE, "--name", "Gateway"], "a lowercase RFC 1123 subdomain"),
        ([*SERVICE, "--exclude-namespace", "a.b"], "must not contain dots"),
        ([*SERVICE, "--kube-version", "latest"], "is not a release of Kubernetes"),
        ([*SERVICE, "--kube-version", "1.15"], "Kubernetes 1.15 has no admissionregistration.k8s.io/v1"),
    ],
)
def test_wrong_usage(run, written, arguments, message):
    """An invalid option is reported with its value; exit 2."""
    done = run("render", written(policy("a")), *arguments)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "cannot be read: No such file"), (b"no PEM", "no certificates in PEM"), (b"", "no certificates in PEM")],
)
def test_no_certificates(run, written, tmp_path, content, message):
    """A CA bundle that is none is refused by name."""
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_bytes(content)
    done = run("render", written(policy("a")), *SERVICE, "--ca-bundle", path)
    assert (done.code, done.out) == (2, "")
    assert f"--ca-bundle: {path}: " in done.err
    assert message in done.err


def test_a_private_key_is_not_published(run, written, tmp_path, ca):
    """A file that holds a private key beside the certificate is refused."""
    path = tmp_path / "both.pem"
    path.write_bytes(ca.read_bytes() + b"-----BEGIN PRIVATE KEY-----\n")
    done = run("render", written(policy("a")), *SERVICE, "--ca-bundle", path)
    assert (done.code, done.out) == (2, "")
    assert "contains a private key" in done.err


def test_a_file_that_is_not_there(run, tmp_path):
    """Policies that cannot be read are exit 2."""
    assert run("render", tmp_path / "missing.yaml", *SERVICE).code == 2


URL = ("--url", "https://localhost:8443")


def test_manifest_files(run, written, tmp_path, ca):
    """One for each plugin, in a directory of its own, with the reserved name and nothing else in it."""
    done = run(
        "render", written(policy("a"), validating=[policy("v")]), *URL, "--ca-bundle", ca, "--manifest", tmp_path / "m"
    )
    files = sorted(each for each in (tmp_path / "m").rglob("*") if each.is_file())
    assert [str(each.relative_to(tmp_path / "m")) for each in files] == [
        "mutating/admission-gateway.static.k8s.io.yaml",
        "validating/admission-gateway.static.k8s.io.yaml",
    ]
    assert (done.code, done.out.split()) == (0, [str(file) for file in files])
    mutating, validating = (yaml.safe_load(file.read_text()) for file in files)
    assert [each["kind"] for each in (mutating, validating)] == [
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
    ]
    assert mutating["metadata"]["name"] == "admission-gateway.static.k8s.io"
    assert mutating["webhooks"][0]["clientConfig"]["url"].startswith("https://localhost:8443/mutate/")


def test_manifest_files_are_sent_the_kinds_of_webhooks(run, written, tmp_path, ca):
    """A rule that names them is; one for every group is not, as if it were registered."""
    rule = {"operations": ["*"], "apiVersions": ["*"], "resources": ["*"]}
    everything = policy("a", rules=[rule | {"apiGroups": ["*"]}])
    named = policy("b", rules=[rule | {"apiGroups": ["admissionregistration.k8s.io"]}])
    for policies, excluded in (([everything], True), ([named], False)):
        run("render", written(*policies), *URL, "--ca-bundle", ca, "--manifest", tmp_path)
        (webhook,) = yaml.safe_load((tmp_path / "mutating/admission-gateway.static.k8s.io.yaml").read_text())[
            "webhooks"
        ]
        conditions = str(webhook.get("matchConditions"))
        assert ("admissionregistration.k8s.io" in conditions) == excluded
    assert "'admissionregistration.k8s.io'" not in run("render", written(everything), *URL).out


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (SERVICE, "--manifest needs --url"),
        (URL, "--manifest needs --ca-bundle"),
        ((*URL, "--kube-version", "1.35"), "--manifest needs Kubernetes 1.36 or later, not 1.35"),
        ((*URL, "--ca-bundle", "CA", "-o", "json"), "--manifest writes YAML"),
    ],
)
def test_what_is_no_manifest(run, written, tmp_path, ca, arguments, why):
    """Exit 2, and nothing is written."""
    arguments = [ca if each == "CA" else each for each in arguments]
    done = run("render", written(policy("a")), *arguments, "--manifest", tmp_path / "m")
    assert (done.code, why in done.err, (tmp_path / "m").exists()) == (2, True, False)


def test_manifests_that_cannot_be_written(run, written, tmp_path, ca):
    """Exit 2, with the file and the reason."""
    (tmp_path / "mutating").write_text("")
    done = run("render", written(policy("a")), *URL, "--ca-bundle", ca, "--manifest", tmp_path)
    assert (done.code, "mutating/admission-gateway.static.k8s.io.yaml: cannot be written: " in done.err) == (2, True)
