"""All is counted, a bounded number of findings is kept, and a state file has both as they were."""

import json

import pytest

from gateway.audit.auditor import BURST_SECONDS, Pace
from gateway.audit.results import FINDINGS_KEPT, FINDINGS_OF_ONE, INCOMPLETE_KEPT, AuditResults, Finding, Result
from gateway.audit.state import AuditState, StateError, StateFile, audit_id


def finding(policy="t/a", number=0, result=Result.VIOLATION):
    about = {"operation": "CREATE", "group": "", "version": "v1", "resource": "pods", "kind": "Pod", "uid": "u"}
    return Finding(policy=policy, result=result, message="m", namespace="n", name=f"p{number}", **about)


def results(*policies, each=1):
    made = AuditResults()
    for name in policies:
        for number in range(each):
            made.found(finding(name, number))
    return made


def test_findings_are_bounded_and_counts_are_not():
    """Of one policy, and of all; also when parts are added."""
    made = results("t/a", each=FINDINGS_OF_ONE + 5)
    assert (made.totals().violations, len(made.findings)) == (FINDINGS_OF_ONE + 5, FINDINGS_OF_ONE)
    for number in range(FINDINGS_KEPT // FINDINGS_OF_ONE + 1):
        made.add(results(f"t/p{number}", each=FINDINGS_OF_ONE))
    assert len(made.findings) == FINDINGS_KEPT
    assert made.totals().violations == FINDINGS_OF_ONE + 5 + FINDINGS_KEPT + FINDINGS_OF_ONE
    for number in range(INCOMPLETE_KEPT + 1):
        made.not_audited(str(number))
    assert len(made.incomplete) == INCOMPLETE_KEPT


def test_an_error_is_no_verdict():
    """It counts for itself, and violations come first."""
    made = results("t/a")
    made.found(finding(result=Result.ERROR, number=7))
    made.passed("t/a", "n")
    count = made.policies["t/a"]
    assert (count.judged, count.passed, count.violations, count.errors) == (2, 1, 1, 1)
    assert [each.result for each in made.of("t/a")] == [Result.VIOLATION, Result.ERROR]


def test_a_state_is_kept_as_it_is(tmp_path):
    """After each page, in one step; what is beside it from a process that was killed does not matter."""
    state = AuditState(audit="x", started="2026-01-01T00:00:00Z")
    file = StateFile(tmp_path / "state")
    assert file.read() is None
    assert state.begin("pods") == ""
    state.advance(results("t/a"), "token", restarted=False)
    file.write(state)
    (tmp_path / "state.new").write_text("half")
    kept = file.read()
    assert kept == state
    assert kept.begin("pods") == "token"
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o600
    kept.advance(results("t/b"), "", restarted=False)
    kept.end()
    file.write(kept)
    assert json.loads((tmp_path / "state").read_text())["done"] == ["pods"]
    assert {name: each.violations for name, each in kept.results.policies.items()} == {"t/a": 1, "t/b": 1}
    file.remove()
    file.remove()
    assert file.read() is None


def test_a_link_beside_the_state_is_not_written_through(tmp_path):
    """Who can make files in the directory cannot make the audit overwrite another one, or keep it open."""
    other = tmp_path / "other"
    other.write_text("precious")
    for link in (
        lambda: (tmp_path / "state.new").symlink_to(other),
        lambda: (tmp_path / "state.new").hardlink_to(other),
    ):
        link()
        StateFile(tmp_path / "state").write(AuditState(audit="x", started=""))
        assert other.read_text() == "precious"
        assert not (tmp_path / "state").is_symlink()
        assert (tmp_path / "state").stat().st_mode & 0o777 == 0o600


def test_a_list_that_begins_again_counts_again():
    """What was counted of it before does not count; other parts do."""
    state = AuditState(audit="x", started="")
    state.begin("pods")
    state.advance(results("t/a"), "", restarted=False)
    state.end()
    state.begin("services")
    state.advance(results("t/b", "t/c"), "1", restarted=False)
    state.advance(results("t/b"), "2", restarted=True)
    state.end()
    assert {name: each.violations for name, each in state.results.policies.items()} == {"t/a": 1, "t/b": 1}


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b"\xff"])
def test_a_file_that_is_no_state_is_left_alone(tmp_path, content):
    """It is the operator's, and the error names it."""
    path = tmp_path / "state"
    path.write_bytes(content)
    with pytest.raises(StateError, match="this is no state of an audit"):
        StateFile(path).read()
    with pytest.raises(StateError, match=r"--state .*: No such file or directory; name a file"):
        StateFile(tmp_path / "missing" / "state").write(AuditState(audit="x", started=""))


def test_an_audit_is_told_from_others():
    """By everything that it is made of, wherever one part ends and the next begins."""
    assert audit_id([b"a", b"b"], [b"c"]) == audit_id([b"a", b"b"], [b"c"])
    others = [audit_id([b"a"], [b"b", b"c"]), audit_id([b"ab"], [b"c"]), audit_id([b"a", b"b", b"c"])]
    assert len({audit_id([b"a", b"b"], [b"c"]), *others}) == 4


def test_objects_come_evenly():
    """At most so many per second; a pause is not caught up but for a moment."""
    pace = Pace(10)
    assert [pace.wait(100.0) for _ in range(7)] == pytest.approx([0, 0, 0, 0, 0, 0, 0.1])
    assert pace.wait(200.0) == 0
    assert sum(Pace(10).wait(0.0) == 0 for _ in range(3)) == 3
    assert BURST_SECONDS == 0.5
    assert [Pace(0).wait(5.0) for _ in range(3)] == [0, 0, 0]
