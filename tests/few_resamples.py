"""Draws few resamples for intervals: most tests assert values, not the width of an interval."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from models.evaluate import resampling

FEW = 100
ALL = resampling.RESAMPLES


@pytest.fixture(scope="session", autouse=True)
def _few_resamples() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resampling, "RESAMPLES", FEW)
        yield


@pytest.fixture
def all_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draws as many as the commands do, for a comparison with stored figures."""
    monkeypatch.setattr(resampling, "RESAMPLES", ALL)
