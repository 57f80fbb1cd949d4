"""How far people and the model agree, and how often scores are disputed; names nobody."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Query

from stream_app.contracts.scores import MECHANISMS
from stream_app.store import disputes
from stream_app.store.disputes import DisputeCount
from stream_app.store.people import Person, PersonRole
from stream_app.web import agreement
from stream_app.web.agreement import Agreement
from stream_app.web.api.fields import Identifier
from stream_app.web.auth import allowed
from stream_app.web.services import Wired

router = APIRouter(prefix="/agreement", tags=["agreement"])
Anybody = Annotated[
    Person, Depends(allowed(*(role for role in PersonRole if role is not PersonRole.INGEST)))
]


@dataclass(frozen=True, slots=True)
class AgreementOfBundle:
    """What people made of a bundle's scores."""

    bundle: str
    agreement: list[Agreement]
    disputes: list[DisputeCount]


@router.get("")
def agreement_of_bundle(
    services: Wired,
    person: Anybody,  # noqa: ARG001  # whoever is signed in
    bundle: Annotated[Identifier, Query(description="A bundle that scored here")],
    head: Annotated[
        list[Identifier] | None,
        Query(max_length=50, description="Only these heads; the three mechanisms if left out"),
    ] = None,
) -> AgreementOfBundle:
    """By head: people and model, people among themselves, over the whole installation."""
    return AgreementOfBundle(
        bundle,
        agreement.of_bundle(services.store, bundle, head or MECHANISMS),
        disputes.counts(services.store, bundle),
    )
