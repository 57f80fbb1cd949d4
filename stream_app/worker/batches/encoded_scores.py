"""Encodes scores and alerts in the version of their schema that the settings choose."""

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from stream_app.contracts import compact, scores
from stream_app.contracts.score_layout import ScoreLayout
from stream_app.contracts.scores import Alert, Output, SessionScore, TurnScore
from stream_app.core.measures.heads import layout_of
from stream_app.core.pipeline.pipeline import Pipeline

_TURN: Final = f"turn_score:v{compact.VERSION}"
_SESSION: Final = f"session_score:v{compact.VERSION}"


class EncodedScore(Struct, frozen=True):
    """The JSON of a message, and the name of its schema as in ``core.ports.Message``."""

    value: bytes
    kind: str


def encode_full(output: Output, _pipeline: Pipeline) -> EncodedScore:
    """Encode in version 1."""
    return EncodedScore(scores.encode(output), str(output.__struct_config__.tag))


class CompactEncoding:
    """Encodes in version 2; of a bundle that is no longer in force, turn scores in version 1."""

    def __init__(self) -> None:
        self._layouts: dict[str, ScoreLayout] = {}

    def __call__(self, output: Output, pipeline: Pipeline) -> EncodedScore:
        """Encode one message."""
        match output:
            case TurnScore():
                layout = self._layout(output.bundle, pipeline)
                if layout is None:
                    return encode_full(output, pipeline)
                return EncodedScore(compact.encode_turn(output, layout), _TURN)
            case SessionScore():
                return EncodedScore(compact.encode_session(output), _SESSION)
            case Alert():
                return encode_full(output, pipeline)

    def _layout(self, bundle: str, pipeline: Pipeline) -> ScoreLayout | None:
        found = self._layouts.get(bundle)
        if found is None:
            for item in pipeline.bundles:
                if item.scorer.bundle_id == bundle:
                    found = self._layouts[bundle] = layout_of(item.scorer.heads)
        return found


def encoding(version: int) -> Callable[[Output, Pipeline], EncodedScore]:
    """The encoding of a version of the schemas."""
    return CompactEncoding() if version == compact.VERSION else encode_full
