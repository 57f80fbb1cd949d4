"""Computes on one thread, whatever number a command sets for its process.

A command's number would stay for all later tests of the process, whose threads then mostly wait for
each other and for those of the other processes. Sums also keep a fixed order.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> Iterator[None]:
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "set_num_threads", lambda count: None)
        yield
