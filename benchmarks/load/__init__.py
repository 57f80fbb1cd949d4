"""Turns sent to whole workers: the workload, its schedule, and the worker that is measured."""

__all__ = [
    "clocks",
    "commits",
    "consumer_group",
    "generator",
    "keys",
    "part_clock",
    "processes",
    "rounds",
    "schedule",
    "stand_in_sessions",
    "sustained",
    "testbed",
    "worker",
    "worker_environment",
    "workload",
]
