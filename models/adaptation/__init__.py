"""How many ratings ``rapport adapt`` needs, on simulated platforms with known raters."""

__all__ = ["low_rank", "task_inputs"]
