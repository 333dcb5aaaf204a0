"""Workers whose answers, documents or verdicts are wrong."""

import json

from worker_conformance.proto.admission.worker.v1 import worker_pb2
from workers.conformance.tests.faults_of_judging import INVALID, allow, judging
from workers.conformance.tests.reference_judging import failure

# ------------------------------------------------------------------------------------------- answers


def answering(arm, *names):
    """A worker whose probe-answer alters one arm; "": all arms."""

    def register(alter):
        @judging(*names)
        def altered(outcome, call, document, worker):
            if call.policy == "probe-answer" and arm in {"", json.loads(call.settings or b"{}").get("arm")}:
                return alter(outcome, document)
            return None

        return altered

    return register


@answering("allow", "answers.allow")
def allow_warns(outcome, document):
    outcome.warnings.append("allowed")


@answering("nothing", "answers.nothing")
def nothing_fails(outcome, document):
    return failure("the policy returned None")


@answering("deny", "answers.deny")
def deny_forgets(outcome, document):
    outcome.deny.details.uid = ""


@answering("deny-plainly", "answers.deny-plainly")
def deny_has_no_reason(outcome, document):
    outcome.deny.code = 403


@answering("patch", "answers.patch")
def patch_is_another(outcome, document):
    outcome.allow.json_patch = b"[]"


@answering("merge", "answers.merge")
def merge_becomes_a_patch(outcome, document):
    outcome.allow.json_patch = b'[{"op":"add","path":"/metadata/annotations","value":{"probe":"merged"}}]'


@answering("mutated", "answers.mutated")
def mutated_loses_what_is_empty(outcome, document):
    found = json.loads(outcome.allow.object)
    del found["spec"]
    outcome.allow.object = json.dumps(found).encode()


@answering("mutated", "answers.mutated-keeps-numbers")
def mutated_in_doubles(outcome, document):
    outcome.allow.object = json.dumps(json.loads(outcome.allow.object, parse_int=float)).encode()


@answering("fail", "answers.fail")
def fail_denies(outcome, document):
    return worker_pb2.Outcome(deny=worker_pb2.Deny(message="failed by the probe"))


@answering("deny", "answers.warnings-and-annotations")
def deny_does_not_warn(outcome, document):
    del outcome.warnings[:]


@answering("", "answers.cache")
def whole_seconds(outcome, document):
    outcome.cache.ttl.nanos = 0


@judging("answers.misuse")
def misuse_changes(outcome, call, document, worker):
    return allow(json_patch=b"[]") if call.policy == "probe-misuse" else None


@judging("answers.panic")
def panic_shows_its_text(outcome, call, document, worker):
    return failure("probe-panic: a secret that must not travel") if call.policy == "probe-panic" else None


# --------------------------------------------------------------------------- documents and verdicts


@judging("documents.bytes-unaltered", "documents.bytes-unaltered-on-the-stream")
def written_again(outcome, call, document, worker):
    if outcome.HasField("deny") and call.policy == "probe-echo":
        outcome.deny.message = json.dumps(json.loads(outcome.deny.message))


@judging("documents.uid")
def without_the_uid(outcome, call, document, worker):
    if call.policy == "probe-echo":
        outcome.audit_annotations["uid"] = ""


@judging("documents.trace-context")
def another_trace(outcome, call, document, worker):
    if call.policy == "probe-echo":
        outcome.audit_annotations["traceparent"] = "00-" + "1" * 32 + "-" + "2" * 16 + "-01"


@judging("documents.no-trace-context")
def the_last_trace(outcome, call, document, worker):
    worker.trace = worker.now if len(worker.now) == 55 and "0" * 32 not in worker.now else worker.trace
    if call.policy == "probe-echo":
        outcome.audit_annotations["traceparent"] = worker.trace


@judging("verdicts.well-formed")
def a_key_with_a_slash(outcome, call, document, worker):
    outcome.audit_annotations["example.com/a"] = "1"


@judging("verdicts.deterministic", "verdicts.deterministic-on-the-stream", "stream.equals-review")
def counted(outcome, call, document, worker):
    worker.count += 1
    outcome.audit_annotations["count"] = str(worker.count)


@judging("verdicts.changes-apply")
def a_patch_to_nowhere(outcome, call, document, worker):
    if outcome.allow.json_patch:
        outcome.allow.json_patch = b'[{"op":"add","path":"/no/where","value":1}]'


@judging("verdicts.idempotent")
def one_label_more_each_time(outcome, call, document, worker):
    if outcome.allow.json_patch or (call.policy == "probe-label" and outcome.HasField("allow")):
        worker.count += 1
        label = f"/metadata/labels/n{worker.count}"
        outcome.allow.json_patch = json.dumps([{"op": "add", "path": label, "value": "yes"}]).encode()


@judging("verdicts.writes-within-claim")
def outside_of_its_claim(outcome, call, document, worker):
    if call.policy == "probe-label" and outcome.allow.json_patch:
        outcome.allow.json_patch = b'[{"op":"add","path":"/spec/priority","value":1}]'


@judging("verdicts.inputs-within-claim")
def more_than_it_claims(outcome, call, document, worker):
    if call.policy == "plain" and document and b"jane@example.com" in document:
        outcome.warnings.append("hello jane")


@judging("verdicts.settings-are-accepted")
def no_settings_are_good(outcome, call, document, worker):
    return failure("no settings are good", INVALID)
