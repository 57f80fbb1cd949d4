"""Processors of sessions: providers, placement of nodes, float16 graphs, buffers, batches."""

__all__ = [
    "batching",
    "float16_graph",
    "io_binding",
    "placement",
    "probe",
    "provider_choice",
    "providers",
]
