"""Import recorded conversations."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from stream_app.client.events import Sendable
    from stream_app.importers.imported import People

imports = typer.Typer(
    no_args_is_help=True,
    help="Import conversations of other programs. They are sent to `rapport web` (RAPPORT_URL, "
    "RAPPORT_TOKEN), or written as JSON lines for `rapport score`.",
)
Out = Annotated[
    Path | None,
    typer.Option("-o", "--out", help="Write JSON lines to this file instead; `-`: to the output."),
]
Consent = Annotated[
    bool,
    typer.Option("--consent", help="The clients agreed to the analysis; else nothing is scored."),
]
Counsellors = Annotated[
    list[str] | None,
    typer.Option(
        "--counsellor",
        metavar="ACCOUNT",
        help="An account of a counsellor; the others are clients'.",
    ),
]
Others = Annotated[
    list[str] | None,
    typer.Option("--other", metavar="ACCOUNT", help="An account to leave out: an observer's."),
]
Bots = Annotated[
    list[str] | None,
    typer.Option(
        "--bot", metavar="ACCOUNT", help="An account of a program: stored, shown and never scored."
    ),
]
Team = Annotated[str | None, typer.Option(help="Of the sessions.")]
Domain = Annotated[
    str | None, typer.Option(help="`counselling`, `peer-support` or `customer-service`.")
]
Language = Annotated[str | None, typer.Option("--lang", help="BCP 47 tag, such as `en`.")]


@imports.command("transcript")
def transcript(
    file: Annotated[
        Path,
        typer.Argument(
            help="WebVTT, SRT, SBV, JSON of Whisper or WhisperX, or a meeting's text "
            "(Zoom, Teams, Meet)."
        ),
    ],
    session: Annotated[str, typer.Option(help="The session's id.")],
    start: Annotated[
        str, typer.Option(help="When the recording began, with an offset: 2026-03-02T09:00:00Z.")
    ],
    role: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SPEAKER=ROLE",
            help="For each speaker: `client`, `counsellor`, `nobody` (leave the words out) or "
            "`words` (this label begins a sentence).",
        ),
    ] = None,
    speaker_id: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SPEAKER=ID", help="A speaker's id; default: a counsellor's name, in all files."
        ),
    ] = None,
    consent: Consent = False,
    team: Team = None,
    domain: Domain = None,
    lang: Language = None,
    out: Out = None,
) -> None:
    """Import a transcript as one session."""
    from stream_app.importers import delivery as command
    from stream_app.importers import transcripts
    from stream_app.importers.imported import starts_at

    roles = command.pairs(role or [], "--role")
    ids = command.pairs(speaker_id or [], "--speaker-id")
    began = starts_at(start)
    said = transcripts.read(file, roles, report=_report)
    events = list(
        transcripts.events_of(
            said,
            session,
            began,
            roles,
            consent=consent or None,
            ids=ids,
            report=_report,
            **_about(team, domain, lang),
        )
    )
    _deliver(events, transcripts.key(session, file), out, file)


@imports.command("convokit")
def convokit(
    folder: Annotated[Path, typer.Argument(help="Folder of a ConvoKit corpus.")],
    out: Out = None,
) -> None:
    """Import a ConvoKit corpus; every conversation is a session."""
    from stream_app.importers import convokit as corpus
    from stream_app.importers import delivery as command

    events = list(command.events_in(corpus.items(folder), _report))
    _deliver(events, command.key_of(folder / corpus.UTTERANCES), out, folder)


@imports.command("chat")
def chat(
    file: Annotated[Path, typer.Argument(help="JSON or JSON lines of messages or webhooks.")],
    service: Annotated[
        Literal["intercom", "matrix", "slack", "twilio", "zendesk"],
        typer.Option("--from", help="The service whose messages these are."),
    ],
    counsellor: Counsellors = None,
    other: Others = None,
    bot: Bots = None,
    room: Annotated[
        str | None,
        typer.Option(help="Of messages that do not name it; default: the name of the folder."),
    ] = None,
    consent: Consent = False,
    out: Out = None,
) -> None:
    """Import recorded messages; every room, channel, ticket or conversation is a session."""
    from stream_app.importers import chats
    from stream_app.importers import delivery as command

    people = _people(counsellor, other, bot, consent)
    items = chats.read(file, service, people, room)
    events = list(command.events_in(items, _report))
    _deliver(events, command.key_of(file, service, room or ""), out, file)


@imports.command("matrix")
def matrix(
    position: Annotated[
        Path, typer.Argument(help="File that keeps the position in Matrix's stream.")
    ],
    counsellor: Counsellors = None,
    other: Others = None,
    bot: Bots = None,
    consent: Consent = False,
) -> None:
    """Follow the rooms of an account (MATRIX_URL, MATRIX_TOKEN) until the process is stopped."""
    from stream_app.importers import delivery as command

    command.follow_matrix(position, _people(counsellor, other, bot, consent), _report)


@imports.command("webhooks")
def webhooks(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on.")] = 8090,
    url: Annotated[
        str | None, typer.Option(help="The public URL, if a proxy changes it; Twilio signs it.")
    ] = None,
    counsellor: Counsellors = None,
    other: Others = None,
    bot: Bots = None,
    consent: Consent = False,
) -> None:
    """Receive webhooks at /zendesk, /intercom, /slack and /twilio, of those that have a secret.

    Secrets: ZENDESK_SECRET, INTERCOM_SECRET, SLACK_SECRET, TWILIO_SECRET (the auth token).
    """
    from stream_app.importers import delivery as command

    people = _people(counsellor, other, bot, consent)
    command.receive_webhooks(host, port, url, people, _report)


def _people(
    counsellor: list[str] | None, other: list[str] | None, bot: list[str] | None, consent: bool
) -> "People":
    from stream_app.importers.imported import People

    return People(
        frozenset(counsellor or ()),
        frozenset(other or ()),
        consent or None,
        frozenset(bot or ()),
    )


def _deliver(events: "Sequence[Sendable]", key: str, out: Path | None, source: Path) -> None:
    """Write or send what was found.

    Exit status 1 if there is nothing, or if the service refused some of it.
    """
    from stream_app.importers import delivery as command
    from stream_app.importers.imported import ImportRefused
    from stream_app.recordings.scoring import open_output

    if not events:
        raise ImportRefused(f"{source} has nothing to import")
    if out is not None:
        with open_output(out, source) as stream:
            done = command.write(events, stream)
    else:
        with command.client() as rapport:
            done = command.send(rapport, events, key, _report)
    typer.echo(f"{done.sessions} sessions, {done.turns} turns", err=True)
    if done.refused:
        raise ImportRefused(f"{done.refused} of {len(events)} events were refused")


def _about(team: str | None, domain: str | None, lang: str | None) -> dict[str, Any]:
    given = {"team": team, "domain": domain, "lang": lang}
    return {name: value for name, value in given.items() if value is not None}


def _report(skipped: object) -> None:
    typer.echo(f"left out: {skipped}", err=True)
