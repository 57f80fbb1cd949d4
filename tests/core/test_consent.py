"""Consent of a session: what records do, what is remembered of them, who is named in them."""

from datetime import timedelta
from itertools import pairwise

import msgspec
import pytest

from stream_app.contracts.events import ConsentPurpose, ConsentStatus, decode
from stream_app.core.session.consent import ConsentRecord, is_newer
from stream_app.core.session.environment import Policy
from stream_app.core.session.session import Fate, Session
from stream_app.core.session.session_state import SessionState, pack, unpack
from stream_app.errors import ContractError
from tests.core.test_session import POLICY, accepted, carried_out, due, fates, session
from tests.fakes import START, consent, end, turn

GIVEN, REFUSED, WITHDRAWN = ConsentStatus.GIVEN, ConsentStatus.REFUSED, ConsentStatus.WITHDRAWN
PURPOSE = ConsentPurpose.THIRD_PARTY_PROCESSING
WITHDRAWN_AT = (START + timedelta(minutes=30)).isoformat()
LATER = (START + timedelta(minutes=40)).isoformat()


def recorded(on: Session, *values: bytes) -> list[ConsentRecord]:
    return [item.consent for item in accepted(on, *values) if item.consent is not None]


def again(on: Session) -> Session:
    """The session as another worker loads it."""
    return Session(unpack(pack(on.state)), on._env)


def test_a_record_before_the_first_turn_covers_it() -> None:
    on = session()
    assert fates(on, consent("given"), turn(consent=None)) == [Fate.CONSENT, Fate.ACCEPTED]


def test_a_turn_is_recorded_only_if_it_changes_the_consent() -> None:
    said = [None, False, False, True, True, False, True]
    values = [turn(seq=seq, consent=given) for seq, given in enumerate(said)]
    found = recorded(session(), *values)
    assert [(one.seq, one.status) for one in found] == [(1, REFUSED), (3, GIVEN), (5, WITHDRAWN)]
    assert all(one.effective and one.source == "turn" for one in found)


def test_a_turn_with_a_newer_version_of_the_wording_is_a_record() -> None:
    values = [turn(seq=seq, consent_version=name) for seq, name in enumerate(["v1", "v1", "v2"])]
    assert [one.version for one in recorded(session(), *values)] == ["v1", "v2"]


@pytest.mark.parametrize(
    ("version", "at", "reopened"),
    [
        ("v3", LATER, True),
        ("v2", LATER, False),
        (None, LATER, False),
        ("v3", START.isoformat(), False),
        ("v3", WITHDRAWN_AT, False),
    ],
)
def test_only_a_later_record_with_a_newer_version_ends_a_withdrawal(
    version: str | None, at: str, reopened: bool
) -> None:
    on = session()
    accepted(on, turn(seq=0, consent_version="v2"), consent("withdrawn"))
    assert on.state.withdrawn
    assert fates(on, turn(seq=1, consent_version="v3")) == [Fate.WITHHELD], "a turn cannot"
    [record] = recorded(again(on), consent("given", version=version, occurred_at=at))
    assert record.effective is reopened
    accepted(on, consent("given", version=version, occurred_at=at))
    fate = Fate.ACCEPTED if reopened else Fate.WITHHELD
    assert fates(on, turn(seq=2, consent=None)) == [fate]
    assert on.state.withdrawn is not reopened


def test_an_earlier_withdrawal_that_comes_later_does_not_move_the_time() -> None:
    on = session()
    early, between = ((START + timedelta(minutes=n)).isoformat() for n in (10, 20))
    accepted(on, turn(), consent("withdrawn"), consent("withdrawn", occurred_at=early))
    [record] = recorded(on, consent("given", version="v9", occurred_at=between))
    assert not record.effective


def test_numbers_in_versions_are_compared_as_numbers() -> None:
    ordered = [None, "1", "2", "10", "2026-03", "2026-11", "v9", "v9.1", "v10"]
    for lower, higher in pairwise(ordered):
        assert is_newer(higher, lower)
        assert not is_newer(lower, higher)


def test_a_refusal_after_consent_is_a_withdrawal_and_a_withdrawal_needs_no_consent() -> None:
    on = session()
    assert [r.status for r in recorded(on, turn(), consent("refused"))] == [GIVEN, WITHDRAWN]
    unknown = session()
    accepted(unknown, consent("withdrawn"))
    assert fates(unknown, turn()) == [Fate.WITHHELD]


def test_a_refusal_after_turns_were_analysed_without_a_stated_consent_is_a_withdrawal() -> None:
    on = session(Policy(POLICY.window, require_consent=False))
    [record] = recorded(on, turn(seq=0, consent=None), turn(seq=1, consent=False))
    assert record.withdraws
    silent = session(Policy(POLICY.window, require_consent=False))
    [record] = recorded(silent, turn(seq=0, consent=False), turn(seq=1, consent=None))
    assert record.status is REFUSED, "nothing was analysed before it"


def test_withdrawal_after_the_end_is_recorded() -> None:
    on = session()
    carried_out(on, *accepted(on, turn(seq=0), end()))
    [item] = accepted(on, consent("withdrawn"))
    assert item.consent is not None
    assert item.consent.withdraws
    assert due(item) == []
    assert on.state.withdrawn


def test_rereading_the_log_applies_no_record_twice() -> None:
    log = [consent("refused", consent_id="1"), consent("given", consent_id="2")]
    on = session()
    accepted(on, *log, turn())
    reread = again(on)
    assert fates(reread, *log, turn()) == [Fate.DUPLICATE] * 3
    assert (reread.state.consent, reread.state.withdrawn) == (True, False)


def test_a_withdrawal_ends_alerts_at_the_time_of_the_session() -> None:
    """Its own time may be much later and would first fire timed rules."""
    on = session()
    carried_out(on, *accepted(on, turn(seq=0), turn(seq=1)))
    [item] = accepted(on, consent("withdrawn", occurred_at="2030-01-01T00:00:00Z"))
    [step] = item.steps
    assert step.at == on.state.last_activity_at
    assert due(item) == ["withheld"]


def test_a_session_without_consent_holds_no_person() -> None:
    on = session()
    records = recorded(
        on,
        turn(seq=0, speaker_id="joan", consent=False),
        turn(seq=1, speaker_id="ada", consent=None),
        consent("refused", speaker_id="joan"),
        end(reason="joan hung up"),
    )
    assert [record.speaker_id for record in records] == [None, None]
    assert on.state.end_reason is None
    assert not on.state.baselines.counsellor_known
    stored = pack(on.state)
    assert b"joan" not in stored
    assert b"ada" not in stored


def test_a_record_names_the_client_once_consent_was_given() -> None:
    on = session()
    found = recorded(
        on,
        turn(seq=0, speaker_id="joan"),
        consent("withdrawn", speaker_id="joan"),
    )
    assert [record.speaker_id for record in found] == ["joan", "joan"]
    by_counsellor = turn(seq=1, role="counsellor", speaker_id="ada")
    assert [r.speaker_id for r in recorded(session(), by_counsellor)] == [None]


def test_a_state_of_an_earlier_release_stays_withdrawn() -> None:
    state = SessionState("s", "b", consent=False, withdrawn=True)
    assert fates(Session(state, session()._env), turn()) == [Fate.WITHHELD]


def test_given_consent_may_include_purposes_and_a_turn_has_none() -> None:
    both = [PURPOSE.value, PURPOSE.value]
    found = recorded(session(), turn(), consent("given", version="v2", purposes=both))
    assert [one.purposes for one in found] == [(), (PURPOSE,)]


@pytest.mark.parametrize("status", [REFUSED, WITHDRAWN])
def test_only_given_consent_has_purposes(status: ConsentStatus) -> None:
    with pytest.raises(ContractError, match="purposes"):
        decode(consent(status.value, purposes=[PURPOSE.value]))
    assert decode(consent(status.value, purposes=[]))


def test_a_record_without_purposes_is_known_again_after_the_upgrade() -> None:
    """The checksum of a record does not change when the struct gets an optional field."""
    event = decode(consent("given", consent_id="1"))
    assert b"purposes" not in msgspec.json.encode(event)
