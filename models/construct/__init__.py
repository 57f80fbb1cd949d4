"""A benchmark of low empathy whose answers are known, and the fit of what it measures."""
