"""A worker whose policies do what their settings say: a test then has the whole scenario in one place."""

import asyncio
import json

import msgspec

from admission_worker import Cause, Worker, allow, deny, merge, patch

worker = Worker("configured", version="1")


class Judge(msgspec.Struct, frozen=True):
    """``deny``: the arguments of a denial; ``annotate``: members of the request, as audit annotations."""

    deny: dict = {}
    warnings: list = []
    annotate: list = []


@worker.validating("judge", settings=Judge)
def judge(request, settings):
    """Allows or denies."""
    beside = {"warnings": settings.warnings, "audit_annotations": _annotations(request, settings.annotate)}
    if not settings.deny:
        return allow(**beside)
    causes = [Cause(**each) for each in settings.deny.get("causes", ())]
    return deny(**(settings.deny | {"causes": causes} | beside))


def _annotations(request, members):
    return {member: json.dumps(request.document.get(member)) for member in members}


class Note(msgspec.Struct, frozen=True):
    """``pointer``: the value to note."""

    key: str
    pointer: str = ""
    text: str = ""
    warnings: list = []


@worker.mutating("note", settings=Note)
def note(request, settings):
    """Writes an annotation: a text, or what it finds at a place of the object."""
    value = settings.text or json.dumps(_at(request.object, settings.pointer))
    return merge({"metadata": {"annotations": {settings.key: value}}}, warnings=settings.warnings)


def _at(value, pointer):
    for key in pointer.split("/")[1:]:
        value = value[int(key) if isinstance(value, list) else key]
    return value


class Patch(msgspec.Struct, frozen=True):
    """``key``: the annotation that has the JSON Patch."""

    key: str


@worker.mutating("patch", settings=Patch)
def patched(request, settings):
    """Applies the patch that the object brings along."""
    found = request.object["metadata"]["annotations"].get(settings.key)
    return None if found is None else patch(json.loads(found))


class Echo(msgspec.Struct, frozen=True):
    """``members``: of the request."""

    members: list


@worker.validating("echo", settings=Echo)
def echo(request, settings):
    """Denies, with members of the request as its message."""
    return deny(json.dumps({member: request.document.get(member) for member in settings.members}))


@worker.validating("hang")
async def hang(request):
    """Never answers."""
    await asyncio.get_running_loop().create_future()


if __name__ == "__main__":
    worker.main()
