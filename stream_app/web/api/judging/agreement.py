"""``GET /agreement``: agreement of people and model, and dispute counts; names no person."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query

from stream_app.contracts.scores import MECHANISMS
from stream_app.findings import agreement
from stream_app.findings.agreement import Agreement, ShadowAgreement
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.roles import Right
from stream_app.store.work import disputes
from stream_app.store.work.disputes import DisputeCount
from stream_app.web.http.fields import Identifier
from stream_app.web.services import ServicesDep
from stream_app.web.sign_in.auth import Member, needs

router = APIRouter(prefix="/agreement", tags=["agreement"])


@dataclass(frozen=True, slots=True)
class BundleAgreement:
    """Agreement of people with a bundle's scores, and the disputes about them."""

    bundle: str
    agreement: list[Agreement]
    disputes: list[DisputeCount]


@router.get("")
@needs(Right.READ_SCORES)
def agreement_of_bundle(
    services: ServicesDep,
    person: Member,
    bundle: Annotated[Identifier, Query(description="A bundle that has scored sessions here")],
    head: Annotated[
        list[Identifier] | None,
        Query(max_length=50, description="Only these heads; default: the three mechanisms"),
    ] = None,
) -> BundleAgreement:
    """Agreement by head, between people and model and among people, over all stored ratings."""
    services.accesses.record(person.name, AuditAction.READ_STATISTICS, "agreement")
    return BundleAgreement(
        bundle,
        agreement.of_bundle(services.store, bundle, head or MECHANISMS),
        disputes.counts(services.store, bundle),
    )


@router.get("/shadow")
@needs(Right.READ_SCORES)
def agreement_in_the_shadow(
    services: ServicesDep,
    person: Member,
    head: Annotated[
        list[Identifier] | None,
        Query(max_length=50, description="Only these heads; default: the three mechanisms"),
    ] = None,
) -> list[ShadowAgreement]:
    """Agreement of people with the bundle in force and with one in its shadow, on equal turns.

    Empty unless a worker runs with `--shadow` and people have rated its turns. Ratings given with
    the score in view saw that of the bundle in force.
    """
    services.accesses.record(person.name, AuditAction.READ_STATISTICS, "agreement in the shadow")
    return agreement.beside(services.store, head or MECHANISMS)
