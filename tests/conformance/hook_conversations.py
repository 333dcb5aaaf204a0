"""Cases of a request to shell-operator's server, what the hook made of it, and the answer: through a whole gateway that
runs a real hook.

Two things of the recorded requests are not legal in a cluster, and are made so: the id ``h`` would be that of a webhook
called ``h``, which is no name of one; and a Pod without metadata has no place for the label that is put there. Of the
answers, what the API server reads is compared: of a patch, the object that it makes. That a denial's patch is not
repeated is a deliberate difference. Where the operator itself failed (``hookError``), the hook leaves no answer, and
the words are not compared.
"""

import asyncio
import base64
import http.client
import json
import ssl
import tempfile
from pathlib import Path
from typing import Any

import structlog

from gateway.cli.transport_options import HookWorkerFactory
from gateway.hooks.source.directory import HookDirectory
from gateway.patching.application import PatchDialect, apply_json_patch
from gateway.policies.configuration import load
from gateway.serving.app import Gateway
from gateway.serving.settings import Settings
from gateway.transports.transport_config import TransportConfig
from tests.conformance.cases import Case, Result, member, same

KIND = "hook_http"
DENIED_PATCH = "no patch with a denial"

_PATIENCE = 30.0
_RULES = [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}]
_HOOK = """#!/bin/sh
if [ "$1" = --config ]; then
  cat config.json
elif [ -f response.json ]; then
  cat response.json > "$VALIDATING_RESPONSE_PATH"
fi
"""


def recognizes(case: Case) -> bool:
    """Whether this is such a case."""
    return case.has("request", "expected") and (case.has("hookResponse") or case.has("hookError"))


def run(case: Case) -> Result:
    """Call."""
    expected, request = case.get("expected", dict), dict(case.get("request", dict))
    with tempfile.TemporaryDirectory() as folder:
        hooks = Path(folder, "hooks")
        _write(hooks, _identifier(request), case.members.get("hookResponse"))
        # What the gateway says of itself would stand among the lines of the cases.
        with structlog.testing.capture_logs():
            status, body = asyncio.run(_called(Path(folder), hooks, request))
    wanted = _outcome(member(expected, "httpStatus", int), expected.get("body"), request)
    got = _outcome(status, json.loads(body) if expected.get("body") and status == 200 else None, request)
    if case.members.get("hookError"):
        wanted["message"] = got["message"] = ""
    difference = ""
    if not wanted.get("allowed", True) and wanted.pop("object", None) is not None and got.pop("object", None) is None:
        difference = DENIED_PATCH
    agrees = same(wanted, got)
    return Result(expected=wanted, got=got, agrees=agrees and not difference, difference=difference if agrees else "")


def _identifier(request: dict[str, Any]) -> str:
    """The binding's name; the path of a request that names a hook is made that of the name."""
    path = member(request, "path", str)
    head, slash, identifier = path.rpartition("/")
    if head != "/hooks":
        return "h.example.com"
    request["path"] = f"{head}{slash}{identifier}-example-com"
    return f"{identifier}.example.com"


def _write(hooks: Path, binding: str, response: Any) -> None:
    hooks.mkdir()
    bindings = [{"name": binding, "rules": _RULES}]
    (hooks / "config.json").write_text(json.dumps({"configVersion": "v1", "kubernetesMutating": bindings}))
    if response is not None:
        (hooks / "response.json").write_text(json.dumps(response))
    (hooks / "hook").write_text(_HOOK)
    (hooks / "hook").chmod(0o755)


async def _called(folder: Path, hooks: Path, request: dict[str, Any]) -> tuple[int, bytes]:
    directory = HookDirectory(hooks)
    text, _ = await directory.read()
    settings = Settings(
        listen=("127.0.0.1", 0),
        admin_listen=("127.0.0.1", 0),
        tls_dev_dir=folder / "tls",
        hooks=directory.configuration,
        worker_startup_timeout=_PATIENCE,
        transport_config=TransportConfig(hooks=HookWorkerFactory()),
    )
    gateway = Gateway(load([text]), settings)
    (host, port), _ = await gateway.start()
    try:
        assert gateway.certificates is not None
        context = ssl.create_default_context(cafile=gateway.certificates.ca_file)
        return await asyncio.to_thread(_sent, host, port, context, request)
    finally:
        await gateway.stop(drain=False)


def _sent(host: str, port: int, context: ssl.SSLContext, request: dict[str, Any]) -> tuple[int, bytes]:
    connection = http.client.HTTPSConnection(host, port, timeout=_PATIENCE, context=context)
    kind = member(request, "contentType", str, "")
    try:
        connection.request(
            member(request, "method", str),
            member(request, "path", str),
            _body(request) or None,
            {"Content-Type": kind} if kind else {},
        )
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def _body(request: dict[str, Any]) -> bytes:
    """The body, with metadata in its object."""
    text = member(request, "body", str, "")
    try:
        review = json.loads(text)
        review["request"]["object"].setdefault("metadata", {})
    except (ValueError, KeyError, TypeError, AttributeError):
        return text.encode()
    return json.dumps(review).encode()


def _outcome(status: int, review: Any, request: dict[str, Any]) -> dict[str, Any]:
    outcome: dict[str, Any] = {"status": status}
    if not isinstance(review, dict):
        return outcome
    response = member(review, "response", dict)
    reported = member(response, "status", dict, {})
    outcome |= {name: review.get(name) for name in ("apiVersion", "kind")}
    outcome |= {"uid": response.get("uid"), "allowed": response.get("allowed")}
    outcome |= {
        "code": reported.get("code"),
        "message": reported.get("message") or "",
        "warnings": response.get("warnings"),
    }
    if response.get("patch"):
        patch = base64.b64decode(response["patch"])
        target = json.loads(_body(request))["request"]["object"]
        outcome["object"] = apply_json_patch(target, patch, dialect=PatchDialect.RFC_6902)
    return outcome
