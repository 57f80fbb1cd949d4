"""Pages about the own account: sign-in, password, single sign-on."""

__all__ = [
    "account",
    "own_password",
    "single_sign_on",
]
