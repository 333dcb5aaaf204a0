"""A cluster, as far as the pages about migration need one: objects that kubectl keeps and prints, Services that lead to
processes here, and admission as kube-apiserver goes about it.

It stands in for what cannot run in a test. What is called is real: webhooks, gateways, workers, over TLS with the names
and authorities that are registered. Objects that register webhooks must pass Kubernetes' validation.
"""

import copy
import json
import os
import uuid
from pathlib import Path

from tests.migrate.admission import PHASES, RESOURCES, Refused, admit, key


class Cluster:
    """The objects in a folder, one file, so that kubectl is a process of its own. Reading it is always one moment."""

    def __init__(self, folder):
        self._file = Path(folder) / "cluster.json"

    def _read(self):
        if not self._file.exists():
            return {"objects": {}, "pods": {}, "version": 1000}
        return json.loads(self._file.read_text())

    def _write(self, state):
        fresh = self._file.with_suffix(f".{uuid.uuid4()}")
        fresh.write_text(json.dumps(state))
        fresh.replace(self._file)

    def run(self, namespace, app, port):
        """Pods with the label ``app`` listen on this port of this machine from now on."""
        state = self._read()
        state["pods"][f"{namespace}/{app}"] = port
        self._write(state)

    def get(self, kind, name, namespace=""):
        """The object, as the API server has it."""
        found = self._read()["objects"].get(key(kind, namespace, name))
        if found is None:
            raise Refused(f'{RESOURCES[kind].lower()} "{name}" not found', reason="NotFound", code=404)
        return found

    def put(self, obj, *, must="either"):
        """Create or replace an object; gives ``created``, ``configured`` or ``unchanged``.

        ``must``: ``create`` one that is not there, or ``replace`` one that is.
        """
        state, kind = self._read(), obj["kind"]
        metadata = obj["metadata"]
        place = key(kind, metadata.get("namespace", ""), metadata["name"])
        old = state["objects"].get(place)
        if old is None and must == "replace":
            self.get(kind, metadata["name"], metadata.get("namespace", ""))
        if old is not None and must == "create":
            raise Refused(f'{RESOURCES[kind]} "{metadata["name"]}" already exists', reason="AlreadyExists", code=409)
        # An object that is new has no version yet, and that of one that is there must be the one that it has.
        given = metadata.get("resourceVersion")
        if given and (old is None or given != old["metadata"]["resourceVersion"]):
            raise Refused("resourceVersion: the object is another one by now", reason="Conflict", code=409)
        _check(obj)
        fresh = copy.deepcopy(obj)
        if old is not None and _plain(old) == _plain(fresh):
            return "unchanged"
        made = old["metadata"] if old is not None else {"uid": str(uuid.uuid4()), "generation": 0}
        fresh["metadata"] |= {
            "creationTimestamp": "2026-11-21T12:00:00Z",
            "generation": made["generation"] + 1,
            "resourceVersion": str(state["version"] + 1),
            "uid": made["uid"],
        }
        state["objects"][place] = fresh
        self._write(state | {"version": state["version"] + 1})
        return "configured" if old is not None else "created"

    def delete(self, kind, name, namespace=""):
        """Take an object away."""
        self.get(kind, name, namespace)
        state = self._read()
        del state["objects"][key(kind, namespace, name)]
        self._write(state)

    def registered(self):
        """All webhooks, by the kind and name of their object; objects without any are left out."""
        objects = self._read()["objects"].values()
        named = {(obj["kind"], obj["metadata"]["name"]): obj.get("webhooks") for obj in objects}
        return {name: webhooks for name, webhooks in named.items() if webhooks}

    def admit(self, obj, *, operation="CREATE", user="jane"):
        """What would be stored of an object, and the warnings. Raises Refused."""
        return admit(self._read, obj, operation=operation, user=user)


def _plain(obj):
    kept = {"annotations", "labels", "name", "namespace"}
    return obj | {"metadata": {name: value for name, value in obj["metadata"].items() if name in kept}}


def _check(obj):
    """A configuration of webhooks is one, in Kubernetes' own words where it is not."""
    if obj["kind"] in PHASES:
        from gateway.policies.configuration import load  # noqa: PLC0415 - kubectl starts often, and checks seldom
        from gateway.policies.decoding.texts import SourceText  # noqa: PLC0415 - kubectl starts often, and checks seldom

        loaded = load([SourceText(name=obj["metadata"]["name"], content=json.dumps(obj).encode())])
        if loaded.errors:
            raise Refused("\n".join(map(str, loaded.errors)), reason="Invalid", code=422)


def here():
    """The cluster of this process: that of the folder in ``CLUSTER``."""
    return Cluster(os.environ["CLUSTER"])
