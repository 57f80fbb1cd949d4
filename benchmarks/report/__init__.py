"""Tables and plots of results, and the machine that they were measured on."""

__all__ = ["machine", "markdown", "plots", "probes"]
