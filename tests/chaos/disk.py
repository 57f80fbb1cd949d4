"""A small file system that can run full: a tmpfs, which only root can mount."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

SIZE = "3g"
"""Limit while the disk is not full; memory is used only for what is stored."""
TRIES = 20


class SmallDisk:
    """Mounted in a folder of its own, which every user may enter."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="rapport-disk-"))
        self._mount(f"size={SIZE},mode=0755", "-t", "tmpfs", "tmpfs")

    def fill(self) -> None:
        """Limit the size to what is used, so that the next page written is refused (ENOSPC).

        Raises:
            AssertionError: it was written to faster than it could be limited.
        """
        for _ in range(TRIES):
            room = os.statvfs(self.folder)
            used = (room.f_blocks - room.f_bfree) * room.f_frsize
            try:
                self._mount(f"remount,size={used}")
            except subprocess.CalledProcessError:  # more is used by now
                continue
            if os.statvfs(self.folder).f_bavail == 0:
                return
        raise AssertionError("the disk cannot be filled")

    def release(self) -> None:
        """Allow writes again."""
        self._mount(f"remount,size={SIZE}")

    def remove(self) -> None:
        """Unmount it and delete the folder."""
        subprocess.run(["umount", "--lazy", self.folder], check=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _mount(self, options: str, *more: str) -> None:
        command = ["mount", "-o", options, *more, str(self.folder)]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)


def small_disk() -> SmallDisk | None:
    """A new one; None where this user or machine cannot mount."""
    try:
        return SmallDisk()
    except (OSError, subprocess.CalledProcessError):
        return None
