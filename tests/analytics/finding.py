"""Finds estimates in an analysis."""

from stream_app.analytics.questions.result import ALL, Analysis, Estimate


def of(analysis: Analysis, name: str, measure: str, group: str = ALL) -> Estimate:
    """The only estimate of this name, measure and group."""
    [found] = [
        each
        for each in analysis.estimates
        if (each.name, each.measure, each.group) == (name, measure, group)
    ]
    return found


def holds(found: Estimate, truth: float) -> bool:
    """Whether the interval holds the truth, and is not wider than it is useful."""
    assert found.low is not None, found
    assert found.high is not None, found
    return found.low <= truth <= found.high


def excludes(found: Estimate, value: float) -> bool:
    """Whether the interval excludes a value."""
    return not holds(found, value)
