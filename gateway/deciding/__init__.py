"""The heart: a review in, asks out, answers in, a decision out. No sockets, no clock: h11 for admission reviews."""

from gateway.deciding.decision import Call, Decision, Outcome, Source
from gateway.deciding.heart import Heart
from gateway.deciding.plan import Member, Plan, make_plan
from gateway.deciding.steps import Ask, Lookup, NamespaceLookup, Step
from gateway.deciding.verdicts import Allow, Answer, Change, ChangeKind, Deny, Failure, Verdict

__all__ = [
    "Allow",
    "Answer",
    "Ask",
    "Call",
    "Change",
    "ChangeKind",
    "Decision",
    "Deny",
    "Failure",
    "Heart",
    "Lookup",
    "Member",
    "NamespaceLookup",
    "Outcome",
    "Plan",
    "Source",
    "Step",
    "Verdict",
    "make_plan",
]
