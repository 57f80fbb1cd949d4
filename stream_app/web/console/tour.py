"""The introduction of three steps on a person's first visits, until it is closed."""

from typing import Annotated, Final

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse, Response

from stream_app.store.accounts.people import Person
from stream_app.web.console.sign_in.account import local_path
from stream_app.web.services import Services, ServicesDep
from stream_app.web.sign_in.auth import Member

router = APIRouter(include_in_schema=False)
STEPS: Final = 3


def tour_step(request: Request, services: Services, person: Person) -> int | None:
    """The step to show, 1 to ``STEPS``, by the page's address; None once it was closed."""
    if services.people.toured(person.name):
        return None
    chosen = request.query_params.get("tour", "")
    return int(chosen) if chosen in ("2", "3") else 1


@router.post("/tour/close")
def close_tour(services: ServicesDep, person: Member, to: Annotated[str, Form()] = "/") -> Response:
    """Do not show the introduction again."""
    services.people.finish_tour(person.name)
    return RedirectResponse(local_path(to), status_code=303)
