"""Generated webhooks: what they do, how they are registered, and a server that does it.

What a webhook does stands in its path, ``/WORD/KEY/OTHER``; keys are those of annotations. It depends on the object
alone.
"""

import base64
import copy
import json
import random
import ssl

from aiohttp import web

from tests.e2e.cluster import HOST, SERVICE, SERVICE_NAMESPACE
from tests.e2e.objects import namespace
from tests.e2e.policies import CONFIG_MAPS
from tests.webhooks.native import configuration, text, webhook

KEYS = "abcd"
SET = "e2e.example.com/set"
"""The label that says which set of webhooks an object is for."""

MUTATIONS = ("tag", "copy", "count", "data", "drop", "swap")
REFUSALS = ("deny", "require", "break")
OBSERVATIONS = ("warn", "pass")

ERRING = "object.metadata.annotations['"
"""How a condition begins that has an error without the annotation."""


def _mutate(word, one, other, notes, data):
    """Change annotations and data: each of these changes nothing when it is done again."""
    match word:
        case "tag":
            notes.setdefault(one, "tagged")
        case "copy" if one in notes:
            notes[other] = notes[one]
        case "count":
            notes[one] = str(len(data))
        case "data":
            data[one] = "set"
        case "drop":
            notes.pop(one, None)
        case "swap" if notes.get(one, "") > notes.get(other, ""):
            notes[one], notes[other] = notes.get(other, ""), notes[one]


def _response(word, one, other, obj):
    """An AdmissionResponse without its uid; None: an HTTP error."""
    there = one in (obj["metadata"].get("annotations") or {})
    if (word == "deny" and there) or (word == "require" and not there):
        status = {"code": 418, "reason": "Teapot", "message": f"{word} {one}: {sorted(obj.get('data') or {})}"}
        return {"allowed": False, "status": status, "warnings": [f"{word} warned"]}
    if word == "break" and there:
        return None
    if word == "warn":
        return {"allowed": True, "warnings": [f"{one} is {there}"], "auditAnnotations": {one: str(there)}}
    if word not in MUTATIONS:
        return {"allowed": True}
    before = {"annotations": dict(obj["metadata"].get("annotations") or {}), "data": dict(obj.get("data") or {})}
    after = copy.deepcopy(before)
    _mutate(word, one, other, after["annotations"], after["data"])
    paths = {"annotations": "/metadata/annotations", "data": "/data"}
    # An empty map would be there for the next policy of an entry; between entries, kube-apiserver drops it.
    changed = [
        {"op": "add", "path": paths[name], "value": value} if value else {"op": "remove", "path": paths[name]}
        for name, value in after.items()
        if value != before[name]
    ]
    if not changed:
        return {"allowed": True}
    return {"allowed": True, "patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(changed).encode()).decode()}


class WebhookServer:
    """``async with WebhookServer(pair) as server``: it serves all paths at ``server.port``, in the test's own loop."""

    def __init__(self, pair):
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._context.load_cert_chain(*pair)
        self.port = 0

    async def __aenter__(self):
        self._runner = web.ServerRunner(web.Server(self._judge), shutdown_timeout=0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._context)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *exc_info):
        await self._runner.cleanup()

    async def _judge(self, request):
        review = json.loads(await request.read())
        called = review.pop("request")
        response = self.respond(request.path.strip("/"), called)
        if response is None:
            return web.Response(status=500, text="broken")
        return web.json_response(review | {"response": {"uid": called["uid"]} | response})

    def respond(self, path, called):
        """The response to a request, without its uid; None: an HTTP error."""
        return _response(*path.split("/"), called["object"])


class WebhookSet:
    """The webhooks of one seed: some mutating ones, then some validating ones, of which at most one refuses.

    (Of several refusals kube-apiserver shows the one that came first.)
    """

    def __init__(self, seed):
        self.name = f"s{seed:03d}"
        self._random = random.Random(seed)
        words = self._random.choices((*MUTATIONS, "deny", "break"), weights=[5] * len(MUTATIONS) + [1, 1], k=4)
        self._mutating = [self._hook(word, phase="m") for word in words[: self._random.randint(1, 4)]]
        words = [self._random.choice(REFUSALS), *self._random.choices(OBSERVATIONS, k=2)]
        self._random.shuffle(words)
        self._validating = [self._hook(word, phase="v") for word in words[: self._random.randint(1, 3)]]
        self.objects = [self._object() for _ in range(3)]

    @property
    def may_match_later(self):
        """Whether a webhook that did not match at first may match when its entry is called again (a difference)."""
        return any(
            fields["reinvocationPolicy"] == "IfNeeded" and "matchConditions" in fields for _, fields in self._mutating
        )

    @property
    def may_err_later(self):
        """Whether a mutating webhook's condition may have an error in the second round alone (a difference)."""
        return any(map(_may_err, self._mutating))

    @property
    def may_refuse_twice(self):
        """Whether a validating webhook's condition may refuse beside the webhook that does (a difference)."""
        return any(map(_may_err, self._validating))

    def _hook(self, word, *, phase):
        """Path and fields of one webhook."""
        pick = self._random.choice
        one, other = self._random.sample(KEYS, 2)
        fields = {"failurePolicy": pick(["Fail", "Ignore"])}
        if pick([True, False]):
            fields["matchConditions"] = [{"name": "mine", "expression": self._condition()}]
        if phase == "m":
            fields["reinvocationPolicy"] = pick(["Never", "IfNeeded"])
        labels = {SET: self.name} | ({"team": "a"} if pick([True, False, False]) else {})
        return f"{word}/{one}/{other}", fields | {"objectSelector": {"matchLabels": labels}}

    def _condition(self):
        key = self._random.choice(KEYS)
        return self._random.choice(
            [
                f"has(object.metadata.annotations) && '{key}' in object.metadata.annotations",
                f"!has(object.metadata.annotations) || !('{key}' in object.metadata.annotations)",
                f"object.metadata.?annotations[?'{key}'].orValue('') != 'tagged'",
                "size(object.data) < 2",
                f"{ERRING}{key}'] != 'x'",
            ]
        )

    def _object(self):
        """Annotations, data and labels of an object for this set."""
        annotations = {key: self._random.choice("xyz") for key in KEYS if self._random.random() < 0.4}
        data = {key: "given" for key in KEYS if self._random.random() < 0.3}
        return annotations, data, {SET: self.name} | ({"team": "a"} if self._random.random() < 0.5 else {})

    def native(self, authority, port):
        """As configurations of webhooks."""
        made = []
        for kind, hooks in (("Mutating", self._mutating), ("Validating", self._validating)):
            named = []
            for index, (path, fields) in enumerate(hooks):
                service = {"namespace": SERVICE_NAMESPACE, "name": SERVICE, "path": f"/{path}", "port": port}
                name = f"{kind[0].lower()}{index}.{self.name}.example.com"
                named.append(webhook(name, {"service": service}, authority, rules=CONFIG_MAPS, **fields))
            made.append(configuration(kind, self.name, *named))
        return made


def _may_err(hook):
    _, fields = hook
    conditions = fields.get("matchConditions", ())
    return fields["failurePolicy"] == "Fail" and any(each["expression"].startswith(ERRING) for each in conditions)


def grouped(configurations):
    """Native configurations as policies that share entries, with a worker for each path."""
    api = {"apiVersion": "admission-gateway.dev/v1alpha1"}
    workers = {}
    for obj in configurations:
        policies = []
        for hook in obj["webhooks"]:
            client = hook["clientConfig"]
            name = client["service"]["path"].strip("/").replace("/", "-")
            metadata = {"metadata": {"name": name}}
            workers[name] = api | {"kind": "Worker", "spec": {"webhook": client}} | metadata
            kept = {key: value for key, value in hook.items() if key not in {"clientConfig", "admissionReviewVersions"}}
            conflicts = {"onConflict": "allow"} if obj["kind"].startswith("Mutating") else {}
            policies.append(kept | {"worker": name} | conflicts)
        kind = obj["kind"].replace("WebhookConfiguration", "PolicyConfiguration")
        metadata = {"metadata": {"name": f"grouped-{obj['metadata']['name']}"}}
        yield api | {"kind": kind, "policies": policies} | metadata
    yield from workers.values()


ADDRESS = f"{HOST}:{{port}}=127.0.0.1:{{port}}"
"""What ``--resolve`` needs, so that the gateway finds the server as kube-apiserver does."""


async def register_three_ways(cluster, server, native, *flags):
    """Register native configurations directly, isolated behind the gateway, and grouped, for a namespace each. Returns
    the namespaces.
    """
    where = [cluster.other, cluster.namespace, f"{cluster.namespace}-grouped"]
    for name in (where[0], where[2]):
        assert (await cluster.client.create(namespace(name))).code == 201
    documents = []
    for obj, name in ((obj, name) for name in where[1:] for obj in native):
        named = copy.deepcopy(obj)
        for hook in named["webhooks"]:
            hook["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": name}}
        documents.append(named)
    isolated, together = documents[: len(native)], documents[len(native) :]
    cluster.policies.write_text(text(*isolated, *grouped(together)))
    gateway = await cluster.start("--resolve", ADDRESS.format(port=server.port), *flags)
    for obj in native:
        await cluster.apply_webhooks(copy.deepcopy(obj), where[0])
    await cluster.register(gateway.port, where[2])
    return where
