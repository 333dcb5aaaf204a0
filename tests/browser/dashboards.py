"""A gateway with the examples' policies, and the dashboard as a user sees it in a browser."""

import json
import os
import socket
import urllib.request
import uuid
from pathlib import Path
from urllib.parse import urlsplit

from tests.examples import EXAMPLES
from tests.integration.process import WAIT_SECONDS, Serving

ARTIFACTS = Path(__file__).parents[2] / ".run" / "browser"
"""Where the tests leave screenshots of each page."""

AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"

_VIOLATIONS = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => {
  window.violations.push(event.violatedDirective + " " + event.blockedURI);
});
"""


KINDS = {
    "kind": {"group": "", "version": "v1", "kind": "Secret"},
    "resource": {"group": "", "version": "v1", "resource": "secrets"},
    "requestKind": {"group": "", "version": "v1", "kind": "Secret"},
    "requestResource": {"group": "", "version": "v1", "resource": "secrets"},
}
"""The kinds of a request about a Secret, for those of another example."""


def example(name):
    """One of the examples' reviews, by the beginning of its file's name."""
    (path,) = (EXAMPLES / "reviews").glob(f"{name}*.json")
    return json.loads(path.read_text())


def free_port():
    """A port of this machine that nothing uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Gateway(Serving):
    """A gateway process, with the address of its dashboard."""

    def __init__(self, policies, trusted, *arguments, admin_port=0):
        listen = {"ADMISSION_GATEWAY_ADMIN_LISTEN": f"127.0.0.1:{admin_port}"}
        super().__init__("--policies", policies, *arguments, env=os.environ | listen)
        self.trusted = trusted

    @property
    def dashboard(self):
        """Where it is."""
        return f"http://127.0.0.1:{self.admin_port}/ui/"

    def send(self, review, *, phase="validate", **request):
        """Send a review with a new uid and these members of its request: the response."""
        review = {**review, "request": {**review["request"], "uid": str(uuid.uuid4()), **request}}
        url = f"https://127.0.0.1:{self.port}/{phase}?timeout=10s"
        sent = urllib.request.Request(url, json.dumps(review).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(sent, timeout=WAIT_SECONDS, context=self.trusted) as answer:  # noqa: S310 - our own gateway
            return json.load(answer)["response"]


class Dashboard:
    """A tab of a browser, and all that must never happen in it."""

    def __init__(self, context, url):
        self.url = url
        self.errors = []
        self.requests = []
        self.page = context.new_page()
        self.page.set_default_timeout(WAIT_SECONDS * 1000)
        self.page.add_init_script(_VIOLATIONS)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)
        self.page.on("request", lambda request: self.requests.append(request.url))

    def open(self, query=""):
        """Load a page of the dashboard."""
        self.page.goto(f"{self.url}{query}")
        return self

    def row(self, text):
        """The rows of a table that contain a text."""
        return self.page.locator("tbody tr", has_text=text)

    def has(self, text):
        """Wait until a text is shown."""
        self.page.get_by_text(text).first.wait_for()

    def press(self, *keys):
        """Press keys."""
        for key in keys:
            self.page.keyboard.press(key)

    def tab_to(self, name):
        """Press Tab until an element with this text has the focus."""
        for _ in range(100):
            self.press("Tab")
            if self.page.evaluate("document.activeElement.innerText || ''").strip() == name:
                return
        raise AssertionError(f"Tab never reached {name!r}")

    def inaccessible(self):
        """What axe finds wrong, by the rules of WCAG 2.1 A and AA. (The policy of the page forbids to add scripts.)"""
        self.page.evaluate(AXE.read_text())
        options = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]}
        found = self.page.evaluate("(options) => axe.run(document, options)", options)["violations"]
        return [(each["id"], node["html"], node["failureSummary"]) for each in found for node in each["nodes"]]

    def screenshot(self, name, **options):
        """Leave a picture in the artifacts."""
        ARTIFACTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=ARTIFACTS / name, **options)

    def close(self, expected=()):
        """Close it; all went well: no error but those with these texts, no violation, no request to another origin."""
        violations = self.page.evaluate("window.violations")
        self.page.close()
        unexpected = [error for error in self.errors if not any(text in error for text in expected)]
        assert (unexpected, violations) == ([], [])
        origins = {urlsplit(url).netloc for url in self.requests if not url.startswith("data:")}
        assert origins == {urlsplit(self.url).netloc}


def many_policies(count):
    """The text of policy files with this many policies, of a worker that is not there."""
    yield json.dumps(
        {
            "apiVersion": "admission-gateway.dev/v1alpha1",
            "kind": "Worker",
            "metadata": {"name": "away"},
            "spec": {"grpc": {"target": "unix:/nonexistent/worker.sock"}},
        }
    )
    rules = [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["secrets"]}]
    for number, batch in enumerate(range(first, min(first + 100, count)) for first in range(0, count, 100)):
        policies = [
            {
                "name": f"p{each:04}.example.com",
                "worker": "away",
                "sideEffects": "None",
                "rules": rules,
                "failurePolicy": "Ignore",
            }
            for each in batch
        ]
        yield json.dumps(
            {
                "apiVersion": "admission-gateway.dev/v1alpha1",
                "kind": "ValidatingPolicyConfiguration",
                "metadata": {"name": f"team-{number:02}"},
                "policies": policies,
            }
        )
