from __future__ import annotations

import pytest

from taco_cli.config.schema import TrackingKind
from taco_cli.tracking import Sinks, Status, build_sinks, new_manifest


class _Memory:
    def __init__(self, fail_at: int | None = None) -> None:
        self.fail_at = fail_at
        self.steps: list[int] = []
        self.status: Status | None = None

    def log(self, metrics, step, tokens, seconds):
        if step == self.fail_at:
            raise ConnectionError("the network is gone")
        self.steps.append(step)

    def close(self, status):
        self.status = status
        if self.fail_at is not None:
            raise ConnectionError("still gone")


def _log(sinks: Sinks, steps) -> None:
    for step in steps:
        sinks.log({"a": 1.0}, step, step, float(step))


def test_a_tracker_that_fails_is_given_up_with_one_warning(caplog):
    record, broken, fine = _Memory(), _Memory(fail_at=2), _Memory()
    sinks = Sinks(record, [broken, fine])
    _log(sinks, range(5))
    assert record.steps == fine.steps == [0, 1, 2, 3, 4]
    assert broken.steps == [0, 1]
    assert [r.levelname for r in caplog.records] == ["WARNING"]
    assert "the network is gone" in caplog.text
    sinks.close(Status.finished)
    assert record.status is fine.status is broken.status is Status.finished


def test_the_record_that_fails_ends_the_run():
    with pytest.raises(ConnectionError):
        _log(Sinks(_Memory(fail_at=1)), range(3))


def test_csv_is_always_written(config, folder):
    config.tracking.kind = TrackingKind.csv
    sinks = build_sinks(config, folder, new_manifest(config), None)
    _log(sinks, [1])
    sinks.close(Status.finished)
    assert folder.metrics_csv.read_text().splitlines()[1] == "1,1,1.000,a,1.0"
    assert [path.name for path in folder.path.iterdir()] == ["metrics.csv"]
