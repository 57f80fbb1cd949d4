"""Compiles templates that escape faster: most values have nothing to escape.

Jinja makes a ``Markup`` of every value, by a method in Python, only to join it with the others. A
page has thousands of values.
"""

import re
from typing import Any, Final, cast

from jinja2.compiler import CodeGenerator
from markupsafe import Markup, escape

_SPECIAL: Final = re.compile("[&<>'\"]").search


def escape_output(value: object) -> str:
    """A value as HTML, to be joined with others.

    >>> escape_output("plain"), escape_output(7), escape_output(Markup("<b>"))
    ('plain', '7', Markup('<b>'))
    >>> escape_output("<b>")
    Markup('&lt;b&gt;')
    """
    kind = type(value)
    if kind is str:
        text = cast("str", value)
        return text if _SPECIAL(text) is None else escape(text)
    if kind is int:
        return str(value)
    return cast("Markup", value) if kind is Markup else escape(value)


class FastEscaping(CodeGenerator):
    """Jinja's code generator, with ``escape_output`` for what templates print."""

    def visit_Template(self, node: Any, frame: Any = None) -> None:  # noqa: N802  # Jinja's name
        """Import the function into the module that the template becomes."""
        self.writeline(f"from {__name__} import {escape_output.__name__}")
        super().visit_Template(node, frame)

    def _output_child_pre(self, node: Any, frame: Any, finalize: Any) -> None:
        context = frame.eval_ctx
        if context.autoescape and not context.volatile and finalize.src is None:
            self.write(f"{escape_output.__name__}(")
        else:
            super()._output_child_pre(node, frame, finalize)
