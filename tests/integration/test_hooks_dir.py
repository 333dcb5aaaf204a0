"""``serve --hooks-dir`` with hooks in bash and Python, called at shell-operator's paths and at the gateway's."""

import http.client
import json
import ssl
import sys

import pytest

from tests.authorities import Authority
from tests.integration.client import Client, post
from tests.integration.running import until

pytestmark = pytest.mark.workers

QUICK = ("--reload-interval", 0.02, "--worker-startup-timeout", 30)

DENY = """#!/bin/bash
if [[ $1 == --config ]]; then
  cat <<'END'
configVersion: v1
kubernetesValidating:
- name: deny.example.com
  rules:
  - {operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}
END
else
  name=$(python3 -c 'import json, os
print(json.load(open(os.environ["BINDING_CONTEXT_PATH"]))[0]["review"]["request"]["name"])')
  echo '{"allowed": false, "status": {"code": 403, "message": "'"$name is not welcome"'"}}' > $VALIDATING_RESPONSE_PATH
fi
"""

MUTATE = """#!PYTHON
import base64, json, os, sys
if sys.argv[1:] == ["--config"]:
    rule = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
    print(json.dumps({"configVersion": "v1", "kubernetesMutating": [{"name": "mutate.example.com", "rules": [rule]}]}))
else:
    patch = [{"op": "add", "path": "/metadata/finalizers", "value": ["example.com/WORD"]}]
    answer = {"allowed": True, "patch": base64.b64encode(json.dumps(patch).encode()).decode()}
    with open(os.environ["ADMISSION_RESPONSE_PATH"], "w") as file:
        json.dump(answer, file)
""".replace("PYTHON", sys.executable)

COUNT = """#!/bin/bash
if [[ $1 == --config ]]; then
  cat <<'END'
configVersion: v1
kubernetes:
- {name: quotas, apiVersion: example.com/v1, kind: Quota}
kubernetesValidating:
- name: count.example.com
  includeSnapshotsFrom: [quotas]
  rules:
  - {operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}
END
else
  python3 -c 'import json, os
context = json.load(open(os.environ["BINDING_CONTEXT_PATH"]))[0]
names = [each["object"]["metadata"]["name"] for each in context["snapshots"]["quotas"]]
json.dump({"allowed": False, "message": " ".join(names)}, open(os.environ["VALIDATING_RESPONSE_PATH"], "w"))'
fi
"""


def put(path, text):
    """A hook, replaced in one step."""
    path.parent.mkdir(exist_ok=True)
    new = path.with_name(f".{path.name}")
    new.write_text(text)
    new.chmod(0o755)
    new.rename(path)
    return path


@pytest.fixture
def folder(tmp_path):
    """Two hooks, in two languages."""
    (tmp_path / "hooks").mkdir()
    put(tmp_path / "hooks" / "deny.sh", DENY)
    put(tmp_path / "hooks" / "sub" / "mutate.py", MUTATE.replace("WORD", "one"))
    return tmp_path / "hooks"


def review():
    """A review of a Pod, as bytes."""
    pods = {"group": "", "version": "v1"}
    request = {
        "uid": "11111111-2222-3333-4444-555555555555",
        "kind": pods | {"kind": "Pod"},
        "resource": pods | {"resource": "pods"},
        "name": "pod",
        "namespace": "default",
        "operation": "CREATE",
        "userInfo": {},
        "object": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}},
        "oldObject": None,
        "options": None,
    }
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).encode()


def called(process, trust, path):
    """The answer to a review there."""
    with Client(process.port, trust) as client:
        return client.send(post(review(), f"{path}?timeout=30s"))


def reported(process, trust, path):
    """The message of the denial there."""
    return called(process, trust, path).response["status"]["message"]


async def test_a_denial_reaches_the_client(serve, folder, trust):
    """With its code and message, in the original proposal's form, at both paths."""
    process = serve("--hooks-dir", folder, *QUICK).ready()
    for path in ("/hooks/deny-example-com", "/validate/deny.example.com", "/validate"):
        response = called(process, trust, path).response
        assert response["allowed"] is False
        assert (response["status"]["code"], response["status"]["message"]) == (403, "pod is not welcome")
    assert process.internal_errors() == []


async def test_a_patch_reaches_the_client(serve, folder, trust):
    """Whatever it changes: finalizers are protected from other policies."""
    process = serve("--hooks-dir", folder, *QUICK).ready()
    for path in ("/hooks/mutate-example-com", "/mutate/mutate.example.com", "/mutate"):
        response = called(process, trust, path).response
        assert (response["allowed"], response["patchType"]) == (True, "JSONPatch")


async def test_an_unknown_id_is_not_found(serve, folder, trust):
    """404, which is not a verdict: shell-operator would deny."""
    process = serve("--hooks-dir", folder, *QUICK).ready()
    for path in ("/hooks/nobody", "/hooks/", "/hooks", "/hooks/deny.example.com"):
        assert called(process, trust, path).status == 404


async def test_health(serve, folder, trust, tmp_path):
    """Where kubelet called shell-operator; there are no such paths where there are no hooks."""
    process = serve("--hooks-dir", folder, *QUICK).ready()
    with Client(process.port, trust) as client:
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n")
        assert client.answer("GET").status == 200
        assert client.send(post(b"", "/healthz")).status == 405
    (tmp_path / "none.yaml").write_text("# no policies\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: n}}\n")
    other = serve("--policies", tmp_path / "none.yaml").ready()
    with Client(other.port, trust) as client:
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n")
        assert client.answer("GET").status == 404
    assert called(other, trust, "/hooks/deny-example-com").status == 404


async def test_added_changed_and_removed_hooks_are_reloaded(serve, folder, trust):
    """Without a restart."""
    process = serve("--hooks-dir", folder, *QUICK).ready()
    put(folder / "second.sh", DENY.replace("deny.example", "second.example"))
    await until(lambda: called(process, trust, "/hooks/second-example-com").status == 200)
    put(folder / "second.sh", DENY.replace("deny.example", "third.example"))
    await until(lambda: called(process, trust, "/hooks/third-example-com").status == 200)
    assert called(process, trust, "/hooks/second-example-com").status == 404
    (folder / "second.sh").unlink()
    await until(lambda: called(process, trust, "/hooks/third-example-com").status == 404)
    assert reported(process, trust, "/hooks/deny-example-com") == "pod is not welcome"


@pytest.mark.parametrize(
    "broken", ["#!/bin/bash\necho 'configVersion: v2'\n", "#!/bin/bash\nexit 1\n", "#!/no/such/interpreter\n"]
)
async def test_after_an_error_the_last_good_configuration_stays(serve, folder, trust, broken):
    """The error is reported; the corrected hook is reloaded."""
    process = serve("--hooks-dir", folder, *QUICK).ready()
    put(folder / "broken", broken)
    put(folder / "new.sh", DENY.replace("deny.example", "new.example"))
    await until(lambda: process.metric("configuration_reloads_total", result="invalid") >= 1)
    assert f"{folder}/broken" in process.page("/readyz?verbose")[1]
    assert called(process, trust, "/hooks/new-example-com").status == 404
    assert reported(process, trust, "/hooks/deny-example-com") == "pod is not welcome"
    (folder / "broken").unlink()
    await until(lambda: called(process, trust, "/hooks/new-example-com").status == 200)


async def test_snapshots_are_made_from_documents(serve, folder, trust, tmp_path):
    """And again when these change."""
    put(folder / "count.sh", COUNT)
    quota = "apiVersion: example.com/v1\nkind: Quota\nmetadata: {name: NAME}\n"
    objects = tmp_path / "objects.yaml"
    objects.write_text(quota.replace("NAME", "a"))
    process = serve("--hooks-dir", folder, "--policies", objects, *QUICK).ready()
    assert reported(process, trust, "/hooks/count-example-com") == "a"
    objects.write_text(quota.replace("NAME", "b") + "---\n" + quota.replace("NAME", "c"))
    await until(lambda: reported(process, trust, "/hooks/count-example-com") == "b c")


async def test_a_deployment_of_shell_operator_becomes_one_of_the_gateway(serve, folder, tmp_path):
    """By its variables alone: certificate, key, client authorities."""
    server, one, two = (Authority(name) for name in ("server", "one", "two"))
    for name, authority in (("one", one), ("two", two)):
        (tmp_path / name).write_bytes(authority.pem)
    cert, key = server.issue("localhost").write(tmp_path)
    process = serve(
        *QUICK,
        tls=(),
        env={
            "SHELL_OPERATOR_HOOKS_DIR": str(folder),
            "VALIDATING_WEBHOOK_SERVER_CERT": cert,
            "VALIDATING_WEBHOOK_SERVER_KEY": key,
            "VALIDATING_WEBHOOK_CLIENT_CA": f"{tmp_path}/one\n{tmp_path}/two",
        },
    ).ready()
    unknown = ssl.create_default_context(cadata=server.pem.decode())
    for name, authority in (("one", one), ("two", two)):
        known = ssl.create_default_context(cadata=server.pem.decode())
        known.load_cert_chain(*authority.issue(subject=f"client of {name}").write(tmp_path, name))
        assert reported(process, known, "/hooks/deny-example-com") == "pod is not welcome"
    with pytest.raises((OSError, http.client.HTTPException)):
        called(process, unknown, "/hooks/deny-example-com")


def test_an_error_of_a_hook_prevents_the_start(serve, folder):
    """Nothing is served, and the error names the hook and what it did."""
    put(folder / "broken", "#!/bin/bash\necho oh no >&2\nexit 4\n")
    process = serve("--hooks-dir", folder)
    assert process.exit_code() == 1
    said = process.err.find(lambda line: line.startswith("error: "))
    assert said.startswith(f"error: {folder}/broken:1: exited with status 4")
    assert said.endswith("oh no")
