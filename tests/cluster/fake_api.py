"""A Kubernetes API that stores objects, with latencies and errors to order. The real one is in tests/e2e."""

import asyncio
import copy

from gateway.cluster.errors import ApiError


class FakeApi:
    """One store. ``client()`` is a connection to it, with faults of its own."""

    def __init__(self):
        self.objects = {}
        self.writes = 0
        self.refused = None

    def client(self, faults=lambda: (0.0, None, 0.0)):
        return FakeClient(self, faults)

    def apply(self, method, path, body, query):
        collection, _, name = path.rpartition("/")
        if method == "GET" and path.endswith("/leases"):
            return self._list(path, query)
        if method == "PATCH" and query and "force" in query and path not in self.objects:
            method, path = "POST", collection
        if method == "POST":
            collection, name = path, body["metadata"]["name"]
            path = f"{collection}/{name}"
        stored = self.objects.get(path)
        if method == "POST" and stored is not None:
            raise ApiError(f"POST {path}", 409, "AlreadyExists", "already exists")
        if method != "POST" and stored is None:
            raise ApiError(f"{method} {path}", 404, "NotFound", "not found")
        if method == "GET":
            return copy.deepcopy(stored)
        self._check(path, body)
        if method == "DELETE":
            return self.objects.pop(path)
        made = copy.deepcopy(body) if method in {"POST", "PUT"} else _merged(stored, body)
        if self.refused is not None and (error := self.refused(method, path, made)):
            raise error
        self.writes += 1
        made["metadata"]["resourceVersion"] = str(self.writes)
        made["metadata"].setdefault("uid", f"uid-{self.writes}")
        if "dryRun" not in (query or {}):
            self.objects[path] = made
        return copy.deepcopy(made)

    def _list(self, path, query):
        items = [copy.deepcopy(value) for key, value in self.objects.items() if key.startswith(f"{path}/")]
        label = (query or {}).get("labelSelector")
        return {"items": [each for each in items if not label or label in (each["metadata"].get("labels") or {})]}

    def _check(self, path, body):
        """A resource version that is sent must be the stored one."""
        sent = (body.get("metadata") or body.get("preconditions") or {}).get("resourceVersion") if body else None
        if sent and path in self.objects and sent != self.objects[path]["metadata"]["resourceVersion"]:
            raise ApiError(path, 409, "Conflict", "the object has been modified")


class FakeClient:
    """``faults()`` gives for each request: seconds before it takes effect, an ApiError or None, seconds after."""

    def __init__(self, api, faults):
        self._api, self.faults = api, faults
        self.sent = []

    async def send(self, method, path, body=None, *, query=None, content_type=None, accept=None):
        before, error, after = self.faults()
        body = copy.deepcopy(body)
        self.sent.append((method, path))
        # What was sent takes effect even if no caller waits for the response any more.
        effect = asyncio.ensure_future(self._effect(method, path, body, query, before, error))
        effect.add_done_callback(lambda done: done.cancelled() or done.exception())
        result = await asyncio.shield(effect)
        await asyncio.sleep(after)
        if error == "after":
            raise ApiError(f"{method} {path}", 0, "", "connection reset")
        return result

    async def _effect(self, method, path, body, query, before, error):
        await asyncio.sleep(before)
        if error == "before":
            raise ApiError(f"{method} {path}", 0, "", "connection refused")
        return self._api.apply(method, path, body, query)


def _merged(stored, patch):
    made = copy.deepcopy(stored)
    for key, value in patch.items():
        if value is None:
            made.pop(key, None)
        elif isinstance(value, dict):
            made[key] = _merged(made.get(key) or {}, value)
        else:
            made[key] = value
    return made
