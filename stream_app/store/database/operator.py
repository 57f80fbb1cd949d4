"""The user of the operating system who runs a command, for the audit trail."""

import os
import pwd
from collections.abc import Mapping
from typing import Final

PREFIX: Final = "(command line)"
"""Distinguishes users of the operating system from accounts of the console."""


def operator(environment: Mapping[str, str] = os.environ) -> str:
    """The person of audit entries that this command writes, such as ``(command line) alice``.

    Under sudo, root and the user who called it.
    """
    own = _name(os.getuid())
    caller = environment.get("SUDO_UID", "")
    if os.getuid() == 0 and caller.isdecimal() and int(caller) != 0:
        return f"{PREFIX} {own}, for {_name(int(caller))}"
    return f"{PREFIX} {own}"


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except (KeyError, OverflowError):
        return f"uid {uid}"
