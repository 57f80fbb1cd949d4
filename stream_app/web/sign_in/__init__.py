"""Who asks: passwords, tokens, cookies, single sign-on."""

__all__ = [
    "auth",
    "single_sign_on",
]
