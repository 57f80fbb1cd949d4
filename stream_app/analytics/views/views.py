"""All reporting views, in an order in which they can be made."""

from collections.abc import Mapping
from typing import Any

from stream_app.analytics.views import dimensions, facts, shown, turn_days
from stream_app.analytics.views.columns import View
from stream_app.analytics.views.dialects import Dialect
from stream_app.analytics.views.heads import fields


def all_views(dialect: Dialect, bundles: Mapping[str, Mapping[str, Any]]) -> list[View]:
    """The views over a database in which these bundles, by id and manifest, have scored."""
    manifests = [bundles[bundle] for bundle in sorted(bundles)]
    numbers = fields(manifests, dialect)
    outcomes = sorted({name for manifest in manifests for name in manifest.get("outcomes", {})})
    return [
        facts.fact_turn(dialect, numbers),
        facts.fact_session(dialect, outcomes),
        facts.fact_alert(dialect),
        facts.fact_rating(dialect),
        facts.fact_outcome(dialect),
        *turn_days.all_turn_days(dialect),
        dimensions.dim_counsellor(dialect),
        dimensions.dim_team(dialect),
        dimensions.dim_bundle(dialect),
        dimensions.dim_head(numbers, bundles),
        dimensions.dim_date(dialect),
        *shown.all_shown(dialect),
    ]
