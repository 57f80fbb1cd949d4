"""The file of trainings and releases that are marked on curves."""

from datetime import date
from pathlib import Path

import pytest

from stream_app.analytics.questions import marked_days
from stream_app.analytics.questions.marked_days import MarkedDay, MarkedDaysError

HEAD = "date,kind,name,team\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "days.csv"


def test_days_are_in_order_and_those_of_other_teams_are_left_out(file: Path) -> None:
    file.write_text(
        "\ufeff" + HEAD + "2026-04-01,release,4.2,\n\n2026-03-02,training,Listening,north\n"
        "2026-03-01,other, Office moved ,south\n",
        "utf-8",
    )
    release = MarkedDay(date(2026, 4, 1), "release", "4.2")
    training = MarkedDay(date(2026, 3, 2), "training", "Listening", "north")
    assert marked_days.read(file, "north") == [training, release]
    assert [each.day.day for each in marked_days.read(file)] == [1, 2, 1]
    assert marked_days.read(None) == []


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("2026-13-01,training,x,", "line 2: '2026-13-01' is no day"),
        ("2026-03-01,holiday,x,", "line 2: the kind 'holiday' is none of training"),
        ("2026-03-01,training,,", "line 2: the name is empty"),
        ("2026-03-01", "line 2: the kind '' is none of"),
    ],
)
def test_a_wrong_row_is_named(file: Path, row: str, said: str) -> None:
    file.write_text(f"{HEAD}{row}\n", "utf-8")
    with pytest.raises(MarkedDaysError, match=said):
        marked_days.read(file)


@pytest.mark.parametrize("content", [b"", b"day,what\n", b"\xff\xfe\x00"])
def test_another_file_is_refused(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    with pytest.raises(MarkedDaysError, match=r"days\.csv"):
        marked_days.read(file)


def test_what_is_written_can_be_read(file: Path) -> None:
    known = [MarkedDay(date(2026, 3, 2), "training", 'A "quoted", name', "north")]
    marked_days.write(file, [])
    assert marked_days.read(file) == []
    marked_days.write(file, known)
    assert marked_days.read(file) == known


def test_without_the_column_team_a_day_concerns_all(file: Path) -> None:
    file.write_text("date,kind,name\n2026-03-01,training,x\n", "utf-8")
    assert marked_days.read(file, "north") == [MarkedDay(date(2026, 3, 1), "training", "x")]


def test_a_folder_or_no_file_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "absent.csv"):
        with pytest.raises(MarkedDaysError, match="cannot be read"):
            marked_days.read(path)
