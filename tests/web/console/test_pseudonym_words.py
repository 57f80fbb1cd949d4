"""Short forms of pseudonyms are readable and lead back to the pseudonym."""

import re

from hypothesis import given
from hypothesis import strategies as st

from stream_app.web.console.pseudonym_words import hex_prefix, short_form


@given(st.text("0123456789abcdef", min_size=32, max_size=32))
def test_a_short_form_is_two_words_that_mean_the_first_digits(pseudonym: str) -> None:
    short = short_form(pseudonym)
    assert re.fullmatch("[a-z]{5}-[a-z]{5}", short)
    assert hex_prefix(short) == pseudonym[:8]


@given(st.text(max_size=20))
def test_anything_else_is_no_short_form(text: str) -> None:
    found = hex_prefix(text)
    assert found is None or re.fullmatch("[0-9a-f]{6,}", found)
