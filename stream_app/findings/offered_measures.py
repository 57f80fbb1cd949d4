"""The measures that pages offer: those of the roll-ups, without restricted outputs."""

from stream_app.analytics.questions.shown_curves import MEASURES
from stream_app.core.measures.heads import PERCEIVED, Dimension
from stream_app.settings import Settings


def offered(settings: Settings) -> tuple[str, ...]:
    """Names of the measures, with the number of sessions, in the order of the roll-ups."""
    restricted = Dimension.PERCEIVED in settings.restrictions.everywhere
    return tuple(name for name in MEASURES if not (restricted and name in PERCEIVED))
