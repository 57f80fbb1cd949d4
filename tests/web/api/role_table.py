"""Every route with the roles that may use it, and what it does for data of others."""

from dataclasses import dataclass, field
from typing import Any, Final

from tests.store.batches import BUNDLE

ROLES: Final = ("supervisor", "counsellor", "analyst", "admin", "ingest", "study")
"""The order of the letters in ``Row.roles``."""
LEVELS: Final = {"emotional_reactions": 1, "interpretations": 0, "explorations": 2}
SAMPLE: Final = {"title": "t", "bundle": BUNDLE, "size": 5}
RATING: Final = {"seq": 1, "head": "explorations", "value": 1}
REASON: Final = {"reason": "justified"}
JUDGEMENT: Final = {"judgement": "false-alarm"}
DISPUTE: Final = {"seq": 1, "head": "explorations", "note": "n"}
NOTE: Final = {"kind": "note", "text": "n"}
CONSENT: Final = {"status": "given"}


@dataclass(frozen=True)
class Row:
    """What a route answers.

    Args:
        roles: a letter per role: ``y`` may use it, ``-`` gets 403.
        rights: the rights that a token needs; None for pages, which accept no limited token.
        body: JSON of API routes, a form of pages. ``{session}`` stands for the session,
            ``{counsellor}`` for its counsellor's pseudonym.
        query: the query, likewise.
        also: statuses beside 2xx and 303 that show that the request was carried out.
        lists: whether the answer contains the ids of all sessions in the person's scope.
        team: whether supervisors without a team get 403 instead of nothing.
        own: whether the object belongs to one person, whatever their scope.
        unseen: whether roles that may not use it get 404, as if the object did not exist.
        public: whether it is open without signing in.
    """

    roles: str
    rights: tuple[str, ...] | None = None
    body: dict[str, Any] | None = None
    also: frozenset[int] = field(default_factory=frozenset)
    lists: bool = False
    team: bool = False
    own: bool = False
    unseen: bool = False
    public: bool = False
    query: dict[str, str] = field(default_factory=dict)


MEMBERS, READERS, SUPERVISORS, REPORTS = "yyyy--", "yy----", "y-----", "y-y---"
EXPORTERS, STUDIES, EVERYBODY, COUNSELLORS = "yyy---", "yyy--y", "yyyyyy", "-y----"
SCORES, TEXT, ACT = ("read-scores",), ("read-text",), ("act",)
STUDY: Final = "S-1"
LINES: Final = {"format": "jsonl", "study": STUDY}
CONFLICT: Final = frozenset({409})
ADMINS, RULES = "---y--", "y--y--"
NO_RULES: Final = {"text": "version: 1\nrules: []\n"}
UNCONFIRMED: Final = frozenset({422})
CONFIRM: Final = {"password": ""}
REVIEW: Final = {"reviewer": "sue"}
GOAL: Final = {
    "measure": "explorations",
    "goal": "g",
    "starts_on": "2026-01-05",
    "ends_on": "2026-03-30",
}
NO_BROKER: Final = frozenset({503})

API: Final[dict[tuple[str, str], Row]] = {
    ("get", "/live"): Row(MEMBERS, SCORES),
    ("get", "/alerts"): Row(MEMBERS, SCORES, lists=True),
    ("get", "/alerts/precision"): Row(MEMBERS, SCORES),
    ("get", "/alerts/{episode_id}"): Row(MEMBERS, SCORES),
    ("post", "/alerts/{episode_id}/acknowledge"): Row(SUPERVISORS, ACT, REASON),
    ("post", "/alerts/{episode_id}/resolve"): Row(SUPERVISORS, ACT, {}),
    ("post", "/alerts/{episode_id}/judge"): Row(SUPERVISORS, ACT, JUDGEMENT),
    ("post", "/alerts/{episode_id}/note"): Row(SUPERVISORS, ACT, {"note": "n"}),
    ("get", "/rules"): Row(RULES, SCORES),
    ("post", "/rules/check"): Row(RULES, SCORES, NO_RULES),
    ("post", "/rules/trial"): Row(RULES, SCORES, {**NO_RULES, "sessions": 1}),
    ("get", "/rules/versions"): Row(RULES, SCORES),
    ("get", "/rules/versions/{version}"): Row(RULES, SCORES),
    ("post", "/rules/versions"): Row(RULES, ACT, {**NO_RULES, "reason": "r"}, CONFLICT),
    ("post", "/rules/versions/{version}/adopt"): Row(ADMINS, None, {"reason": "r"}, CONFLICT),
    ("get", "/mutes"): Row(SUPERVISORS, TEXT),
    ("post", "/mutes"): Row(SUPERVISORS, ACT, {"session_id": "{session}", "minutes": 5}, team=True),
    ("delete", "/mutes/{mute_id}"): Row(SUPERVISORS, (*ACT, *TEXT)),
    ("get", "/sessions"): Row(MEMBERS, SCORES, lists=True),
    ("get", "/sessions/{session_id}"): Row(MEMBERS, SCORES),
    ("get", "/sessions/{session_id}/turns"): Row(MEMBERS, SCORES),
    ("get", "/sessions/{session_id}/history"): Row(MEMBERS, SCORES),
    ("get", "/sessions/{session_id}/feedback"): Row(READERS, TEXT, also=CONFLICT),
    ("put", "/sessions/{session_id}/readers/{name}"): Row(SUPERVISORS, ACT),
    ("delete", "/sessions/{session_id}/readers/{name}"): Row(SUPERVISORS, ACT),
    ("get", "/sessions/{session_id}/interventions"): Row(READERS, TEXT),
    ("post", "/sessions/{session_id}/interventions"): Row(SUPERVISORS, ACT, NOTE, CONFLICT),
    ("post", "/interventions/{intervention_id}/receipt"): Row("----y-", ("send-events",)),
    ("get", "/sessions/{session_id}/consents"): Row(SUPERVISORS, SCORES),
    ("post", "/sessions/{session_id}/consents"): Row(SUPERVISORS, ACT, CONSENT, NO_BROKER),
    ("get", "/history"): Row(MEMBERS, SCORES, lists=True),
    ("get", "/speakers"): Row(READERS, SCORES),
    ("get", "/speakers/{speaker}"): Row(READERS, SCORES),
    ("post", "/ratings"): Row(READERS, ACT, {**RATING, "session_id": "{session}"}),
    ("get", "/ratings"): Row(READERS, SCORES, query={"session": "{session}"}),
    ("delete", "/ratings/{rating_id}"): Row(READERS, ACT, own=True),
    ("post", "/disputes"): Row(
        COUNSELLORS,
        ACT,
        {"session_id": "{session}", "seq": 3, "head": "explorations", "note": "n"},
        CONFLICT,
    ),
    ("get", "/disputes"): Row(READERS, TEXT),
    ("post", "/disputes/{dispute_id}/decide"): Row(
        SUPERVISORS, (*ACT, *TEXT), {"decision": "upheld", "answer": "a"}, CONFLICT
    ),
    ("post", "/reviews"): Row(
        SUPERVISORS,
        ACT,
        {**REVIEW, "session_id": "{session}", "due_at": "2100-01-02T00:00:00Z"},
        CONFLICT,
    ),
    ("get", "/reviews"): Row(SUPERVISORS, SCORES),
    ("get", "/reviews/scorecards"): Row(SUPERVISORS, SCORES),
    ("get", "/reviews/agreement"): Row(REPORTS, SCORES),
    ("get", "/reviews/{review_id}"): Row(SUPERVISORS, TEXT),
    ("put", "/reviews/{review_id}/answers"): Row(
        SUPERVISORS, (*ACT, *TEXT), {"answers": {"warmth": 1}}
    ),
    ("put", "/reviews/{review_id}/comments"): Row(
        SUPERVISORS, (*ACT, *TEXT), {"seq": 1, "comment": "c"}
    ),
    ("delete", "/reviews/{review_id}"): Row(SUPERVISORS, ACT),
    ("post", "/goals"): Row(SUPERVISORS, ACT, {**GOAL, "counsellor": "{counsellor}"}),
    ("get", "/goals"): Row(READERS, TEXT),
    ("get", "/goals/{goal_id}"): Row(READERS, TEXT, own=True, unseen=True),
    ("post", "/goals/{goal_id}/end"): Row(
        SUPERVISORS, (*ACT, *TEXT), {"state": "reached"}, own=True, unseen=True
    ),
    ("get", "/drift"): Row("y-yy--", SCORES),
    ("post", "/drift/{change_id}/acknowledge"): Row(ADMINS, also=CONFLICT),
    ("get", "/agreement"): Row(MEMBERS, SCORES, query={"bundle": BUNDLE}),
    ("get", "/agreement/shadow"): Row(MEMBERS, SCORES),
    ("get", "/analyses"): Row(REPORTS, SCORES),
    ("get", "/analyses/{question}"): Row(REPORTS, SCORES, also=frozenset({404})),
    ("get", "/samples"): Row(REPORTS, SCORES),
    ("post", "/samples"): Row(SUPERVISORS, ACT, SAMPLE, team=True),
    ("get", "/samples/{sample_id}"): Row(REPORTS, SCORES),
    ("get", "/samples/{sample_id}/turns/{place}"): Row(SUPERVISORS, TEXT),
    ("post", "/samples/{sample_id}/turns/{place}"): Row(SUPERVISORS, (*ACT, *TEXT), LEVELS),
    ("get", "/samples/{sample_id}/report"): Row(REPORTS, SCORES, also=CONFLICT),
    ("get", "/exports/sessions"): Row(STUDIES, SCORES, lists=True, query=LINES),
    ("get", "/exports/turns"): Row(STUDIES, SCORES, lists=True, query=LINES),
    ("get", "/exports/convokit"): Row(STUDIES, SCORES, query={"study": STUDY}),
    ("get", "/exports/ratings"): Row(EXPORTERS, SCORES, query=LINES),
    ("get", "/exports/disputes"): Row(EXPORTERS, SCORES, query=LINES),
    ("get", "/exports/alerts"): Row(EXPORTERS, SCORES, query=LINES),
    ("get", "/exports/rollups"): Row(REPORTS, SCORES, query=LINES, team=True),
    ("post", "/events"): Row("----y-", ("send-events",), {}, frozenset({422})),
    ("get", "/bundles"): Row(MEMBERS, SCORES),
    ("get", "/bundles/{bundle}"): Row(MEMBERS, SCORES),
    ("get", "/me"): Row(EVERYBODY, ()),
    ("get", "/audit"): Row("---y--", ("read-audit",), lists=True),
}

PAGES: Final[dict[tuple[str, str], Row]] = {
    ("get", "/healthz"): Row(EVERYBODY, public=True),
    ("get", "/readyz"): Row(EVERYBODY, public=True),
    ("get", "/sign-in"): Row(EVERYBODY, public=True),
    ("post", "/sign-in"): Row(EVERYBODY, body={}, also=frozenset({422}), public=True),
    ("get", "/sign-in/oidc"): Row(EVERYBODY, also=frozenset({404}), public=True),
    ("get", "/sign-in/oidc/callback"): Row(EVERYBODY, also=frozenset({404}), public=True),
    ("post", "/sign-out"): Row(EVERYBODY, body={}, public=True),
    ("post", "/appearance"): Row(EVERYBODY, body={"chosen": "dark"}, public=True),
    ("get", "/password"): Row(MEMBERS),
    ("post", "/password"): Row(MEMBERS, body={}, also=frozenset({422})),
    ("get", "/"): Row(MEMBERS),
    ("get", "/live-total"): Row(MEMBERS),
    ("get", "/policy"): Row(MEMBERS),
    ("get", "/sessions/{session_id}/card"): Row(MEMBERS, also=frozenset({204})),
    ("get", "/sessions"): Row(MEMBERS, lists=True),
    ("post", "/saved-views"): Row(MEMBERS, body={"name": "mine"}),
    ("post", "/saved-views/delete"): Row(MEMBERS, body={"name": "mine"}),
    ("get", "/sessions/{session_id}"): Row(READERS),
    ("post", "/sessions/{session_id}/pin"): Row(MEMBERS, body={"pinned": "yes"}),
    ("post", "/sessions/{session_id}/presence"): Row(SUPERVISORS, body={}),
    ("post", "/sessions/{session_id}/presence/leave"): Row(SUPERVISORS, body={}),
    ("get", "/sessions/{session_id}/now"): Row(READERS),
    ("get", "/sessions/{session_id}/turns/{seq}"): Row(READERS),
    ("post", "/sessions/{session_id}/turn-rating"): Row(READERS, body={"seq": 1, **LEVELS}),
    ("post", "/sessions/{session_id}/session-rating"): Row(READERS, body={"rating": 4}),
    ("post", "/sessions/{session_id}/dispute"): Row(COUNSELLORS, body=DISPUTE, also=CONFLICT),
    ("get", "/sessions/{session_id}/interventions"): Row(READERS),
    ("post", "/sessions/{session_id}/interventions"): Row(SUPERVISORS, body=NOTE, also=CONFLICT),
    ("post", "/sessions/{session_id}/readers"): Row(SUPERVISORS, body={"name": "cleo"}),
    ("post", "/sessions/{session_id}/readers/withdraw"): Row(SUPERVISORS, body={"name": "cleo"}),
    ("get", "/sessions/{session_id}/feedback"): Row(READERS),
    ("get", "/sessions/{session_id}/turns/{seq}/practice"): Row(COUNSELLORS, also=CONFLICT),
    ("post", "/sessions/{session_id}/turns/{seq}/practice"): Row(
        COUNSELLORS, body={"text": "How are you?"}, also=CONFLICT
    ),
    ("get", "/alerts"): Row(SUPERVISORS),
    ("get", "/alerts/{episode_id}"): Row(SUPERVISORS),
    ("post", "/alerts/{episode_id}/acknowledge"): Row(SUPERVISORS, body=REASON),
    ("post", "/alerts/{episode_id}/resolve"): Row(SUPERVISORS, body={}),
    ("post", "/alerts/{episode_id}/judge"): Row(SUPERVISORS, body=JUDGEMENT),
    ("post", "/alerts/{episode_id}/note"): Row(SUPERVISORS, body={"note": "n"}),
    ("post", "/alerts/{episode_id}/mute"): Row(SUPERVISORS, body={"what": "session", "minutes": 5}),
    ("post", "/alerts/mutes/{mute_id}/end"): Row(SUPERVISORS, body={}),
    ("get", "/me"): Row(COUNSELLORS, lists=True),
    ("get", "/me/development"): Row(COUNSELLORS),
    ("get", "/counsellors"): Row(SUPERVISORS),
    ("get", "/counsellors/{pseudonym}"): Row(SUPERVISORS),
    ("get", "/counsellors/{pseudonym}/development"): Row(SUPERVISORS),
    ("post", "/counsellors/{pseudonym}/goals"): Row(SUPERVISORS, body=GOAL),
    ("get", "/goals/{goal_id}"): Row(READERS, own=True, unseen=True),
    ("post", "/goals/{goal_id}"): Row(
        SUPERVISORS, body={"state": "reached"}, own=True, unseen=True
    ),
    ("get", "/reviews"): Row(SUPERVISORS),
    ("get", "/reviews/agreement"): Row(REPORTS),
    ("get", "/reviews/{review_id}"): Row(SUPERVISORS),
    ("post", "/reviews/{review_id}"): Row(SUPERVISORS, body={"answer-warmth": "1"}),
    ("post", "/reviews/{review_id}/comments"): Row(SUPERVISORS, body={"seq": 1, "comment": "c"}),
    ("post", "/reviews/{review_id}/withdraw"): Row(SUPERVISORS),
    ("get", "/sessions/{session_id}/reviews"): Row(SUPERVISORS),
    ("post", "/sessions/{session_id}/reviews"): Row(
        SUPERVISORS, body={**REVIEW, "due": "2100-01-02"}, also=CONFLICT
    ),
    ("get", "/calibration"): Row(MEMBERS),
    ("post", "/calibration"): Row(SUPERVISORS, body=SAMPLE, team=True),
    ("get", "/calibration/{sample_id}"): Row(REPORTS),
    ("get", "/calibration/{sample_id}/turns/{place}"): Row(SUPERVISORS),
    ("post", "/calibration/{sample_id}/turns/{place}"): Row(SUPERVISORS, body=LEVELS),
    ("get", "/disputes"): Row(SUPERVISORS),
    ("post", "/disputes/{dispute_id}"): Row(
        SUPERVISORS, body={"decision": "upheld", "answer": "a"}, also=CONFLICT
    ),
    ("get", "/analytics"): Row(REPORTS, team=True),
    ("get", "/analytics/table"): Row(REPORTS, team=True),
    ("get", "/analytics/report"): Row(REPORTS, team=True),
    ("get", "/analytics/report/file"): Row(REPORTS, team=True),
    ("get", "/analytics/{question}"): Row(REPORTS, team=True, also=frozenset({404})),
    ("get", "/analytics/{question}/table"): Row(REPORTS, team=True, also=frozenset({404})),
    ("get", "/teams"): Row(REPORTS, team=True),
    ("get", "/admin"): Row(ADMINS),
    ("get", "/admin/accounts"): Row(ADMINS),
    ("post", "/admin/accounts"): Row(
        ADMINS, body={"name": "new", "role": "admin", "password": ""}, also=UNCONFIRMED
    ),
    ("get", "/admin/accounts/{name}"): Row(ADMINS),
    ("post", "/admin/accounts/{name}/token"): Row(ADMINS, body=CONFIRM, also=UNCONFIRMED),
    ("post", "/admin/accounts/{name}/revoke"): Row(ADMINS, body=CONFIRM, also=UNCONFIRMED),
    ("post", "/admin/accounts/{name}/sign-out"): Row(ADMINS, body=CONFIRM, also=UNCONFIRMED),
    ("post", "/admin/accounts/{name}/password"): Row(ADMINS, body=CONFIRM, also=UNCONFIRMED),
    ("post", "/admin/accounts/{name}/teams"): Row(ADMINS, body=CONFIRM, also=UNCONFIRMED),
    ("post", "/admin/accounts/{name}/disable"): Row(ADMINS, body=CONFIRM, also=UNCONFIRMED),
    ("get", "/admin/teams"): Row(ADMINS),
    ("get", "/admin/settings"): Row(ADMINS),
    ("get", "/rules"): Row(RULES),
    ("get", "/rules/draft"): Row(RULES),
    ("post", "/rules/draft/check"): Row(RULES, body=NO_RULES),
    ("post", "/rules/draft/try"): Row(RULES, body=NO_RULES),
    ("post", "/rules/draft/download"): Row(RULES, body=NO_RULES),
    ("post", "/rules/draft/save"): Row(RULES, body=NO_RULES, also=UNCONFIRMED),
    ("get", "/rules/versions/{version}"): Row(RULES),
    ("post", "/rules/versions/{version}/adopt"): Row(ADMINS, body=CONFIRM, also=UNCONFIRMED),
    ("get", "/admin/retention"): Row(ADMINS),
    ("get", "/admin/bundles"): Row(ADMINS),
    ("post", "/admin/bundles/promote"): Row(
        ADMINS, body={"bundle": "0" * 64, "reason": "x", "password": ""}, also=UNCONFIRMED
    ),
    ("post", "/admin/bundles/rollback"): Row(
        ADMINS, body={"reason": "x", "password": ""}, also=UNCONFIRMED
    ),
    ("get", "/admin/consent"): Row(ADMINS),
    ("post", "/admin/consent/find"): Row(ADMINS, body={"speaker": "{session}"}),
    ("post", "/admin/consent"): Row(
        ADMINS, body={"speaker": "{session}", "password": ""}, also=UNCONFIRMED
    ),
    ("get", "/admin/erasure"): Row(ADMINS),
    ("post", "/admin/erasure/plan"): Row(ADMINS, body={"sessions": "none"}),
    ("post", "/admin/erasure"): Row(
        ADMINS, body={"sessions": "none", "password": ""}, also=UNCONFIRMED
    ),
    ("get", "/admin/holds"): Row(ADMINS),
    ("post", "/admin/holds"): Row(
        ADMINS, body={"session_id": "none", "reason": "x", "password": ""}, also=UNCONFIRMED
    ),
    ("post", "/admin/holds/end"): Row(
        ADMINS, body={"session_id": "none", "password": ""}, also=UNCONFIRMED
    ),
    ("get", "/admin/audit"): Row(ADMINS),
    ("get", "/help"): Row(MEMBERS),
    ("get", "/help/{topic}"): Row(MEMBERS),
    ("post", "/tour/close"): Row(MEMBERS, body={}),
    ("get", "/exports"): Row(EXPORTERS),
    ("get", "/exports/file"): Row(EXPORTERS, query={"table": "sessions"}),
}
