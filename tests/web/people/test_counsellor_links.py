"""Supervisors find a counsellor from every page, by name, short form or pseudonym."""

import re

import pytest

from stream_app.store.accounts import audit
from stream_app.store.stream.repository import Store
from stream_app.web.console.pseudonym_words import short_form
from tests.store.judging import NOOR
from tests.web.people.conftest import As
from tests.web.people.test_pages import noor, proper


def test_a_link_has_the_accounts_name_on_every_page(as_: As, filled: Store) -> None:
    for path in ("/sessions", "/sessions/north-0", "/counsellors"):
        page = proper(as_("sue").get(path))
        [link] = set(re.findall(rf'<a href="/counsellors/{noor(filled)}"[^>]*>([^<]*)</a>', page))
        assert link == "noor"


def test_analysts_and_counsellors_get_no_such_link(as_: As) -> None:
    assert "/counsellors/" not in as_("ana").get("/sessions").text
    page = as_("noor").get("/sessions/north-0").text
    assert "/counsellors/" not in page
    assert ">noor</span>" in page, "the own name is no secret"


@pytest.mark.parametrize("page", ["", "/development"])
def test_short_forms_and_names_lead_to_the_pseudonym(as_: As, filled: Store, page: str) -> None:
    speaker = noor(filled)
    sue = as_("sue")
    for given in (speaker[:8], short_form(speaker), short_form(speaker).upper(), "Noor"):
        answer = sue.get(f"/counsellors/{given}{page}?from=2026-01-01")
        assert answer.status_code == 303, given
        assert answer.headers["location"] == f"/counsellors/{speaker}{page}?from=2026-01-01"
    read = [one for one in audit.latest(filled) if one.action == "read counsellor"]
    assert read == [], "a redirect shows nothing"


def test_nobody_is_found_outside_the_scope(as_: As, filled: Store) -> None:
    speaker = noor(filled)
    for given in (speaker, speaker[:8], short_form(speaker), "noor", "abcd", "ffffff", "%25"):
        assert as_("sam").get(f"/counsellors/{given}").status_code == 404, given
    assert "noor" not in as_("sam").get("/counsellors").text


def test_a_short_form_of_several_counsellors_leads_to_the_list(
    as_: As, filled: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "stream_app.web.console.people.counsellor.find_counsellors", lambda *_: ["a" * 32, "b" * 32]
    )
    answer = as_("sue").get("/counsellors/abcdef")
    assert answer.headers["location"] == "/counsellors?search=abcdef"


def test_the_list_is_by_name_and_can_be_searched(as_: As, filled: Store) -> None:
    page = proper(as_("pat").get("/counsellors"))
    names = re.findall(r'data-speaker="[^"]*">([^<]*)</a>', page)
    assert names == sorted(names, key=str.casefold)
    assert "noor" in names
    only = as_("pat").get(f"/counsellors?search={short_form(noor(filled))}").text
    assert re.findall(r'data-speaker="[^"]*">([^<]*)</a>', only) == ["noor"]
    assert "No counsellor matches" in as_("pat").get("/counsellors?search=zzz").text
    assert filled.privacy.pseudonym(NOOR) in only
