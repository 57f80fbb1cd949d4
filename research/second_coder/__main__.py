"""`python -m research.second_coder code`: have a language model code by a codebook.

Offline only: no part of the service imports this package. Text is sent to an endpoint on this
machine, or to another one that is named; from a database only sessions whose consent includes
processing by a third party, from files only those whose licence or consent is declared.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from models.agreement.labelled_file import read as read_ratings
from models.agreement.report import print_agreement
from models.data.corpora import MissingCorpusError, resolve_data_dir
from research.second_coder import codebook as codebooks
from research.second_coder import items as sources
from research.second_coder import results, stored_sessions
from research.second_coder.answer_cache import AnswerCache, CacheError
from research.second_coder.codebook import Codebook, CodebookError, Variable
from research.second_coder.coding import SecondCoder
from research.second_coder.cost import Prices, Spending, Usage, upper_bound
from research.second_coder.endpoint import NO_KEY, Connection, Endpoint, EndpointError, require_host
from research.second_coder.figures import figures
from research.second_coder.items import Item, ItemsError
from research.second_coder.prompt import Form, choose_examples
from stream_app import bootstrap
from stream_app.errors import RapportError
from stream_app.settings import Settings
from stream_app.store.stream.repository import Store

app = typer.Typer(add_completion=False, no_args_is_help=True)
CACHE = Path("build/second_coder/answers.sqlite")
CorpusName = Literal["annomi", "empathetic_intents", "epitome", "esconv"]
LimitField = Literal["max_tokens", "max_completion_tokens"]
RESERVED = {
    *("model", "messages", "n", "stream", "response_format", "logprobs", "top_logprobs"),
    *("max_tokens", "max_completion_tokens"),
}
"""Fields of requests that have options of their own, or would change what the budget counts."""
EXPERT = "expert"
SOURCES = "give one of --corpus, --events and --database"


@dataclass(frozen=True)
class Source:
    """The items of a run, labelled items for examples, and what the record says of them."""

    items: Iterable[Item]
    labelled: Sequence[Item]
    record: dict[str, Any]
    store: Store | None = None


@app.command(name="codebooks")
def list_codebooks() -> None:
    """List the codebooks, their variables and labels."""
    for name in codebooks.names():
        book = codebooks.read(codebooks.find(name))
        print(f"{name}: {book.title}")
        for variable in book.variables:
            sign = " < " if variable.ordered else ", "
            print(f"  {variable.name} ({variable.role}): {sign.join(variable.values)}")


@app.command()
def code(
    codebook: Annotated[str, typer.Option(help="Name of a codebook, or a YAML file.")],
    endpoint: Annotated[str, typer.Option(help="Address, such as http://localhost:8000/v1.")],
    model: Annotated[str, typer.Option(help="The model's name at the endpoint.")],
    out: Annotated[Path, typer.Option(help="File for the values, JSON lines.")],
    corpus: Annotated[CorpusName | None, typer.Option(help="Code a public corpus.")] = None,
    fold: Annotated[
        int | None,
        typer.Option(min=0, max=sources.FOLDS - 1, help="Its fold; default: the held-out tenth."),
    ] = None,
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
    events: Annotated[Path | None, typer.Option(help="Code a file of events.")] = None,
    database: Annotated[
        bool, typer.Option("--database", help="Code sessions of RAPPORT_DATABASE_URL.")
    ] = False,
    session: Annotated[
        list[str] | None, typer.Option(help="With --database: only these sessions.")
    ] = None,
    declared: Annotated[
        str | None,
        typer.Option(help="Licence or consent under which a file's text may be processed so."),
    ] = None,
    variable: Annotated[
        list[str] | None, typer.Option(help="Only these variables of the codebook.")
    ] = None,
    most: Annotated[int | None, typer.Option(min=1, help="Code only the first items.")] = None,
    shots: Annotated[
        int, typer.Option(min=0, max=20, help="Labelled examples of each class (--corpus).")
    ] = 0,
    answers: Annotated[
        Form, typer.Option(help="JSON by a schema, JSON, or ranks by log-probabilities.")
    ] = "schema",
    attempts: Annotated[
        int, typer.Option(min=1, max=10, help="Requests for an item with invalid answers.")
    ] = 3,
    name: Annotated[
        str | None, typer.Option(help="The coder's name in the results; default: the model.")
    ] = None,
    allow_host: Annotated[
        str | None, typer.Option(help="Another machine that the text may be sent to.")
    ] = None,
    key_file: Annotated[Path | None, typer.Option(help="File with the endpoint's key.")] = None,
    temperature: Annotated[
        float | None, typer.Option(min=0.0, max=2.0, help="Sampling temperature.")
    ] = 0.0,
    parameter: Annotated[
        list[str] | None, typer.Option(help="Another field of requests: NAME=JSON.")
    ] = None,
    max_tokens: Annotated[int, typer.Option(min=1, help="Tokens of an answer at most.")] = 400,
    limit_field: Annotated[
        LimitField, typer.Option(help="Name of the field for --max-tokens.")
    ] = "max_tokens",
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds for an answer.")] = 60.0,
    retries: Annotated[int, typer.Option(min=0, max=20, help="After a failed attempt.")] = 4,
    prompt_price: Annotated[
        float | None, typer.Option(min=0.0, help="Money for a million tokens of prompts.")
    ] = None,
    completion_price: Annotated[
        float | None, typer.Option(min=0.0, help="Money for a million tokens of answers.")
    ] = None,
    budget: Annotated[
        float | None, typer.Option(min=0.0, help="Stop before more money could be spent.")
    ] = None,
    cache: Annotated[Path, typer.Option(help="File with earlier answers.")] = CACHE,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count items and characters; send nothing.")
    ] = False,
) -> None:
    """Code items, write their values and a record of the run, and print the agreement."""
    if (name or model) == EXPERT:
        raise typer.BadParameter(f"{EXPERT!r} is the coder of the corpora's labels; give --name")
    with _problems_in_words():
        path = codebooks.find(codebook)
        book = codebooks.read(path)
        variables = _chosen(book, variable)
        host = require_host(endpoint, allow_host)
        prices = _prices(prompt_price, completion_price, budget)
        fields = _fields(parameter)
        if temperature is not None:
            fields.setdefault("temperature", temperature)
        key = key_file.read_text(encoding="utf-8").strip() if key_file is not None else NO_KEY
        connection = Connection(
            endpoint, model, key, timeout, retries, fields, limit_field, max_tokens
        )
        asked = Endpoint(connection)
        known = AnswerCache(cache)
        source = _source(corpus, fold, data_dir, events, database, session, declared, host, dry_run)
        if shots and not source.labelled:
            raise typer.BadParameter("examples come from a corpus: --shots needs --corpus")
        coder = SecondCoder(
            asked,
            book,
            answers,
            Spending(prices, budget),
            attempts,
            known,
            {v.name: choose_examples(v, source.labelled, shots) for v in variables},
        )
        items = _first(source.items, most)
        if dry_run:
            print(json.dumps(_dry(coder, items, variables, prices), indent=1))
            return
        started = datetime.now(UTC)
        found = list(coder.run(items, variables))
        record = {
            "started": started.isoformat(timespec="seconds"),
            "ended": datetime.now(UTC).isoformat(timespec="seconds"),
            "model": model,
            "host": host,
            "codebook": {"name": path.stem, "sha256": codebooks.digest(path)},
            "variables": [each.name for each in variables],
            "source": source.record,
            "answers": {"asked": answers, "used": coder.form, "attempts": attempts},
            "shots": shots,
            "parameters": {**fields, limit_field: max_tokens},
            **asdict(coder.counts),
            "figures": figures(found, variables),
            "cost": _cost(coder.spending),
        }
        results.write(out, name or model, found, record)
        asked.close()
        known.close()
        if source.store is not None:
            source.store.close()
    print(json.dumps(record, indent=1))
    if coder.counts.coded and any(result.item.experts for result in found):
        scales = {each.name: each.scale for each in variables}
        print_agreement(read_ratings([out]), scales)
    if coder.counts.stopped is not None:
        raise SystemExit(f"error: stopped after {len(found)} values: {coder.counts.stopped}")


@contextmanager
def _problems_in_words() -> Iterator[None]:
    try:
        yield
    except (
        *(CacheError, CodebookError, EndpointError, ItemsError),
        *(MissingCorpusError, RapportError, OSError, UnicodeError),
    ) as problem:
        raise SystemExit(f"error: {problem}") from None


def _chosen(book: Codebook, wanted: Sequence[str] | None) -> list[Variable]:
    known = {variable.name: variable for variable in book.variables}
    for name in wanted or ():
        if name not in known:
            raise typer.BadParameter(f"no variable {name!r}; there are: {', '.join(known)}")
    return [known[name] for name in dict.fromkeys(wanted or known)]


def _prices(prompt: float | None, completion: float | None, budget: float | None) -> Prices | None:
    for amount in (prompt, completion, budget):
        if amount is not None and not math.isfinite(amount):
            raise typer.BadParameter("prices and budget must be finite numbers")
    if prompt is not None and completion is not None:
        return Prices(prompt, completion)
    if budget is not None or prompt is not None or completion is not None:
        raise typer.BadParameter("money needs --prompt-price and --completion-price")
    return None


def _fields(parameters: Sequence[str] | None) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for each in parameters or ():
        name, _, value = each.partition("=")
        if name in RESERVED:
            raise typer.BadParameter(f"{name} cannot be set by --parameter")
        try:
            fields[name] = json.loads(value)
        except ValueError:
            raise typer.BadParameter(f"{name}: NAME=JSON, such as seed=1") from None
    return fields


def _source(
    corpus: CorpusName | None,
    fold: int | None,
    data_dir: Path | None,
    events: Path | None,
    database: bool,
    sessions: Sequence[str] | None,
    declared: str | None,
    host: str,
    dry_run: bool,
) -> Source:
    if (corpus is not None) + (events is not None) + database != 1:
        raise typer.BadParameter(SOURCES)
    if not database and not (declared or "").strip():
        raise typer.BadParameter(
            "--declared TEXT must say under which licence or consent the text may be processed"
        )
    if corpus is not None:
        tested, training = sources.corpus_part(corpus, resolve_data_dir(data_dir), fold)
        part = "held-out tenth" if fold is None else f"fold {fold} of {sources.FOLDS}"
        return Source(tested, training, {"corpus": corpus, "part": part, "declared": declared})
    if events is not None:
        found, withheld = sources.of_events(events)
        record = {"events": events.name, "declared": declared, "withheld_sessions": withheld}
        return Source(found, (), record)
    store = bootstrap.store(Settings())
    allowed = stored_sessions.permitted(store, sessions or ())
    purpose = stored_sessions.PURPOSE.value
    stored = stored_sessions.read(store, allowed, host=None if dry_run else host)
    return Source(
        stored, (), {"database": True, "consent": purpose, "sessions": len(allowed)}, store
    )


def _first(items: Iterable[Item], most: int | None) -> Iterator[Item]:
    for number, item in enumerate(items):
        if number == most:
            return
        yield item


def _dry(
    coder: SecondCoder, items: Iterable[Item], variables: Sequence[Variable], prices: Prices | None
) -> dict[str, Any]:
    """Counts of what a run would send, and upper bounds of what it would use."""
    found = {"items": 0, "requests": 0, "cached": 0, "characters": 0}
    bound = Usage(0, 0)
    for item in items:
        found["items"] += 1
        for variable in variables:
            if variable.role != item.role:
                continue
            prompt = coder.prompt(item, variable)
            if coder.cache is not None and coder.cache.find(coder.key(prompt)) is not None:
                found["cached"] += 1
                continue
            found["requests"] += 1
            found["characters"] += prompt.characters
            one = upper_bound(prompt, coder.max_tokens)
            bound = Usage(bound.prompt + one.prompt, bound.completion + one.completion)
    most = {"prompt": bound.prompt, "completion": bound.completion}
    return {
        **found,
        "tokens_at_most": most,
        "money_at_most": prices.of(bound) if prices is not None else None,
    }


def _cost(spending: Spending) -> dict[str, Any]:
    return {
        "requests": spending.requests,
        "tokens": asdict(spending.usage),
        "uncounted_requests": spending.uncounted_requests,
        "tokens_of_uncounted_at_most": asdict(spending.uncounted),
        "prices_per_million": asdict(spending.prices) if spending.prices is not None else None,
        "money_at_most": spending.money,
        "budget": spending.budget,
    }


if __name__ == "__main__":
    app()
