from __future__ import annotations

import builtins
import sys

import pytest

from taco_cli.config.schema import TrackingKind
from taco_cli.tracking import Status, build_sinks, new_manifest


def _points(folder, tag) -> dict[int, float]:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = accumulator.EventAccumulator(str(folder.path / "tensorboard"))
    events.Reload()
    return {event.step: event.value for event in events.Scalars(tag)}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # tensorboard's own
def test_a_resumed_run_replaces_what_it_does_anew(config, folder):
    pytest.importorskip("tensorboard")
    config.tracking.kind = TrackingKind.tensorboard
    for resumed, steps, factor in ((None, range(1, 6), 1), (3, range(4, 7), 10)):
        sinks = build_sinks(config, folder, new_manifest(config), resumed)
        for step in steps:
            sinks.log({"train/loss": float(step * factor)}, step, step * 5, step / 2)
        sinks.close(Status.interrupted)
    assert _points(folder, "train/loss") == {1: 1, 2: 2, 3: 3, 4: 40, 5: 50, 6: 60}
    assert _points(folder, "progress/tokens")[6] == 30


def test_a_missing_package_is_named_with_the_way_out(config, folder, monkeypatch):
    for module in [name for name in sys.modules if name.startswith("torch.utils.tensorboard")]:
        monkeypatch.delitem(sys.modules, module)
    real_import = builtins.__import__

    def without_tensorboard(name, *arguments, **keywords):
        if name.startswith("tensorboard"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real_import(name, *arguments, **keywords)

    monkeypatch.setattr(builtins, "__import__", without_tensorboard)
    config.tracking.kind = TrackingKind.tensorboard
    with pytest.raises(ValueError, match=r"pip install taco-cli\[tensorboard\]"):
        build_sinks(config, folder, new_manifest(config), None)
