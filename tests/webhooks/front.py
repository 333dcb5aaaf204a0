"""A webhook that knows nothing of the gateway: AdmissionReviews over HTTPS, as Kubernetes defines them. It serves the
sample policies' functions, each on its own path with its settings built in.
"""

import base64
import http.server
import json
import ssl
import sys
import threading
from contextlib import contextmanager

from admission_worker import Deny
from admission_worker.samples import worker
from admission_worker.testing import review


class _Handler(http.server.BaseHTTPRequestHandler):
    """``routes``, by path: the name of a policy and its settings."""

    protocol_version = "HTTP/1.1"
    routes = None

    def do_POST(self):
        """Judge."""
        policy, settings = self.routes[self.path.partition("?")[0]]
        called = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        response = {"uid": called["request"]["uid"]} | _response(review(worker, policy, called, settings))
        body = json.dumps({"apiVersion": called["apiVersion"], "kind": called["kind"], "response": response}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *args):  # noqa: A002 - http.server's name
        """Nothing is logged."""


def _response(answer):
    """An SDK's answer as an AdmissionResponse without its uid."""
    notes = {"warnings": list(answer.warnings), "auditAnnotations": dict(answer.audit_annotations)}
    if isinstance(answer, Deny):
        return {"allowed": False, "status": _status(answer)} | notes
    if answer.change is None:
        return {"allowed": True} | notes
    patch = base64.b64encode(answer.change.content).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": patch} | notes


def _status(denied):
    causes = [{"reason": each.reason, "message": each.message, "field": each.field} for each in denied.causes]
    return {"code": denied.code, "message": denied.message, "reason": denied.reason, "details": {"causes": causes}}


class _Server(http.server.ThreadingHTTPServer):
    """A thread for each connection; open connections do not delay the end."""

    daemon_threads = True
    block_on_close = False

    def handle_error(self, request, client_address):
        """The client has gone: the gateway cancels a call when an earlier policy denies."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


@contextmanager
def front(routes, pair):
    """Serve ``routes`` (by path: policy and settings) over HTTPS with this certificate and key; gives the port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*pair)
    server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"routes": routes}))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
