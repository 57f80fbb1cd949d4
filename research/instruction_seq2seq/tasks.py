"""What is asked of an utterance: a codebook's variable, or one of its labels as a yes-or-no task.

The codebooks are those of the second coder, so that a prompted model, a fine-tuned one and people
code by the same definitions.
"""

from __future__ import annotations

from dataclasses import dataclass

from research.second_coder.codebook import Codebook, Variable
from research.second_coder.items import Item

NO_YES = ("no", "yes")
REST = "others"
"""A label for what fits no other one; it is no yes-or-no task."""


class TaskError(ValueError):
    """A codebook has no such task."""


@dataclass(frozen=True)
class Task:
    """A question about an utterance and the words that answer it.

    `verbalisers` are the labels' words, in the order of the labels; `definitions` explain them. A
    yes-or-no task asks for the label `wanted` of the variable.
    """

    variable: str
    question: str
    verbalisers: tuple[str, ...]
    definitions: tuple[str, ...]
    values: tuple[str, ...]
    wanted: str | None = None

    @property
    def name(self) -> str:
        """The task in result files and on the command line."""
        return self.variable if self.wanted is None else f"{self.variable}={self.wanted}"

    def gold(self, item: Item) -> int | None:
        """The label that people gave, or None if they gave none."""
        value = item.experts.get(self.variable)
        if value is None:
            return None
        return self.values.index(value) if self.wanted is None else int(value == self.wanted)


def of_variable(variable: Variable) -> Task:
    """All labels of a variable, which are answered with their names."""
    return Task(
        variable.name,
        variable.question,
        tuple(name.replace("_", " ") for name in variable.values),
        tuple(label.means for label in variable.labels),
        variable.values,
    )


def of_label(variable: Variable, wanted: str) -> Task:
    """One label of a variable against the others (Xu & Jiang 2024, section 5.1)."""
    means = {label.name: label.means for label in variable.labels}[wanted]
    return Task(
        variable.name,
        f'{variable.question} Is it "{wanted.replace("_", " ")}"?',
        NO_YES,
        ("It is another.", means),
        variable.values,
        wanted,
    )


def tasks_of(book: Codebook) -> list[Task]:
    """Every task: of an ordered or two-label variable all labels, of another one each label."""
    found = []
    for variable in book.variables:
        if variable.ordered or len(variable.labels) == len(NO_YES):
            found.append(of_variable(variable))
        else:
            found += [of_label(variable, each) for each in variable.values if each != REST]
    return found


def find(book: Codebook, names: list[str] | None) -> list[Task]:
    """The named tasks, or all of `tasks_of`; a variable's name asks for all of its labels.

    Raises:
        TaskError: there is no such task.
    """
    usual = {task.name: task for task in tasks_of(book)}
    if not names:
        return list(usual.values())
    known = {variable.name: of_variable(variable) for variable in book.variables} | usual
    if unknown := [name for name in names if name not in known]:
        message = f"no task {', '.join(unknown)}; there are {', '.join(known)}"
        raise TaskError(message)
    return [known[name] for name in names]
