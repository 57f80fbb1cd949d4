"""``any_of(column, "ids")``: whether a column has one of the values of a list parameter.

``IN`` has a parameter for each value, so that a list of another length is another statement: it is
compiled, sent and planned again. Here the list is a single parameter.
"""

from typing import Any, Final

import msgspec
import sqlalchemy as sa
from sqlalchemy import ColumnElement, Dialect
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeDecorator, TypeEngine

IDS: Final = "ids"
"""The usual name of the parameter."""


class _Strings(TypeDecorator[Any]):
    """An array; on SQLite, which has none, JSON."""

    impl = sa.Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """The type of the parameter."""
        return postgresql.ARRAY(sa.String()) if dialect.name == "postgresql" else sa.Text()

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        """The values as the database takes them."""
        values = list(value)
        return values if dialect.name == "postgresql" else msgspec.json.encode(values).decode()


class _AnyOf(FunctionElement[bool]):
    type = sa.Boolean()
    inherit_cache = True


def any_of(column: ColumnElement[str], parameter: str) -> ColumnElement[bool]:
    """The condition; pass the list of strings under the parameter's name when executing."""
    return _AnyOf(column, sa.bindparam(parameter, type_=_Strings()))


class _InSet(FunctionElement[bool]):
    type = sa.Boolean()
    inherit_cache = True


def in_set(column: ColumnElement[str], parameter: str) -> ColumnElement[bool]:
    """Compare as ``any_of`` for every row: the list is hashed, no index is used."""
    return _InSet(column, sa.bindparam(parameter, type_=_Strings()))


@compiles(_InSet, "postgresql")
def _in_hashed(element: _InSet, compiler: SQLCompiler, **options: Any) -> str:
    column, values = (compiler.process(each, **options) for each in element.clauses)
    return f"{column} IN (SELECT unnest({values}))"


@compiles(_AnyOf, "postgresql")
def _in_array(element: _AnyOf, compiler: SQLCompiler, **options: Any) -> str:
    column, values = (compiler.process(each, **options) for each in element.clauses)
    # The planner sees no list in a subquery and assumes a few values; of 100, it would scan tables
    # of 10,000 rows, which takes ten times as long as the index.
    return f"{column} = ANY ((SELECT {values})::varchar[])"


@compiles(_InSet)
@compiles(_AnyOf)
def _in_json(element: _AnyOf | _InSet, compiler: SQLCompiler, **options: Any) -> str:
    column, values = (compiler.process(each, **options) for each in element.clauses)
    return f"{column} IN (SELECT value FROM json_each({values}))"  # noqa: S608  # compiled parts
