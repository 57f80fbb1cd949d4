"""SVG plots without JavaScript, which also print."""

__all__ = [
    "axis_ticks",
    "band_chart",
    "charts",
    "interval_chart",
    "trend_chart",
]
