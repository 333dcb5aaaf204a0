"""The heart: a review in, asks out, answers in, a decision out. No sockets, no clock: h11 for admission reviews."""

from gateway.deciding.call import Call, Source
from gateway.deciding.decision import Decision, Outcome
from gateway.deciding.heart import Heart
from gateway.deciding.plan import Member, Plan, make_plan
from gateway.deciding.steps import Ask, AuthorizationAsk, Lookup, NamespaceLookup, Step
from gateway.deciding.verdicts import Allow, Answer, Change, ChangeKind, Deny, Failure, Verdict

__all__ = [
    "Allow",
    "Answer",
    "Ask",
    "AuthorizationAsk",
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
