"""Changes that an administrator confirms with their own password."""

from collections.abc import Callable
from typing import Annotated, TypeVar

from fastapi import Form, Request

from stream_app.store.accounts.people import Person, PersonError
from stream_app.web.services import Services
from stream_app.web.sign_in.auth import address_of_client, authenticate
from stream_app.work.passwords import MAX_CHARS

Password = Annotated[str, Form(max_length=MAX_CHARS)]
T = TypeVar("T")


async def confirmed(
    request: Request, services: Services, person: Person, password: str, change: Callable[[], T]
) -> T:
    """Make a change after the administrator's password was checked.

    Raises:
        PersonError: the password is wrong, or the account has none; or what ``change`` raises.
    """
    address = address_of_client(request)

    def confirm_and_change() -> T:
        if services.people.password_hash(person.name) is None:
            raise PersonError(
                "your account has no password in Rapport to confirm changes with; use "
                "the command line on the server"
            )
        if authenticate(services, person.name, password, address) is None:
            raise PersonError("your password is wrong")
        return change()

    return await services.sign_in_queue.run(confirm_and_change)
