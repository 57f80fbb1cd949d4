"""Every analysis says how far it is."""

import pytest

from stream_app.analytics.questions import progress
from stream_app.analytics.questions.questions import QUESTIONS, Asked
from stream_app.analytics.questions.result import Context
from stream_app.demo.simulator import Platform


@pytest.mark.parametrize("name", QUESTIONS)
def test_an_analysis_tells_its_parts_in_order(name: str, platform: Platform) -> None:
    told: list[tuple[str, int, int]] = []
    measures = QUESTIONS[name].measures[:2]
    asked = Asked(measures=measures, attributes=platform.attributes)
    with progress.watched(lambda *part: told.append(part)):
        QUESTIONS[name].run(platform.frames, Context(), asked)
    assert told
    for work in {each[0] for each in told}:
        done = [part for said, part, _ in told if said == work]
        [parts] = {count for said, _, count in told if said == work}
        assert done == list(range(parts + 1))


def test_nobody_has_to_listen() -> None:
    assert list(progress.each("parts", "ab")) == ["a", "b"]
