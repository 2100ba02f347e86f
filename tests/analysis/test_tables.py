"""Tables that grow step by step, and what is measured again."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from taco_cli.analysis import tables
from taco_cli.analysis.tables import Row, Table, read_table

COLUMNS = ("step", "kind", "layer", "value")


def rows(value: float) -> list[Row]:
    return [{"kind": "a", "layer": 0, "value": value}, {"layer": 1, "value": value / 3}]


def test_rows_are_tidy_and_come_back_as_numbers(tmp_path: Path) -> None:
    table = Table(tmp_path / "new", "made", COLUMNS, "s")
    table.put(1, "x", rows(1.0))
    text = (tmp_path / "new" / "made.csv").read_text()
    assert text == "step,kind,layer,value\n1,a,0,1\n1,,1,0.33333333\n"
    assert table.rows([1]) == read_table(tmp_path / "new" / "made.csv")
    assert table.rows([1])[1] == {"step": 1, "kind": "", "layer": 1, "value": 0.33333333}
    assert table.rows([2]) == []


def test_steps_are_kept_in_order_and_replaced_with_their_checkpoint(tmp_path: Path) -> None:
    for step, checkpoint, value in ((20, "x", 1.0), (3, "y", 2.0), (20, "z", 4.0)):
        table = Table(tmp_path, "made", COLUMNS, "s")
        assert not table.has(step, checkpoint)
        table.put(step, checkpoint, rows(value))
    again = Table(tmp_path, "made", COLUMNS, "s")
    assert again.has(3, "y")
    assert again.has(20, "z")
    assert [(row["step"], row["value"]) for row in again.rows([3, 20]) if row.get("kind")] == [(3, 2), (20, 4)]


def test_another_measure_has_a_table_of_its_own(tmp_path: Path) -> None:
    for measure in ("one", "two"):
        Table(tmp_path, measure, COLUMNS, "s").put(1, "x", rows(1.0))
    assert Table(tmp_path, "one", COLUMNS, "s").has(1, "x")


def test_tables_of_other_settings_are_put_aside_and_not_lost(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    Table(tmp_path, "made", COLUMNS, "s").put(1, "x", rows(1.0))
    before = (tmp_path / "made.csv").read_bytes()
    with caplog.at_level(logging.WARNING):
        other = Table(tmp_path, "made", COLUMNS, "t")
    assert not other.has(1, "x")
    assert (tmp_path / "earlier" / "made-s.csv").read_bytes() == before
    assert "made with other settings" in caplog.text
    other.put(1, "x", rows(2.0))
    (tmp_path / "computed.json").unlink()  # a table that nobody knows
    Table(tmp_path, "made", COLUMNS, "t")
    assert (tmp_path / "earlier" / "made-unknown.csv").is_file()


def test_table_that_was_deleted_is_measured_again(tmp_path: Path) -> None:
    Table(tmp_path, "made", COLUMNS, "s").put(1, "x", rows(1.0))
    (tmp_path / "made.csv").unlink()
    assert not Table(tmp_path, "made", COLUMNS, "s").has(1, "x")


@pytest.mark.parametrize("killed_at", [1, 2])
def test_killed_while_a_step_is_replaced_it_is_measured_again(
    tmp_path: Path, killed_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    Table(tmp_path, "made", COLUMNS, "s").put(1, "x", rows(1.0))
    writes, original = [], tables.replace_file

    def killed(path: Path, content: bytes) -> None:
        writes.append(path.name)
        if len(writes) > killed_at:
            raise KeyboardInterrupt
        original(path, content)

    monkeypatch.setattr(tables, "replace_file", killed)
    with pytest.raises(KeyboardInterrupt):
        Table(tmp_path, "made", COLUMNS, "s").put(1, "y", rows(2.0))
    after = Table(tmp_path, "made", COLUMNS, "s")
    assert not after.has(1, "x")
    assert not after.has(1, "y")


def test_damaged_index_is_named(tmp_path: Path) -> None:
    (tmp_path / "computed.json").write_text("{")
    with pytest.raises(ValueError, match=r"computed\.json: not valid JSON"):
        Table(tmp_path, "made", COLUMNS, "s")
