"""Policy profiles: what a law or an agreement asks of an installation, one YAML file each.

``RAPPORT_POLICY`` names one. It restricts outputs, bounds settings, says whether people may act on
a person without having read the session, and has the words of notices. Format and
contents: ``docs/policies.md``.
"""

from stream_app.policies.profile import (
    Actions,
    Bound,
    Notices,
    PolicyError,
    Profile,
    in_words,
    load,
    shipped,
)

__all__ = ["Actions", "Bound", "Notices", "PolicyError", "Profile", "in_words", "load", "shipped"]
