"""The latest agreement of people with a bundle, as it stands beside every analysis."""

from collections.abc import Sequence

from stream_app.contracts.scores import MECHANISMS
from stream_app.findings import agreement
from stream_app.findings.agreement import Sides
from stream_app.store.stream.repository import Store


def sentences(store: Store, bundles: Sequence[str]) -> list[str]:
    """One for each bundle and mechanism: people and the model."""
    return [
        f"{bundle}, {each.head.replace('_', ' ')}: {each.kappa.words}"
        for bundle in bundles
        for each in agreement.of_bundle(store, bundle, MECHANISMS)
        if each.sides is Sides.PEOPLE_MODEL
    ]
