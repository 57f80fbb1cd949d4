"""Description of the machine that figures were measured on."""

import os
import platform
from pathlib import Path

import onnxruntime
import psutil
from msgspec import Struct

from stream_app.bootstrap import usable_cores


class Machine(Struct, frozen=True):
    """``load``: one-minute load average before the run."""

    processor: str
    cores: int
    memory_gib: int
    system: str
    python: str
    onnxruntime: str
    load: float


def here() -> Machine:
    """Describe this machine now."""
    return Machine(
        processor=_processor(),
        cores=usable_cores(),
        memory_gib=round(psutil.virtual_memory().total / 2**30),
        system=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
        onnxruntime=onnxruntime.__version__,
        load=round(os.getloadavg()[0], 2),
    )


def _processor() -> str:
    """Processor name, and its instruction sets relevant to int8."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    values = dict(line.split(":", 1) for line in lines if ":" in line)
    fields = {key.strip(): value.strip() for key, value in values.items()}
    flags = fields.get("flags", "").split()
    shown = [name for name in ("avx2", "avx512f", "avx512_vnni", "amx_int8") if name in flags]
    return f"{fields.get('model name', platform.machine())} ({', '.join(shown)})"
