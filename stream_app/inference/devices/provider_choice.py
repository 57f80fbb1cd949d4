"""Which execution provider is requested; apart from sessions, so settings need no runtime."""

from enum import Enum

from msgspec import Struct


class Provider(Enum):
    """The requested provider; ``auto``: CUDA if it works, otherwise the CPU."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"


class CudaDevice(Struct, frozen=True):
    """Which device CUDA sessions use, and how much of its memory each may take (None: all)."""

    number: int = 0
    memory_mb: int | None = None


FIRST_DEVICE = CudaDevice()
