"""Codes items one after the other: cache, budget, a bounded number of attempts, and a record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from research.second_coder.answer_cache import AnswerCache, CachedAnswer, key_of
from research.second_coder.answers import Answer, InvalidAnswer, parse, rank
from research.second_coder.codebook import Codebook, Variable
from research.second_coder.cost import BudgetReached, Spending, upper_bound
from research.second_coder.endpoint import (
    RANK_TOKENS,
    Connection,
    EndpointError,
    Reply,
    RequestRefused,
)
from research.second_coder.items import Item
from research.second_coder.prompt import Form, Prompt, build

REFUSED_AT_FIRST: Final = 3
"""Refused requests without any answer after which the run ends: the fault is not an item's."""


class Asker(Protocol):
    """What answers prompts."""

    connection: Connection

    def ask(self, prompt: Prompt, *, ranks: bool) -> Reply:
        """Ask for an answer."""


@dataclass(frozen=True)
class Result:
    """One item's value of one variable; `answer` is None with a `problem`."""

    item: Item
    variable: str
    answer: Answer | None
    attempts: int
    cached: bool = False
    problem: str | None = None


@dataclass
class Counts:
    """What happened in a run, apart from its cost; `stopped` says why it ended early."""

    coded: int = 0
    from_cache: int = 0
    invalid_answers: int = 0
    without_answer: int = 0
    refused: int = 0
    stopped: str | None = None


@dataclass
class SecondCoder:
    """A language model that codes by one codebook.

    `examples` by variable precede every item; `attempts` is the largest number of requests for an
    item whose answers are not valid. `form` becomes "json" if the endpoint refuses a schema.
    """

    endpoint: Asker
    book: Codebook
    form: Form
    spending: Spending
    attempts: int = 3
    cache: AnswerCache | None = None
    examples: Mapping[str, Sequence[Item]] = field(default_factory=dict)
    counts: Counts = field(default_factory=Counts)

    def run(self, items: Iterable[Item], variables: Sequence[Variable]) -> Iterator[Result]:
        """Code every variable of every item whose speaker it is about.

        Ends early, with the reason in `counts.stopped`, when the budget is reached or the endpoint
        gives no answers.
        """
        for item in items:
            for variable in variables:
                if variable.role != item.role:
                    continue
                try:
                    result = self._coded(item, variable)
                except (BudgetReached, EndpointError) as problem:
                    self.counts.stopped = str(problem)
                    return
                self._count(result)
                yield result

    def _count(self, result: Result) -> None:
        self.counts.coded += result.answer is not None
        self.counts.from_cache += result.cached
        self.counts.without_answer += result.answer is None

    def prompt(self, item: Item, variable: Variable) -> Prompt:
        """The first prompt for an item."""
        return build(self.book, variable, item, self.form, self.examples.get(variable.name, ()))

    def key(self, prompt: Prompt) -> str:
        """The cache's key of a prompt."""
        own = self.endpoint.connection
        limits = {**own.parameters, own.limit: self.max_tokens, "form": self.form}
        return key_of(own.url, own.model, prompt, limits)

    @property
    def max_tokens(self) -> int:
        """Tokens of an answer at most."""
        return RANK_TOKENS if self.form == "ranks" else self.endpoint.connection.max_tokens

    def _coded(self, item: Item, variable: Variable) -> Result:
        prompt = self.prompt(item, variable)
        if self.cache is not None:
            known = self.cache.find(self.key(prompt))
            if known is not None and known.answer.label in variable.values:
                return Result(item, variable.name, known.answer, known.attempts, cached=True)
        problem = ""
        for attempt in range(1, self.attempts + 1):
            try:
                reply = self._ask(item, variable, prompt)
            except RequestRefused as refused:
                self.counts.refused += 1
                if self.counts.refused >= REFUSED_AT_FIRST and not self.counts.coded:
                    raise
                return Result(item, variable.name, None, attempt, problem=str(refused))
            try:
                answer = self._read(reply, item, variable)
            except InvalidAnswer as invalid:
                self.counts.invalid_answers += 1
                problem = str(invalid)
                prompt = self.prompt(item, variable).with_correction(reply.content, problem)
                continue
            if self.cache is not None:
                first = self.key(self.prompt(item, variable))
                self.cache.keep(first, CachedAnswer(answer, attempt))
            return Result(item, variable.name, answer, attempt)
        return Result(item, variable.name, None, self.attempts, problem=problem)

    def _ask(self, item: Item, variable: Variable, prompt: Prompt) -> Reply:
        """Ask; if the endpoint refuses a schema, ask without, and keep to that if it answers."""
        try:
            return self._asked(prompt)
        except RequestRefused:
            if self.form != "schema":
                raise
        self.form = "json"
        try:
            return self._asked(self.prompt(item, variable))
        except RequestRefused:
            self.form = "schema"
            raise

    def _asked(self, prompt: Prompt) -> Reply:
        bound = upper_bound(prompt, self.max_tokens)
        self.spending.check(bound, 1 + self.endpoint.connection.retries)
        try:
            reply = self.endpoint.ask(prompt, ranks=self.form == "ranks")
        except EndpointError as problem:
            self.spending.add_failed(bound, problem.attempts)
            raise
        self.spending.add(reply.usage, bound, reply.failed)
        return reply

    def _read(self, reply: Reply, item: Item, variable: Variable) -> Answer:
        if self.form == "ranks":
            if reply.tokens is None:
                raise EndpointError(
                    "the endpoint gives no log-probabilities; --answers schema needs none"
                )
            return rank(reply.tokens, variable)
        if not reply.complete:
            raise InvalidAnswer("it was cut off, or the endpoint's model declined")
        return parse(reply.content, variable, item.text)
