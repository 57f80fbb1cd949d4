"""The writer's own words of HTML messages and e-mails: without quotes, scripts and signatures."""

import re
from typing import Final

from bs4 import BeautifulSoup
from mailparser_reply import EmailReplyParser

_NOT_SAID: Final = (
    "script, style, head, title, template, blockquote, mx-reply, .gmail_quote, .yahoo_quoted"
)
_BLOCKS: Final = "p, div, li, tr, h1, h2, h3, h4, h5, h6, pre, ul, ol, table"
_SPACE: Final = re.compile(r"[^\S\n]+")
_LINES: Final = re.compile(r"\s*\n\s*")
_LANGUAGES: Final = ["en", "de", "es", "fr", "it", "nl"]
_RULE: Final = re.compile(r"[_\-=*]{8,}")
_DEVICE: Final = re.compile(r"(?:sent from my|get outlook for|von meinem) .{1,40}", re.IGNORECASE)


def of_html(html: str) -> str:
    r"""The text of an HTML message, a line for each paragraph; what it quotes is left out.

    >>> of_html("<blockquote>I am sorry.</blockquote><p>Leave&nbsp;me<br>alone</p><p>now</p>")
    'Leave me\nalone\nnow'
    """
    soup = BeautifulSoup(f"<div>{html}</div>", "html.parser")
    for element in soup.select(_NOT_SAID):
        element.decompose()
    for element in soup.select("br"):
        element.replace_with("\n")
    for element in soup.select(_BLOCKS):
        element.insert_before("\n")
        element.insert_after("\n")
    return _LINES.sub("\n", _SPACE.sub(" ", soup.get_text())).strip()


def of_mail(text: str) -> str:
    r"""The new words of an e-mail: without the mail it answers, quoted lines and the signature.

    >>> of_mail("It helped.\n\n-- \nC. Lane")
    'It helped.'
    >>> of_mail("Ok.\n\nOn Mon, 2 Mar 2026 at 09:00, Support <s@x.example> wrote:\n> So sorry.")
    'Ok.'
    """
    found = EmailReplyParser(languages=_LANGUAGES).read(text=text.replace("\r\n", "\n")).replies
    kept: list[str] = []
    for line in (found[0].content if found else text).split("\n"):
        bare = line.strip()
        if bare == "--":
            break
        if not bare.startswith(">") and not _RULE.fullmatch(bare) and not _DEVICE.fullmatch(bare):
            kept.append(line)
    return "\n".join(kept).strip()
