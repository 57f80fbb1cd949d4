"""An older processor, emulated: without VNNI, large sums of 8-bit products would be cut off.

What may differ is a value between two steps of 8 bits that is rounded the other way.
"""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from stream_app.inference.bundles.bundle import DEFAULT_BUNDLE, load
from tests.conftest import _missing

ALIKE = 0.9995
"""Cosine; a graph whose sums are cut off has 0.994 to 0.997 on these texts."""
TEXTS = [
    "I'm so sorry, that must have been terrible. What happened?",
    "ok",
    "It sounds as if you have carried this alone for a long time, and that nobody asked.",
    "My landlord called again!!! I can't sleep & I keep thinking that it's all my fault :(",
]
ENCODE = """
import sys
from pathlib import Path
import numpy as np
from stream_app.inference.bundles.bundle import load
from stream_app.inference.encoder import TurnEncoder
from stream_app.inference.devices.provider_choice import Provider
from stream_app.inference.tokenizer import TextTokenizer
manifest = (bundle := load(Path({bundle!r}))).manifest
tokenizer = TextTokenizer(bundle.file(manifest.tokenizer.file), manifest.encoder.max_tokens)
encoder = TurnEncoder(bundle.file(manifest.encoder.file), manifest.encoder, Provider.CPU, 1)
found = encoder.encode(tokenizer.tokenize({texts!r}))
np.savez(sys.argv[1], *[turn.vectors for turn in found])
"""


@pytest.mark.slow
def test_quantised_sums_do_not_saturate_on_older_processors(tmp_path: Path) -> None:
    if platform.machine() != "x86_64" or sys.platform != "linux":
        pytest.skip("emulates one x86 processor on another")
    emulator = shutil.which("qemu-x86_64")
    if emulator is None:
        _missing("qemu-x86_64 (Debian: qemu-user) is not installed")
    program = ENCODE.format(bundle=str(DEFAULT_BUNDLE), texts=TEXTS)
    known = {**os.environ, "PYTHONPATH": os.pathsep.join(folder for folder in sys.path if folder)}
    assert load(DEFAULT_BUNDLE).manifest.encoder.batch_independent
    found = []
    for name, before in (("here", []), ("haswell", [emulator, "-cpu", "Haswell"])):
        out = tmp_path / f"{name}.npz"
        python = str(Path(sys.executable).resolve())
        command = [*before, python, "-c", program, str(out)]
        subprocess.run(command, env=known, check=True, timeout=240)
        with np.load(out) as read:
            found.append([read[key] for key in read.files])
    for here, there in zip(*found, strict=True):
        a, b = here.astype(np.float64).ravel(), there.astype(np.float64).ravel()
        assert a @ b / np.linalg.norm(a) / np.linalg.norm(b) > ALIKE
