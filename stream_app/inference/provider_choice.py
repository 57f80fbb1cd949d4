"""Which execution provider is requested; apart from sessions, so settings need no runtime."""

from enum import Enum


class Provider(Enum):
    """The requested provider; ``auto``: CUDA if it works, otherwise the CPU."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"
