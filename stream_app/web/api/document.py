"""The OpenAPI document: what FastAPI finds out, and what readers need besides."""

from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import TypeAdapter

from stream_app import __version__
from stream_app.web.api.events import EVENT_COMPONENTS
from stream_app.web.api.examples import EXAMPLES
from stream_app.web.auth import COOKIE
from stream_app.web.problems import Problem, documented

REF: Final = "#/components/schemas/{model}"
ABOUT: Final = """\
Sessions, scores, alerts and what people do to them.

**Who may what.** A token stands for a person (`rapport people token NAME`) and sees what that
person sees: a counsellor the own sessions, a supervisor the team's, an analyst all of them without
text and pseudonyms, an admin all of them without text, and the audit trail. What lies outside the
scope answers 404. A program that sends events has the role `ingest` and reads nothing.

**Units.** Levels are 0 (none), 1 (weak), 2 (strong). Probabilities, shares and risks lie in [0, 1].
Times are RFC 3339; answers are in UTC. Rationale spans are `[start, end)` in characters of the
text. `abstained` names heads whose confidence is too low: do not use their values.

**Pages.** Lists answer `{"items": […], "next_cursor": …}`; pass the cursor back as `cursor` until
it is null. What is added meanwhile neither repeats nor hides what was there.

**Errors** are problem details (RFC 9457). Those with 503 or 429 say in `Retry-After` when to try
again.

Scores describe how empathy was expressed in words, and how it is likely to be perceived. They are
not a diagnosis, risk assessment or performance rating.
"""
TAGS: Final = [
    {"name": "sessions", "description": "Sessions, turns with evidence, and how they moved."},
    {"name": "live", "description": "What happens now, as server-sent events."},
    {
        "name": "alerts",
        "description": "Alerts with every transition of their rule, what people did, mutes.",
    },
    {"name": "speakers", "description": "Counsellors under pseudonyms, each by itself."},
    {"name": "ratings", "description": "Human ratings beside the model's scores."},
    {"name": "disputes", "description": "Scores that counsellors contest."},
    {"name": "samples", "description": "Turns that several people rate blind."},
    {"name": "agreement", "description": "How far people and the model agree."},
    {"name": "feedback", "description": "What a counsellor is told after a session."},
    {"name": "exports", "description": "Tables and corpora to take away."},
    {"name": "ingest", "description": "Events in, for platforms without a Kafka producer."},
    {"name": "bundles", "description": "The models that scored."},
    {"name": "account", "description": "Who I am; the audit trail."},
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
        ("one_alert", "acknowledge", "resolve", "note"),
    ),
    "mute": ("mute_id", "$response.body#/mute_id", ("end_mute",)),
    "list_speakers": ("speaker", "$response.body#/items/0/speaker", ("one_speaker",)),
    "list_bundles": ("bundle", "$response.body#/0/bundle", ("one_bundle",)),
}
"""By operation: which parameter of which others its answer gives."""
EVERYWHERE: Final = (401, 403, 422, 500, 503)
CAN_CONFLICT: Final = {"ratings", "disputes", "samples", "agreement", "feedback"}
SECURITY: Final = {
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "rapport_…",
        "description": "For programs: a token of `rapport people token NAME`.",
    },
    "cookie": {
        "type": "apiKey",
        "in": "cookie",
        "name": COOKIE,
        "description": "For the console's own pages: set by signing in. What changes something "
        "must come from the same site.",
    },
}


def attach(app: FastAPI) -> None:
    """Serve this document at ``/openapi.json``."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = build(app)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]  # FastAPI's own way to extend it


def build(app: FastAPI) -> dict[str, Any]:
    """The document of this application."""
    found = get_openapi(
        title="Rapport",
        version=__version__,
        summary="Watches conversations live and scores how empathy is expressed",
        description=ABOUT,
        routes=app.routes,
        tags=TAGS,
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
        servers=[{"url": "/api/v1"}],
    )
    parts = found.setdefault("components", {})
    parts["securitySchemes"] = SECURITY
    schemas = parts.setdefault("schemas", {})
    schemas |= EVENT_COMPONENTS | _problem()
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    found["security"] = [{"bearer": []}, {"cookie": []}]
    for path, operations in found["paths"].items():
        for operation in operations.values():
            problems = documented(*EVERYWHERE, *_own(path, operation))
            operation["responses"] |= {str(status): said for status, said in problems.items()}
            _link(operation)
    for name, example in EXAMPLES.items():
        schemas[name]["example"] = example
    return found


def _link(operation: dict[str, Any]) -> None:
    if operation["operationId"] not in LINKS:
        return
    parameter, where, others = LINKS[operation["operationId"]]
    good = next(said for status, said in operation["responses"].items() if status < "300")
    good["links"] = {
        name: {"operationId": name, "parameters": {parameter: where}} for name in others
    }


def _own(path: str, operation: dict[str, Any]) -> list[int]:
    """Statuses that follow from what an operation takes."""
    has_body = "requestBody" in operation
    has_cursor = any(each["name"] == "cursor" for each in operation.get("parameters", []))
    found = []
    if has_body or has_cursor:
        found.append(400)
    if has_body or "{" in path:
        found.append(404)
    if CAN_CONFLICT & set(operation["tags"]):
        found.append(409)
    return found


def _problem() -> dict[str, Any]:
    schema = TypeAdapter(Problem).json_schema(ref_template=REF)
    schema["example"] = {
        "type": "urn:rapport:problem:bad-cursor",
        "title": "Bad Request",
        "status": 400,
        "detail": "this cursor does not belong to this list; begin without one",
        "errors": [],
    }
    return {**schema.pop("$defs", {}), "Problem": schema}
