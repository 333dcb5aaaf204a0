"""The heart: a review in, asks out, answers in, a decision out. No sockets, no clock: h11 for admission reviews."""

from gateway.deciding.asking import Asker, Reply
from gateway.deciding.blame import Blame, digest
from gateway.deciding.call import Call
from gateway.deciding.conflicts import Conflict
from gateway.deciding.decision import Decision, Outcome
from gateway.deciding.heart import Heart
from gateway.deciding.origin import ASKED, Origin, Source
from gateway.deciding.plan import Described, Member, Plan, Standing, make_plan
from gateway.deciding.steps import Ask, AuthorizationAsk, Lookup, NamespaceLookup, Step
from gateway.deciding.verdicts import Allow, Answer, Change, ChangeKind, Deny, Failure, Verdict

__all__ = [
    "ASKED",
    "Allow",
    "Answer",
    "Ask",
    "Asker",
    "AuthorizationAsk",
    "Blame",
    "Call",
    "Change",
    "ChangeKind",
    "Conflict",
    "Decision",
    "Deny",
    "Described",
    "Failure",
    "Heart",
    "Lookup",
    "Member",
    "NamespaceLookup",
    "Origin",
    "Outcome",
    "Plan",
    "Reply",
    "Source",
    "Standing",
    "Step",
    "Verdict",
    "digest",
    "make_plan",
]
