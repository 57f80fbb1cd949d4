"""Help: one short page for each word of the console, and the keyboard shortcuts."""

from typing import Final

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import HTMLResponse, Response

from stream_app.web.console.rendering import render
from stream_app.web.sign_in.auth import Member

router = APIRouter(prefix="/help", default_response_class=HTMLResponse, include_in_schema=False)
TOPICS: Final = {
    "er": "Emotional reactions (ER)",
    "ip": "Interpretations (IP)",
    "ex": "Explorations (EX)",
    "risk": "Low-empathy risk",
    "index": "Empathy index",
    "interval": "Interval",
    "alert": "Alert",
}
"""Title by the name in the address; each has a template ``help_….html``."""


@router.get("")
def contents(request: Request, person: Member) -> Response:
    """List the pages and the keyboard shortcuts."""
    return render(request, "help.html", person, topics=TOPICS)


@router.get("/{topic}")
def page(request: Request, topic: str, person: Member) -> Response:
    """Explain one word."""
    if topic not in TOPICS:
        raise HTTPException(404)
    return render(
        request, f"help_{topic}.html", person, topics=TOPICS, topic=topic, heading=TOPICS[topic]
    )
