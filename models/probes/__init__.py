"""Whether a scorer hears what a response answers, or its words alone (Lee et al., section 4.5)."""
