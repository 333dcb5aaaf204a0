"""The side of shell-operator that kube-apiserver sees: ``POST /hooks/ID``, for hooks that are run as its documentation
says. It is what is there before the page begins; the gateway's own way to run hooks is tested elsewhere.
"""

import http.server
import json
import os
import ssl
import subprocess
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path


class _Handler(http.server.BaseHTTPRequestHandler):
    """``hooks``, by id: the executable and its binding, with the type of its context."""

    protocol_version = "HTTP/1.1"
    hooks = None

    def do_POST(self):
        """Run the hook."""
        hook, binding, kind = self.hooks[self.path.partition("?")[0].removeprefix("/hooks/")]
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        context = [{"binding": binding, "type": kind, "review": {"request": review["request"]}}]
        answer = _run(hook, context)
        response = {"uid": review["request"]["uid"], "allowed": answer.get("allowed", False)}
        if not response["allowed"]:
            response["status"] = {"code": 403, "message": answer.get("message", "")}
        if "patch" in answer:
            response |= {"patchType": "JSONPatch", "patch": answer["patch"]}
        body = json.dumps({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *args):  # noqa: A002 - http.server's name
        """Nothing is logged."""


def _run(hook, context):
    with tempfile.TemporaryDirectory() as folder:
        called, answered = Path(folder) / "context.json", Path(folder) / "answer.json"
        called.write_text(json.dumps(context))
        answered.touch()
        paths = {"BINDING_CONTEXT_PATH": str(called), "VALIDATING_RESPONSE_PATH": str(answered)}
        subprocess.run([hook], env={**os.environ, **paths}, cwd=hook.parent, check=True, timeout=30)
        return json.loads(answered.read_text())


class _Server(http.server.ThreadingHTTPServer):
    """A thread for each connection; an open connection does not delay the end."""

    daemon_threads = True
    block_on_close = False


@contextmanager
def operator(hooks, pair):
    """Serve ``hooks`` (by id: path, binding, type) over HTTPS with this certificate and key; gives the port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*pair)
    server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"hooks": hooks}))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
