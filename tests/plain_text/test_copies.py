"""The copies of a text that searches and models read, and where they lie in the text."""

import time
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stream_app.plain_text.copies import plain, spoken

SAID = "I don't want to live any more"


@pytest.mark.parametrize(
    "text",
    [
        "I don’t want to live any more",
        "I don‘t want to live any more",
        "I don`t want to live any more",
        "I don´t want to live any more",
        "I don′t want to live any more",
        "I don＇t want to live any more",
        "I donʼt want to live any more",
        "I donâ€™t want to live any more",
        "I don\\'t want to live any more",
        "I don&#39;t want to live any more",
        "I don&#x27;t want to live any more",
        "I don&amp;#39;t want to live any more",
        "I don&rsquo;t want&nbsp;to live any more",
        "I don't want to <b>live</b> any more",
        "<p>I don't want<br/>to live any&nbsp;more</p>",
        '<div dir="ltr">I don\'t want to <span style="color:red">live</span> any more<br></div>',
        "<style>p {color: red}</style><p>I don't want to live any more</p>",
        "I don't want to **live** any more",
        "***I don't want*** to __live__ `any` ~~more~~",
        "I don't want to [live](https://example.org/a_b) any more",
        "I don't want to ||live|| any more",
        "I don't want to\nlive any more",
        "I don't want to\r\nlive any more",
        "I don't want to\u2028live any more",
        "I don't\u00a0want \t to   live any more\n",
        "I don't want to li\u00adve any more",
        "I don't want to li\u200bve any\u2060 more",
        "\ufeffI don't want to \u200flive any more",
        "Ｉ ｄｏｎ＇ｔ ｗａｎｔ ｔｏ ｌｉｖｅ ａｎｙ ｍｏｒｅ",
        "I don't want to 𝗹𝗶𝘃𝗲 any 𝓶𝓸𝓻𝓮",
        "I don't want to l\u0456ve \u0430ny more",
        "\u0406 don't want to live any more",
        "I don't want to live any more\n\n--\nAnna Lee\nSent from the moon",
        "I don't want to live any more\n\nSent from my iPhone",
        "> How are you?\n\nI don't want to live any more",
        "&gt; How are you?\nI don't want to live any more",
        "I don't want to live any more\n\nOn Mon, 2 Mar 2026 at 10:00, Ann wrote:\n> How are you?",
        "I don't want to live any more\nOn Mon, Ann wrote:\n\n> How are you?\n> Well?",
        "On Mon, 2 Mar 2026 at 10:00,\nAnn <ann@example.org> wrote:\n> Hi\n\n" + SAID,
        "I don't want to live any more\n\nAm 02.03.2026 um 10:00 schrieb Ann Lee:\nWie geht es?",
        "I don't want to live any more\n\n---------- Forwarded message ---------\nFrom: Ann\nHi",
        "I don't want to live any more\n\n-----Original Message-----\nFrom: Ann\n\nHi",
        "I don't want to live any more\n\nBegin forwarded message:\n\nHi",
        "I don't want to live any more\n______________\nFrom: Ann <a@b.org>\nSent: Monday\n"
        "To: Ben\nSubject: Hi\n\nHow are you?",
        "<blockquote>How <blockquote>old</blockquote> are you?</blockquote>" + SAID,
        "[quote=Ann]How are you?[/quote]\n" + SAID,
        "I don｀t want to live any more",
        "I donꞌt want to live any more",
        "I don&#39t want&nbsp to live any more",
        "I [b]don't[/b] want to [color=red][i]live[/i][/color] any more",
        "I don't want to \u029f\u026a\u1d20\u1d07 any more",
        "🅸 don't want to live any more",
        "I don't want to l\ufe0five any more",
        '<p>I don\'t want to live any more</p><div class="yahoo_quoted"><div>Hi</div>How?</div>',
        "<div class=gmail_quote>How are <div>you?</div></div>" + SAID,
        "<mx-reply><blockquote>How are you?</blockquote></mx-reply>" + SAID,
        "<div>I don't want to live any more</div><div>On Mon, 2 Mar, Ann wrote:<br></div>"
        "<blockquote>How are you?</blockquote>",
    ],
)
def test_what_looks_the_same_is_the_same(text: str) -> None:
    assert spoken(text).text == SAID


@pytest.mark.parametrize(
    "text",
    [
        "I <3 you & R&D, a < b > c",
        "2 * 3 * 4 f*ck b*tch snake_case_name ^_^ and ^_^",
        "Write to <name> [sic] (really)",
        ">:( that hurts",
        "<I want to die>, <a b c>",
        "> " + "I know what you mean, and I do not. " * 8 + "Well.",
        ">.<",
        "R&D; AT&T;",
        "- one\n- two",
        "First line.\nSecond line.\n\nA paragraph",
        "i failed\nshe left\nwhatever",
        "Она сказала email и ушла",
        "On Monday she wrote:\nI am leaving you.",
        "Dear all,",
        "-- not a signature",
    ],
)
def test_ordinary_signs_are_left_alone(text: str) -> None:
    assert spoken(text).text == plain(text).text
    assert spoken(text).text in (text, text.replace(",\n", ", "))


def test_quoted_words_are_kept_where_details_are_searched() -> None:
    said = "> I am Ann\n\nOk.\n\nOn 2 Mar, Ben wrote:\n> I am Ben\n-- \nEve"
    assert spoken(said).text == "Ok."
    assert {"Ann", "Ben", "Eve"} <= set(plain(said).text.split())


def test_spans_mark_the_original() -> None:
    text = "<p>That’s &quot;so <b>ha</b>rd&quot;</p>"
    copy = spoken(text)
    assert copy.text == 'That\'s "so hard"'
    at = copy.text.index("hard")
    start, end = copy.span(at, at + 4)
    assert text[start:end] == "ha</b>rd"
    masked = text.replace("ha</b>rd", "••••••••")
    assert copy.masked_as(masked) == 'That\'s "so ••••"'


ODD = st.text(st.sampled_from("aI .\n>*_`<b/&#39;’é\u0301\u200bＡ…-|[]()ѕ \t\r&lt;"), max_size=60)


@given(ODD | st.text(max_size=60))
@example("é")
def test_every_character_has_a_place(text: str) -> None:
    for copy in (plain(text), spoken(text)):
        places = [copy.span(at, at + 1) for at in range(len(copy.text))]
        assert all(0 <= start < end <= len(text) for start, end in places)
        assert places == sorted(places)
        assert copy.original == text


@given(st.text(st.sampled_from("abcdeIS .,!?'\"-:;()0123"), max_size=80))
def test_plain_text_is_read_as_it_is(text: str) -> None:
    assert spoken(text).text == plain(text).text
    assert spoken(text).text.split() == text.split()


@given(st.text(st.characters(codec="ascii", categories=("L", "N", "P", "Z")), max_size=60))
def test_no_word_of_a_line_is_lost(text: str) -> None:
    """Except after ``>``, and what is markup."""
    kept = "".join(c for c in text if c not in "<>&[]\\")
    letters = [c for c in kept if c.isalnum()]
    assert [c for c in spoken(kept).text if c.isalnum()] == letters


@given(st.text(max_size=40))
def test_composed_and_decomposed_letters_are_read_alike(text: str) -> None:
    text = unicodedata.normalize("NFC", text)
    again = unicodedata.normalize("NFD", text)
    if unicodedata.normalize("NFC", again) == text:
        assert [plain(again).text] == [plain(text).text]


@pytest.mark.parametrize(
    "unit",
    ["<b>", "<", "<!--", "&amp;", "**a", "_a ", "[a](", "> a\n", "On a wrote:\n", "From: 1\n",
     "On " + "a " * 90 + ":\n", "e\u0301", "а a ", "--\n", "-----\n", "<blockquote>", "<style>",
     "[quote]", "<b a", "<b a=",
     "<div class='", "\n", "‘", "a`", "||a", "Sent from my a\n", "Den 1 skrev a :\n"],
)  # fmt: skip
def test_the_time_grows_with_the_length(unit: str) -> None:
    text = (unit * 64_000)[: 64 * 1024]
    began = time.process_time()
    spoken(text)
    assert time.process_time() - began < 2
