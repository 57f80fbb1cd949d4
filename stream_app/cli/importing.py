"""Import recorded conversations."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from stream_app.client.events import Sendable

imports = typer.Typer(
    no_args_is_help=True,
    help="Import conversations of other programs: to `rapport web` (RAPPORT_URL, RAPPORT_TOKEN), "
    "or as JSON lines for `rapport score`.",
)
Out = Annotated[
    Path | None,
    typer.Option("-o", "--out", help="Write JSON lines to this file instead; `-`: to the output."),
]
Consent = Annotated[
    bool,
    typer.Option("--consent", help="The clients agreed to the analysis; else nothing is scored."),
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
    from stream_app.commands import importing as command
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
    from stream_app.commands import importing as command
    from stream_app.importers import convokit as corpus

    events = list(command.events_in(corpus.items(folder), _report))
    _deliver(events, command.key_of(folder / corpus.UTTERANCES), out, folder)


def _deliver(events: "Sequence[Sendable]", key: str, out: Path | None, source: Path) -> None:
    """Write or send what was found.

    Exit status 1 if there is nothing, or if the service refused some of it.
    """
    from stream_app.commands import importing as command
    from stream_app.commands.score import open_output
    from stream_app.importers.imported import ImportRefused

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
