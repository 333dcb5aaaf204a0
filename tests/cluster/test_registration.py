"""The registration of a gateway with several replicas, in a time that jumps."""

import asyncio
import contextlib
import copy

import pytest

from gateway.cluster.election import LEASE_SECONDS, lease_path
from gateway.cluster.errors import ApiError
from gateway.cluster.registration_controller import (
    LOOK_SECONDS,
    WAIT_SECONDS,
    DesiredRegistration,
    RegistrationController,
    RegistrationError,
)
from gateway.cluster.replica_reports import EXPIRY_SECONDS
from gateway.cluster.suspension import SUSPENDED, NotUninstalledError, lease_name, resume, uninstall
from gateway.cluster.webhook_objects import OWNER, RESOURCES, webhooks_path
from gateway.policies.model import Configuration
from gateway.policies.workers.targets import ServiceReference
from gateway.registration.entries import make_entries
from gateway.registration.registered_entries import ANNOTATION, decode
from gateway.registration.webhook_configurations import Registrar, register
from gateway.telemetry.labels import RegistrationState
from tests.cluster.fake_api import FakeApi
from tests.cluster.virtual_time import run
from tests.world import policy

NAME = "admission-gateway"
MUTATING, VALIDATING = (webhooks_path(kind, NAME) for kind in RESOURCES)
SETTLED = LEASE_SECONDS + EXPIRY_SECONDS + 5


class Replica:
    """A replica of a gateway with mutating policies of these names."""

    def __init__(self, cluster, names, service):
        self.cluster, self.service = cluster, service
        self.client = cluster.api.client()
        self.states = {}
        self.ca_bundle = b""
        self.error = self.finding = None
        self.incomplete = ""
        self.load(names)
        self.controller = RegistrationController(
            self.client, name=NAME, service=service, desired=self._desired, entries=lambda: self.entries, events=self
        )
        self._tasks = [asyncio.create_task(each) for each in (self.controller.run(), self.controller.report())]

    def load(self, names):
        policies = tuple(policy(name, isolate=True) for name in names)
        self.entries = make_entries(Configuration(mutating=policies, validating=(), workers={}, namespaces={}))

    def reload(self, *names):
        self.load(names)
        self.controller.changed()

    async def _desired(self):
        if self.error:
            raise RegistrationError(self.error)
        registrar = Registrar(name=NAME, service=self.service, ca_bundle=self.ca_bundle)
        objects = register(self.entries, registrar).objects
        return DesiredRegistration(objects=objects, examine=self._examine, incomplete=self.incomplete)

    async def _examine(self):
        if self.finding:
            raise RegistrationError(self.finding)

    def set(self, metric, value, *labels):
        self.states[labels[0]] = value

    @property
    def state(self):
        return next((state for state, value in self.states.items() if value), RegistrationState.STANDBY)

    async def stop(self):
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def kill(self):
        self.client.faults = lambda: (0.0, "before", 0.0)


class Cluster:
    def __init__(self):
        self.api = FakeApi()
        self.replicas = []

    def start(self, *names, service="gateway", namespace="gateways"):
        made = Replica(self, names, ServiceReference(namespace=namespace, name=service))
        self.replicas.append(made)
        return made

    @property
    def webhooks(self):
        return [each["name"] for each in self.api.objects[MUTATING]["webhooks"]]

    @property
    def members(self):
        """By registered entry the names of its policies."""
        registered = decode(self.api.objects[MUTATING]["metadata"]["annotations"][ANNOTATION])
        return {entry: [name.partition("/")[2] for name in each] for (entry, _), each in registered.entries.items()}

    def edit(self, path, **members):
        obj = self.api.objects[path]
        self.api.writes += 1
        self.api.objects[path] = {**copy.deepcopy(obj), **members}
        self.api.objects[path]["metadata"]["resourceVersion"] = str(self.api.writes)

    def annotate(self, path, **annotations):
        metadata = self.api.objects[path]["metadata"]
        self.edit(path, metadata={**metadata, "annotations": {**metadata["annotations"], **annotations}})

    @property
    def lease(self):
        return self.api.objects[lease_path("gateways", lease_name(NAME))]

    @property
    def reports(self):
        return [path for path in self.api.objects if path.endswith("-entries")]


@contextlib.asynccontextmanager
async def cluster():
    made = Cluster()
    try:
        yield made
    finally:
        await asyncio.gather(*(each.stop() for each in made.replicas))


def names(*policies):
    return [f"{each}.test.example.com" for each in policies]


def test_the_leader_registers_what_render_prints():
    """And says whose it is."""

    async def scenario():
        async with cluster() as own:
            leader, other = own.start("a", "b"), own.start("a", "b")
            await asyncio.sleep(SETTLED)
            assert own.webhooks == names("a", "b")
            assert own.api.objects[VALIDATING]["webhooks"] == []
            assert own.api.objects[MUTATING]["metadata"]["annotations"][OWNER] == "gateways/gateway"
            assert own.members == {name: names(*name[:1]) for name in names("a", "b")}
            assert {leader.state, other.state} == {RegistrationState.REGISTERED, RegistrationState.STANDBY}
            assert leader.controller.note is None

    run(scenario())


def test_an_unchanged_registration_is_not_written():
    """Whatever the API server says of it."""

    async def scenario():
        async with cluster() as own:
            leader = own.start("a")
            await asyncio.sleep(SETTLED)
            leader.client.sent.clear()
            await asyncio.sleep(60)
            assert {(method, path) for method, path in leader.client.sent if "webhookconfigurations" in path} == {
                ("GET", MUTATING),
                ("GET", VALIDATING),
            }

    run(scenario())


def test_an_edit_is_undone():
    """Of a webhook, and one that adds a webhook; labels and annotations of others stay."""

    async def scenario():
        async with cluster() as own:
            own.start("a")
            await asyncio.sleep(SETTLED)
            good = own.api.objects[MUTATING]["webhooks"]
            own.edit(MUTATING, webhooks=[{**good[0], "failurePolicy": "Ignore"}, {**good[0], "name": "mine.b.example"}])
            own.annotate(MUTATING, **{"example.com/team": "a"})
            await asyncio.sleep(LOOK_SECONDS + 0.1)
            assert own.api.objects[MUTATING]["webhooks"] == good
            assert own.api.objects[MUTATING]["metadata"]["annotations"]["example.com/team"] == "a"

    run(scenario())


def test_a_deletion_is_honoured_by_all_until_resume():
    """By the leader, by the next leader, and by a replica that starts later."""

    async def scenario():
        async with cluster() as own:
            first, second = own.start("a"), own.start("a")
            await asyncio.sleep(SETTLED)
            del own.api.objects[VALIDATING]
            await asyncio.sleep(5)
            for replica in (first, second):
                assert replica.state == RegistrationState.SUSPENDED
                assert "ValidatingWebhookConfiguration admission-gateway was deleted" in replica.controller.note
            await first.stop()
            await second.stop()
            third = own.start("b")
            await asyncio.sleep(SETTLED)
            assert own.webhooks == names("a")
            assert VALIDATING not in own.api.objects
            done = await resume(third.client, name=NAME, namespace="gateways")
            assert "resumed" in done[0]
            await asyncio.sleep(5)
            assert own.webhooks == names("b")
            assert VALIDATING in own.api.objects
            assert third.controller.note is None
            assert "nothing to do" in (await resume(third.client, name=NAME, namespace="gateways"))[0]

    run(scenario())


def test_the_annotation_suspends():
    """Edits stay, also after the annotation has gone; until resume."""

    async def scenario():
        async with cluster() as own:
            leader = own.start("a")
            await asyncio.sleep(SETTLED)
            own.annotate(MUTATING, **{SUSPENDED: "incident 7"})
            own.edit(MUTATING, webhooks=[])
            await asyncio.sleep(30)
            assert own.webhooks == []
            assert "incident 7" in leader.controller.note
            metadata = own.api.objects[MUTATING]["metadata"]
            own.edit(MUTATING, metadata={**metadata, "annotations": {OWNER: "gateways/gateway"}})
            await asyncio.sleep(30)
            assert own.webhooks == []
            await resume(leader.client, name=NAME, namespace="gateways")
            await asyncio.sleep(5)
            assert own.webhooks == names("a")

    run(scenario())


def test_uninstall_suspends_and_deletes():
    """With gateways running, without, and twice."""

    async def scenario():
        async with cluster() as own:
            leader = own.start("a")
            await asyncio.sleep(SETTLED)
            done = await uninstall(own.api.client(), name=NAME, namespace="gateways")
            assert [line.rpartition(": ")[2] for line in done[1:]] == ["deleted", "deleted"]
            await asyncio.sleep(SETTLED)
            assert MUTATING not in own.api.objects
            assert leader.state == RegistrationState.SUSPENDED
            await leader.stop()
            done = await uninstall(own.api.client(), name=NAME, namespace="gateways")
            assert [line.rpartition(": ")[2] for line in done[1:]] == ["there is none", "there is none"]

    run(scenario())


def test_uninstall_comes_first():
    """Before any gateway ever ran: none registers itself."""

    async def scenario():
        async with cluster() as own:
            await uninstall(own.api.client(), name=NAME, namespace="gateways")
            own.start("a")
            await asyncio.sleep(SETTLED)
            assert MUTATING not in own.api.objects

    run(scenario())


def test_uninstall_deletes_nothing_of_another_gateway():
    """It names the namespace."""

    async def scenario():
        async with cluster() as own:
            own.start("a")
            await asyncio.sleep(SETTLED)
            with pytest.raises(NotUninstalledError, match="belongs to the gateway gateways/gateway"):
                await uninstall(own.api.client(), name=NAME, namespace="others")
            assert own.webhooks == names("a")

    run(scenario())


def test_what_the_api_server_refuses_replaces_nothing():
    """Neither of the two objects; after the configuration has been corrected, both are registered."""

    async def scenario():
        async with cluster() as own:
            leader = own.start("a")
            await asyncio.sleep(SETTLED)

            def refused(method, path, obj):
                names = [each["name"] for each in obj.get("webhooks") or ()]
                return ApiError(f"{method} {path}", 422, "Invalid", "not b") if "b.test.example.com" in names else None

            own.api.refused = refused
            leader.reload("a", "b")
            await asyncio.sleep(100)
            assert own.webhooks == names("a")
            assert leader.state == RegistrationState.REFUSED
            assert "not b" in leader.controller.note
            leader.reload("a", "c")
            await asyncio.sleep(5)
            assert own.webhooks == names("a", "c")
            leader.error = "the configuration has 2 errors"
            leader.reload("d")
            await asyncio.sleep(5)
            assert own.webhooks == names("a", "c")
            assert leader.controller.note == "the configuration has 2 errors"

    run(scenario())


def test_what_could_lock_the_cluster_is_not_sent():
    """It is examined before each change; the finding is the state, until it has gone."""

    async def scenario():
        async with cluster() as own:
            leader = own.start("a")
            await asyncio.sleep(SETTLED)
            leader.finding = "it could lock the cluster"
            await asyncio.sleep(60)
            assert leader.state == RegistrationState.REGISTERED
            leader.reload("b")
            await asyncio.sleep(60)
            assert own.webhooks == names("a")
            assert leader.state == RegistrationState.REFUSED
            assert leader.controller.note == "it could lock the cluster"
            leader.finding = None
            await asyncio.sleep(31)
            assert own.webhooks == names("b")

    run(scenario())


def test_while_the_configuration_has_errors_nothing_is_unregistered():
    """What is sound is registered all the same, in its place."""

    async def scenario():
        async with cluster() as own:
            leader = own.start("a", "b", "c")
            await asyncio.sleep(SETTLED)
            leader.incomplete = "the configuration has 2 errors"
            leader.reload("c", "d")
            await asyncio.sleep(5)
            assert own.webhooks == names("a", "b", "c", "d")
            assert own.members.keys() == {*names("a", "b", "c", "d")}
            assert leader.controller.note == "the configuration has 2 errors"
            leader.incomplete = ""
            leader.reload("c", "d")
            await asyncio.sleep(5)
            assert own.webhooks == names("c", "d")
            assert own.members.keys() == {*names("c", "d")}

    run(scenario())


def test_two_gateways_of_one_name_do_not_fight():
    """The second touches nothing and says so, wherever it runs."""

    async def scenario():
        async with cluster() as own:
            own.start("a")
            await asyncio.sleep(SETTLED)
            writes = own.api.objects[MUTATING]["metadata"]["resourceVersion"]
            second = own.start("b", namespace="others")
            third = own.start("b", service="another", namespace="others")
            await asyncio.sleep(SETTLED)
            assert own.api.objects[MUTATING]["metadata"]["resourceVersion"] == writes
            assert RegistrationState.CONFLICT in {second.state, third.state}
            assert "leads to gateways/gateway, and this gateway is" in (second.controller.note or third.controller.note)

    run(scenario())


def test_what_render_registered_is_taken_over():
    """If all of it leads to this gateway: it has no owner yet. The caBundle that a controller added stays."""

    async def scenario():
        async with cluster() as own:
            replica = own.start("a")
            for path, obj in zip((MUTATING, VALIDATING), (await replica._desired()).objects, strict=True):
                obj["metadata"]["resourceVersion"] = "0"
                own.api.objects[path] = obj
            own.api.objects[MUTATING]["webhooks"][0]["clientConfig"]["caBundle"] = "Q0E="
            replica.reload("a", "b")
            await asyncio.sleep(SETTLED)
            assert own.webhooks == names("a", "b")
            bundles = [each["clientConfig"]["caBundle"] for each in own.api.objects[MUTATING]["webhooks"]]
            assert bundles == ["Q0E=", "Q0E="]

    run(scenario())


def test_a_new_entry_waits_for_all_replicas():
    """It is registered as soon as the last one serves it."""

    async def scenario():
        async with cluster() as own:
            all_of_them = [own.start("a") for _ in range(3)]
            await asyncio.sleep(SETTLED)
            for replica in all_of_them[:2]:
                replica.reload("a", "b")
            await asyncio.sleep(WAIT_SECONDS / 2)
            assert own.webhooks == names("a")
            all_of_them[2].reload("a", "b")
            await asyncio.sleep(2.1)
            assert own.webhooks == names("a", "b")

    run(scenario())


def test_a_replica_that_is_gone_is_not_waited_for():
    """Its report expires, and is deleted. One that stops deletes its own."""

    async def scenario():
        async with cluster() as own:
            stays, stops, dies = (own.start("a") for _ in range(3))
            await asyncio.sleep(SETTLED)
            assert len(own.reports) == 3
            await stops.stop()
            assert len(own.reports) == 2
            dies.kill()
            stays.reload("b")
            await asyncio.sleep(LEASE_SECONDS + EXPIRY_SECONDS + 5)
            assert own.webhooks == names("b")
            assert len(own.reports) == 1

    run(scenario())


def test_a_replica_that_cannot_load_does_not_hold_up_the_others_for_ever():
    """WAIT_SECONDS."""

    async def scenario():
        async with cluster() as own:
            all_of_them = [own.start("a") for _ in range(2)]
            await asyncio.sleep(SETTLED)
            leader = next(each for each in all_of_them if each.state == RegistrationState.REGISTERED)
            leader.reload("b")
            await asyncio.sleep(5)
            assert leader.state == RegistrationState.WAITING
            assert "1 replicas serve other entries" in leader.controller.note
            await asyncio.sleep(WAIT_SECONDS)
            assert own.webhooks == names("b")

    run(scenario())


def test_a_missing_permission_is_named():
    """As the API server names it, by verb and resource; it is tried again."""

    async def scenario():
        async with cluster() as own:
            message = 'cannot create resource "mutatingwebhookconfigurations"'
            own.api.refused = lambda method, path, _obj: (
                ApiError(f"{method} {path}", 403, "Forbidden", message) if "mutatingwebhook" in path else None
            )
            replica = own.start("a")
            await asyncio.sleep(30)
            assert replica.state == RegistrationState.FAILED
            assert message in replica.controller.note
            own.api.refused = None
            await asyncio.sleep(40)
            assert own.webhooks == names("a")

    run(scenario())


def test_the_next_leader_goes_on_where_one_died():
    """One object registered, the other not: that is no deletion."""

    async def scenario():
        async with cluster() as own:
            first = own.start("a")
            own.api.refused = lambda _method, path, _obj: (
                ApiError("POST", 0, "", "killed") if path == VALIDATING and MUTATING in own.api.objects else None
            )
            await asyncio.sleep(SETTLED)
            assert VALIDATING not in own.api.objects
            assert MUTATING in own.api.objects
            first.kill()
            own.api.refused = None
            own.start("a")
            await asyncio.sleep(SETTLED)
            assert VALIDATING in own.api.objects

    run(scenario())
