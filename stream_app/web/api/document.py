"""The OpenAPI document: FastAPI's, completed with descriptions, errors, links and examples."""

from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import TypeAdapter

from stream_app import __version__
from stream_app.web.api.examples import EXAMPLES
from stream_app.web.api.receiving.events import EVENT_COMPONENTS
from stream_app.web.http.cookie_sessions import COOKIE, SECURE_COOKIE
from stream_app.web.problems import Problem, problem_responses

REF: Final = "#/components/schemas/{model}"
ABOUT: Final = """\
Sessions, scores, alerts, and people's actions on them.

**Permissions.** A token belongs to a person (`rapport people token NAME`) and has that person's
access scope: counsellors read their own sessions; supervisors those of their team; analysts all
sessions without text and pseudonyms; admins all sessions without text, and the audit trail.
Anything outside the access scope answers 404. Programs that send events have the role `ingest`
and can read nothing.

**Units.** Levels are 0 (none), 1 (weak), 2 (strong). Probabilities, shares and risks are in [0, 1].
Times are RFC 3339; responses use UTC. Rationale spans are `[start, end)` in Unicode code points
of the text; `rationale_utf16` is in UTF-16 code units. `abstained` names heads whose confidence is
too low: do not use their values.

**Pages.** Lists answer `{"items": […], "next_cursor": …}`; pass the cursor back as `cursor` until
it is null. Items added meanwhile cause neither repeated nor missing items.

**Errors** are problem details (RFC 9457). With 503 and 429, `Retry-After` says when to retry.

Scores describe how empathy was expressed in words, and how it is likely to be perceived. They are
not a diagnosis, a risk assessment or a performance rating.
"""
TAGS: Final = [
    {"name": "sessions", "description": "Sessions, turns with evidence, and their history."},
    {"name": "live", "description": "Live updates as server-sent events."},
    {
        "name": "alerts",
        "description": "Alerts with their transitions, people's actions on them, and mutes.",
    },
    {
        "name": "interventions",
        "description": "Supervisors' notes to the counsellor's desk, take-overs, and receipts.",
    },
    {
        "name": "rules",
        "description": "The alert rules in force, trials of drafts, and versions in the database.",
    },
    {"name": "speakers", "description": "Counsellors by pseudonym, each with their own trend."},
    {"name": "ratings", "description": "Human ratings, stored separately from the model's scores."},
    {"name": "disputes", "description": "Scores that counsellors dispute."},
    {
        "name": "reviews",
        "description": "Reviews of sessions by supervisors, with scorecards and sign-off.",
    },
    {"name": "goals", "description": "Coaching goals, private to a supervisor and a counsellor."},
    {
        "name": "samples",
        "description": "Calibration samples: turns that several people rate blind.",
    },
    {"name": "agreement", "description": "Agreement between people and the model."},
    {"name": "analyses", "description": "Associations over the whole platform, with intervals."},
    {"name": "feedback", "description": "Feedback to counsellors after a session."},
    {"name": "exports", "description": "Tables and ConvoKit corpora for download."},
    {"name": "ingest", "description": "Sending events, for platforms without a Kafka producer."},
    {"name": "bundles", "description": "The model bundles that scored sessions."},
    {"name": "account", "description": "The signed-in account; the audit trail."},
]
LINKS: Final = {
    "list_sessions": (
        "session_id",
        "$response.body#/items/0/session_id",
        ("one_session", "turns_of_session", "history_of_session", "feedback_on_session"),
    ),
    "list_alerts": (
        "episode_id",
        "$response.body#/items/0/episode_id",
        ("one_alert", "acknowledge", "resolve", "judge", "note"),
    ),
    "mute": ("mute_id", "$response.body#/mute_id", ("end_mute",)),
    "list_speakers": ("speaker", "$response.body#/items/0/speaker", ("one_speaker",)),
    "list_bundles": ("bundle", "$response.body#/0/bundle", ("one_bundle",)),
}
"""Links by operation: a parameter, where the response has it, and the operations that take it."""
COMMON_STATUSES: Final = (401, 403, 422, 500, 503)
CONFLICT_TAGS: Final = {
    "alerts",
    "interventions",
    "ratings",
    "disputes",
    "reviews",
    "goals",
    "rules",
    "samples",
    "agreement",
    "feedback",
}
SECURITY: Final = {
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "rapport_…",
        "description": "For programs: a token from `rapport people token NAME`.",
    },
    "cookie": {
        "type": "apiKey",
        "in": "cookie",
        "name": COOKIE,
        "description": f"For the console's own pages: set by signing in, over HTTPS as "
        f"`{SECURE_COOKIE}`. Requests that change something must come from the same site.",
    },
}


def serve_document(app: FastAPI) -> None:
    """Serve the completed document at ``/openapi.json``."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = build(app)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]  # FastAPI's own way to extend it


def build(app: FastAPI) -> dict[str, Any]:
    """Build the OpenAPI document of this application."""
    found = get_openapi(
        title="Rapport",
        version=__version__,
        summary="Scores live how empathy is expressed in conversations",
        description=ABOUT,
        routes=app.routes,
        tags=TAGS,
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
        servers=[{"url": "/api/v1"}],
    )
    parts = found.setdefault("components", {})
    parts["securitySchemes"] = SECURITY
    schemas = parts.setdefault("schemas", {})
    schemas |= EVENT_COMPONENTS | _problem_schemas()
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    found["security"] = [{"bearer": []}, {"cookie": []}]
    for path, operations in found["paths"].items():
        for operation in operations.values():
            problems = problem_responses(*COMMON_STATUSES, *_statuses_of(path, operation))
            for status, response in problems.items():
                _describe(operation["responses"], str(status), response)
            _add_links(operation)
    for name, example in EXAMPLES.items():
        schemas[name]["example"] = example
    return found


def _describe(responses: dict[str, Any], status: str, problem: dict[str, Any]) -> None:
    """Add problem details to the answers with a status; FastAPI's own validation errors go."""
    own = responses.get(status, {})
    answer = own.get("content", {}).get("application/json")
    if answer is None or answer["schema"].get("$ref", "").endswith("/HTTPValidationError"):
        responses[status] = problem
    else:
        content = {**problem["content"], "application/json": answer}
        responses[status] = {**own, "content": content}


def _add_links(operation: dict[str, Any]) -> None:
    if operation["operationId"] not in LINKS:
        return
    parameter, location, others = LINKS[operation["operationId"]]
    success = next(
        response for status, response in operation["responses"].items() if status < "300"
    )
    success["links"] = {
        name: {"operationId": name, "parameters": {parameter: location}} for name in others
    }


def _statuses_of(path: str, operation: dict[str, Any]) -> list[int]:
    """Error statuses that depend on an operation's parameters and body."""
    has_body = "requestBody" in operation
    has_cursor = any(each["name"] == "cursor" for each in operation.get("parameters", []))
    found = []
    if has_body or has_cursor:
        found.append(400)
    if has_body or "{" in path:
        found.append(404)
    if CONFLICT_TAGS & set(operation["tags"]):
        found.append(409)
    return found


def _problem_schemas() -> dict[str, Any]:
    schema = TypeAdapter(Problem).json_schema(ref_template=REF)
    schema["example"] = {
        "type": "urn:rapport:problem:bad-cursor",
        "title": "Bad Request",
        "status": 400,
        "detail": "this cursor does not belong to this list; begin without one",
        "errors": [],
    }
    return {**schema.pop("$defs", {}), "Problem": schema}
