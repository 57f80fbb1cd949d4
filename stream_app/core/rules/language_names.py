"""Languages as people write them: names in English, and the codes of three letters (ISO 639-2).

BCP 47 wants the code of two letters where there is one. Of the languages that chats are in.
"""

from typing import Final

_LANGUAGES: Final = """
ar ara arabic
bg bul bulgarian
bn ben bengali
ca cat catalan
cs ces cze czech
cy cym wel welsh
da dan danish
de deu ger german
el ell gre greek
en eng english
es spa spanish
et est estonian
eu eus baq basque
fa fas per persian farsi
fi fin finnish
fr fra fre french
ga gle irish
he heb hebrew
hi hin hindi
hr hrv croatian
hu hun hungarian
id ind indonesian
is isl ice icelandic
it ita italian
ja jpn japanese
ko kor korean
lt lit lithuanian
lv lav latvian
ms msa may malay
nl nld dut dutch
no nor norwegian
pa pan punjabi
pl pol polish
pt por portuguese
ro ron rum romanian
ru rus russian
sk slk slo slovak
sl slv slovenian
sq sqi alb albanian
sr srp serbian
sv swe swedish
sw swa swahili
ta tam tamil
th tha thai
tl tgl tagalog
tr tur turkish
uk ukr ukrainian
ur urd urdu
vi vie vietnamese
zh zho chi chinese
zu zul zulu
"""
_CODES: Final = {
    name: line.split()[0] for line in _LANGUAGES.strip().split("\n") for name in line.split()[1:]
}


def with_short_code(tag: str) -> str:
    """A tag in small letters, with the code of two letters in the place of another name.

    >>> [with_short_code(tag) for tag in ("eng", "english", "eng-gb", "de-at", "tlh")]
    ['en', 'en', 'en-gb', 'de-at', 'tlh']
    """
    language, hyphen, rest = tag.partition("-")
    return _CODES.get(language, language) + hyphen + rest
