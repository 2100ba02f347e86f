"""Runs as their users see them: started, stopped anywhere, started again."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from taco_cli.config.schema import OptimizerName, Precision, Resume, RunConfig
from taco_cli.signals import Interrupted, StopRequest
from taco_cli.tracking import RunFolder, plain, read_manifest
from taco_cli.training import train
from taco_cli.training.callbacks import Save
from taco_cli.training.checkpoint import list_checkpoints, load
from tests.conftest import MakeConfig

RESUMES = {
    "plain": {},
    "accumulation": {"micro_batch_size": 2},
    "muon": {"optimizer__name": OptimizerName.muon},
    "workers": {"trainer__workers": 2},
    # the tiny corpus has some 1,070 blocks
    "epoch end": {"batch_size": 240, "budget": "6steps", "checkpoint_every": 3},
}


def final_weights(folder: RunFolder) -> dict[str, torch.Tensor]:
    _, path = list_checkpoints(folder.checkpoints)[-1]
    return load(path)["state_dict"]


def assert_same_bits(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> None:
    assert a.keys() == b.keys()
    different = [name for name in a if not torch.equal(a[name], b[name])]
    assert not different


def train_in_process_and_kill(config: RunConfig, after_checkpoint: int) -> None:
    """Run in a process of its own and kill it (SIGKILL) as soon as the checkpoint of that step is there."""
    script = (
        "import json, sys, time\n"
        "from tests.training.test_run import from_plain\n"
        "import taco_cli.training.saving as saving\n"
        "original = saving.save\n"
        "def save_and_wait(path, state):\n"
        "    original(path, state)\n"
        f"    if state['step'] >= {after_checkpoint}: print('saved', flush=True); time.sleep(60)\n"
        "saving.save = save_and_wait\n"
        "from taco_cli.training import train\n"
        "if __name__ == '__main__': train(from_plain(json.load(sys.stdin)))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(json.dumps(plain(config)))
        process.stdin.close()
        last_line = process.stdout.readline().strip()
        process.kill()
    assert last_line == "saved"
    assert process.returncode == -signal.SIGKILL


def from_plain(tree: dict[str, Any]) -> RunConfig:
    from omegaconf import OmegaConf

    config = OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(RunConfig), tree))
    assert isinstance(config, RunConfig)
    return config


@pytest.mark.multiprocess
@pytest.mark.parametrize("changes", RESUMES.values(), ids=RESUMES.keys())
def test_killed_and_started_again_gives_the_same_bits(make_config: MakeConfig, changes: dict[str, Any]) -> None:
    whole, parted = make_config(name="whole", **changes), make_config(name="parted", **changes)
    kill_at = whole.checkpoint_every
    train(whole)
    train_in_process_and_kill(parted, after_checkpoint=kill_at)
    folder = RunFolder.of(parted)
    manifest = read_manifest(folder.manifest)
    assert manifest is not None
    assert manifest["status"] == "running"  # nobody could say that it was killed
    train(parted)
    assert_same_bits(final_weights(RunFolder.of(whole)), final_weights(folder))
    assert curves(folder) == curves(RunFolder.of(whole))


def curves(folder: RunFolder) -> list[tuple[str, ...]]:
    """Return every value of metrics.csv that is not a time."""
    rows = list(csv.DictReader(folder.metrics_csv.read_text().splitlines()))
    return [(r["step"], r["metric"], r["value"]) for r in rows if not r["metric"].startswith("throughput")]


def test_epoch_end_is_within_the_resumed_run(make_config: MakeConfig) -> None:
    config = make_config(**RESUMES["epoch end"])
    train(config)
    manifest = read_manifest(RunFolder.of(config).manifest)
    assert manifest is not None
    blocks = manifest["corpus"]["tokens"]["train"] / (config.sequence_length - 2)
    assert config.checkpoint_every * config.batch_size < blocks < 6 * config.batch_size


def test_accumulation_changes_nothing_but_the_rounding(make_config: MakeConfig) -> None:
    changes = {"objective__tc__weight": 0.0, "encoder__dropout": 0.0, "batch_size": 16, "optimizer__eps": 1e-3}
    at_once = make_config(name="at_once", **changes)
    in_four = make_config(name="in_four", micro_batch_size=4, **changes)
    train(at_once)
    train(in_four)
    a, b = final_weights(RunFolder.of(at_once)), final_weights(RunFolder.of(in_four))
    for name in a:
        torch.testing.assert_close(a[name], b[name], rtol=0, atol=1e-6)


def test_global_random_state_decides_nothing(make_config: MakeConfig) -> None:
    first, second = make_config(name="first"), make_config(name="second")
    torch.manual_seed(1)
    train(first)
    torch.manual_seed(2)
    train(second)
    assert_same_bits(final_weights(RunFolder.of(first)), final_weights(RunFolder.of(second)))


def test_arms_of_a_seed_start_from_the_same_weights_and_are_validated_alike(make_config: MakeConfig) -> None:
    taco, mlm = make_config(), make_config(label="mlm", objective__tc__weight=0.0)
    train(taco)
    train(mlm)
    at_start = [
        {metric: value for step, metric, value in curves(RunFolder.of(config)) if step == "0"} for config in (taco, mlm)
    ]
    assert at_start[0] == at_start[1]
    assert {"val/mlm", "val/mlm_accuracy", "val/tc", "val/tc_accuracy"} < at_start[0].keys()


def test_finished_run_is_skipped(make_config: MakeConfig) -> None:
    config = make_config()
    first = train(config)
    written = RunFolder.of(config).manifest.stat().st_mtime_ns
    second = train(config)
    assert second.status == "finished"
    assert second.metrics == pytest.approx(first.metrics)
    assert RunFolder.of(config).manifest.stat().st_mtime_ns == written


def test_another_configuration_is_refused_with_the_keys(make_config: MakeConfig) -> None:
    train(make_config())
    with pytest.raises(ValueError, match=r"optimizer\.lr: 0\.01 -> 0\.02") as refusal:
        train(make_config(optimizer__lr=0.02, trainer__workers=1))
    assert "workers" not in str(refusal.value)


def test_resume_must_and_never(make_config: MakeConfig) -> None:
    with pytest.raises(ValueError, match="resume=must"):
        train(make_config(resume=Resume.must))
    config = make_config()
    assert not RunFolder.of(config).path.exists()
    train(config)
    with pytest.raises(ValueError, match="resume=never"):
        train(make_config(resume=Resume.never))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_signal_saves_at_the_next_step_and_the_run_continues(
    make_config: MakeConfig, number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, stopped = make_config(name="whole"), make_config(name="stopped")
    train(whole)
    original = Save.on_train_batch_end

    def signalled(self: Save, trainer: Any, module: Any, *rest: Any) -> None:
        if module.progress.step == 3:
            os.kill(os.getpid(), number)
        original(self, trainer, module, *rest)

    request = StopRequest()
    handlers = {n: signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)}
    try:
        with monkeypatch.context() as patch:
            patch.setattr(Save, "on_train_batch_end", signalled)
            with pytest.raises(Interrupted) as stop:
                train(stopped, request)
    finally:
        for n, handler in handlers.items():
            signal.signal(n, handler)
    assert stop.value.exit_status == 128 + number
    folder = RunFolder.of(stopped)
    manifest = read_manifest(folder.manifest)
    assert manifest is not None
    assert manifest["status"] == "interrupted"
    assert list_checkpoints(folder.checkpoints)[-1][0] == 3
    train(stopped)
    assert_same_bits(final_weights(RunFolder.of(whole)), final_weights(folder))


def test_failure_is_marked_and_its_traceback_is_in_the_log(
    make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: Any, **named: Any) -> None:
        raise RuntimeError("the sky fell")

    monkeypatch.setattr("taco_cli.training.module.clip_gradients", broken)
    config = make_config()
    with pytest.raises(RuntimeError, match="the sky fell"):
        train(config)
    folder = RunFolder.of(config)
    manifest = read_manifest(folder.manifest)
    assert manifest is not None
    assert (manifest["status"], manifest["error"]) == ("failed", "RuntimeError: the sky fell")
    assert "Traceback" in folder.log.read_text()


def test_loss_that_is_not_finite_stops_the_run(make_config: MakeConfig) -> None:
    with pytest.raises(ValueError, match="not finite"):
        train(make_config(optimizer__lr=1e30, optimizer__clip=0.0, optimizer__warmup=0.0))


def test_budget_in_seconds_ends(make_config: MakeConfig) -> None:
    config = make_config(budget="1s")
    result = train(config)
    manifest = read_manifest(RunFolder.of(config).manifest)
    assert manifest is not None
    assert result.status == "finished"
    assert manifest["seconds"] >= 1


@pytest.mark.parametrize("budget", ["6steps", "5s"])
def test_a_corpus_read_very_often_is_a_warning(
    make_config: MakeConfig, budget: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for module in ("run", "callbacks"):
        monkeypatch.setattr(f"taco_cli.training.{module}.MANY_EPOCHS", 0.01)  # the tiny corpus has some 1,070 blocks
    train(make_config(budget=budget))
    told = [record.message for record in caplog.records if "reads the corpus" in record.message]
    assert len(told) == 1
    assert told[0].startswith(f"budget={budget} reads the corpus 0 times")


def test_another_text_is_not_continued(make_config: MakeConfig, tmp_path: Path, corpus_file: Path) -> None:
    changed = tmp_path / "changed.jsonl"
    changed.write_bytes(corpus_file.read_bytes())
    config = make_config(corpus__files=[str(changed)])
    request = StopRequest()
    request.number = signal.SIGTERM  # stops after the first step
    with pytest.raises(Interrupted):
        train(config, request)
    text = changed.read_text()
    changed.write_text(text.replace("ba", "ab", 1))
    for _ in range(2):  # a refusal forgets nothing
        with pytest.raises(ValueError, match="the corpus is not the one this run was started with"):
            train(config)
    changed.write_text(text)
    assert train(config).status == "finished"


def test_what_a_kill_after_the_last_checkpoint_left_out_is_written(make_config: MakeConfig) -> None:
    whole, parted = make_config(name="whole"), make_config(name="parted")
    metrics = train(whole).metrics
    train_in_process_and_kill(parted, after_checkpoint=10)
    folder = RunFolder.of(parted)
    assert not (folder.exports / "step-000010").exists()
    result = train(parted)
    assert result.status == "finished"
    assert (folder.exports / "step-000010" / "model.safetensors").is_file()
    manifest = read_manifest(folder.manifest)
    assert manifest is not None
    assert (manifest["step"], manifest["tokens"]) == (10, 10 * 8 * 16)
    assert result.metrics == manifest["metrics"]
    times = ("throughput/tokens_per_second", "throughput/mfu")
    assert {**result.metrics, **dict.fromkeys(times)} == {**metrics, **dict.fromkeys(times)}
    assert curves(folder) == curves(RunFolder.of(whole))


def test_failed_start_keeps_what_the_run_had_reached(make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    config = make_config()
    request = StopRequest()
    request.number = signal.SIGTERM  # stops after the first step
    with pytest.raises(Interrupted):
        train(config, request)
    before = read_manifest(RunFolder.of(config).manifest)

    def broken(*arguments: Any, **named: Any) -> None:
        raise RuntimeError("the sky fell")

    with monkeypatch.context() as patch:
        patch.setattr("taco_cli.training.run.build_encoder", broken)
        with pytest.raises(RuntimeError, match="the sky fell"):
            train(config)
    after = read_manifest(RunFolder.of(config).manifest)
    assert before is not None
    assert after is not None
    assert after["status"] == "failed"
    for key in ("corpus", "tokenizer", "started", "step", "tokens", "seconds", "metrics", "precision", "compiled"):
        assert after[key] == before[key], key
    assert before["step"] == 1
    assert before["corpus"]["fingerprint"]


def test_other_precision_is_told(make_config: MakeConfig, caplog: pytest.LogCaptureFixture) -> None:
    request = StopRequest()
    request.number = signal.SIGTERM  # stops after the first step
    with pytest.raises(Interrupted):
        train(make_config(), request)
    train(make_config(trainer__precision=Precision.bf16))
    told = [record.message for record in caplog.records if "started in float32 and continues in bf16" in record.message]
    assert len(told) == 1
    assert "trainer.precision=float32" in told[0]


def test_time_of_a_checkpoint_is_not_training_time(make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    import taco_cli.training.saving as saving

    original = saving.save

    def slow(path: Path, state: Any) -> None:
        time.sleep(0.3)
        original(path, state)

    monkeypatch.setattr(saving, "save", slow)
    config = make_config(checkpoint_every=1)
    started = time.perf_counter()
    train(config)
    manifest = read_manifest(RunFolder.of(config).manifest)
    assert manifest is not None
    assert manifest["seconds"] < time.perf_counter() - started - 10 * 0.3
