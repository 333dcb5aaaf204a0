"""An OTLP receiver for tests: gRPC and HTTP, in threads of its own, with the spans that it got."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as pb
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as service

WAIT_SECONDS = 60.0


class ReceivedSpan:
    """One span, with the attributes of its process."""

    def __init__(self, resource, span):
        self.name = span.name
        self.trace_id = span.trace_id.hex()
        self.span_id = span.span_id.hex()
        self.parent_id = span.parent_span_id.hex()
        self.kind = span.kind
        self.state = span.trace_state
        self.seconds = (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9
        self.started = span.start_time_unix_nano / 1e9
        self.attributes = _attributes(span.attributes)
        self.resource = _attributes(resource.attributes)
        self.links = [(link.trace_id.hex(), link.span_id.hex()) for link in span.links]
        self.is_error = span.status.code == span.status.STATUS_CODE_ERROR
        self.status = span.status.message

    @property
    def service(self):
        """The name of the service that made it."""
        return self.resource.get("service.name", "")

    def __repr__(self):
        return f"<{self.service}: {self.name} {self.span_id} in {self.parent_id or 'nothing'} {self.attributes}>"


class Receiver(service.TraceServiceServicer):
    """Keeps all spans. ``refusal``: a gRPC status code, an HTTP status, or "hang", which it answers instead."""

    def __init__(self):
        self.spans = []
        self.headers = []
        self.batches = 0
        self.refusal = None
        self.closing = threading.Event()

    def Export(self, request, context):  # noqa: N802 - the contract's name
        """Of gRPC."""
        self.headers.append(dict(context.invocation_metadata()))
        if self.refusal == "hang":
            self.closing.wait(WAIT_SECONDS)
        elif self.refusal is not None:
            self.batches += 1
            context.abort(self.refusal, "not today")
        self.take(request)
        return pb.ExportTraceServiceResponse()

    def take(self, request):
        """Keep what a request has."""
        self.spans += [
            ReceivedSpan(of_resource.resource, span)
            for of_resource in request.resource_spans
            for of_scope in of_resource.scope_spans
            for span in of_scope.spans
        ]
        self.batches += 1

    def named(self, name):
        """The spans of this name."""
        return [span for span in self.spans if span.name == name]

    def children(self, parent):
        """The names of a span's children, in the order of their starts."""
        found = [span for span in self.spans if (span.trace_id, span.parent_id) == (parent.trace_id, parent.span_id)]
        return [span.name for span in sorted(found, key=lambda span: span.started)]


@contextmanager
def otlp_grpc():
    """A receiver over gRPC: its URL, and the receiver."""
    receiver = Receiver()
    server = grpc.server(ThreadPoolExecutor(4))
    service.add_TraceServiceServicer_to_server(receiver, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"http://127.0.0.1:{port}", receiver
    finally:
        receiver.closing.set()
        server.stop(0).wait()


@contextmanager
def otlp_http():
    """The same over HTTP, with protobuf."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.headers.append(dict(self.headers) | {"path": self.path})
            if receiver.refusal == "hang":
                receiver.closing.wait(WAIT_SECONDS)
            receiver.batches += receiver.refusal is not None
            if receiver.refusal is None:
                receiver.take(pb.ExportTraceServiceRequest.FromString(body))
            self.send_response(receiver.refusal if isinstance(receiver.refusal, int) else 200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    serving = threading.Thread(target=server.serve_forever, args=(0.05,))
    serving.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", receiver
    finally:
        receiver.closing.set()
        server.shutdown()
        serving.join()
        server.server_close()


def _attributes(pairs):
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value") or "string_value") for pair in pairs}
