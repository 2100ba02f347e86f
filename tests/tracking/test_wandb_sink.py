"""Against the real client, offline, read back with its own inspection command."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import wandb

from taco_cli.config.schema import TrackingKind
from taco_cli.tracking import RunFolder, Status, build_sinks, config_hash, new_manifest, wandb_sink


@pytest.fixture(autouse=True)
def offline(monkeypatch, tmp_path):
    for name in ("WANDB_API_KEY", "WANDB_BASE_URL", "WANDB_IDENTITY_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "no_netrc"))
    monkeypatch.setenv("WANDB_CONFIG_DIR", str(tmp_path / "wandb_config"))
    monkeypatch.setenv("WANDB_CACHE_DIR", str(tmp_path / "wandb_cache"))
    monkeypatch.setenv("WANDB_DATA_DIR", str(tmp_path / "wandb_data"))
    monkeypatch.setenv("WANDB_MODE", "offline")


@pytest.fixture(scope="module", autouse=True)
def _service():
    yield
    wandb.teardown()


@pytest.fixture(autouse=True)
def _kind(config):
    config.tracking.kind = TrackingKind.wandb


def _run_job(config, steps, status=Status.finished, manifest=None, resumed=None) -> dict:
    manifest = new_manifest(config) if manifest is None else manifest
    sinks = build_sinks(config, RunFolder.of(config), manifest, resumed)
    for step in steps:
        sinks.log({"train/loss": 10.0 - step, "val/mlm": step / 2}, step, step * 100, step * 0.5)
    sinks.close(status)
    return manifest


def _inspect(folder: RunFolder, *options: str) -> list[str]:
    """Return what the client's own command says about each offline run, oldest first."""
    runs = sorted((folder.path / "wandb").glob("offline-run-*/*.wandb"), key=lambda path: path.stat().st_mtime)
    command = [sys.executable, "-m", "wandb", "leet", "inspect", "--json", *options]
    return [subprocess.run([*command, str(run)], check=True, capture_output=True, text=True).stdout for run in runs]


def _summaries(folder: RunFolder) -> list[dict]:
    return [json.loads(text) for text in _inspect(folder, "--summary")]


def _records(text: str, kind: str) -> list[dict]:
    records = (json.loads(line) for line in text.splitlines() if line)
    return [record[kind] for record in records if record["type"] == kind]


def test_a_run_says_what_it_is(config, folder):
    config.tracking.tags = ["paper"]
    manifest = _run_job(config, range(1, 4))
    (summary,) = _summaries(folder)
    assert summary["run_id"] == manifest["wandb_id"]
    assert (summary["state"], summary["exit_code"]) == ("finished", 0)
    assert (summary["name"], summary["project"], summary["tags"]) == ("taco seed 3", "taco", ["paper"])
    assert summary["config"]["group_key"] == config_hash(config, with_seed=False)
    assert summary["config"]["label"] == "taco"
    assert summary["config"]["objective"]["tc"]["temperature"] == 0.07
    assert summary["config"]["seed"] == 3
    last = {"train/loss": 7, "val/mlm": 1.5, "step": 3, "tokens": 300, "seconds": 1.5}
    assert last.items() <= summary["summary"].items()


def test_values_come_with_their_axes_and_nothing_else_is_captured(config, folder, capfd):
    print("not for W&B")
    _run_job(config, range(1, 4))
    (text,) = _inspect(folder)
    run = _records(text, "run")[0]
    assert (run["run_group"], run["job_type"]) == ("ablations", "pretrain")
    history = [record["item"] for record in _records(text, "history")]
    assert [(item["step"], item["tokens"], item["seconds"], item["train/loss"]) for item in history] == [
        (1, 100, 0.5, 9), (2, 200, 1.0, 8), (3, 300, 1.5, 7)
    ]  # fmt: skip
    axes = {metric.get("name") or metric["glob_name"]: metric["step_metric"] for metric in _records(text, "metric")}
    assert axes == {"tokens": "step", "seconds": "step", "*": "step"}
    assert "not for W&B" not in text
    printed = capfd.readouterr()
    assert (printed.out, printed.err) == ("not for W&B\n", "")


def test_jobs_of_one_process_are_runs_of_their_own_and_a_crash_stays_with_its_job(config):
    ids = []
    folders = []
    for seed, status in ((1, Status.finished), (2, Status.failed), (3, Status.finished)):
        config.seed = seed
        ids.append(_run_job(config, [seed], status)["wandb_id"])
        folders.append(RunFolder.of(config))
    summaries = [summary for folder in folders for summary in _summaries(folder)]
    assert [summary["run_id"] for summary in summaries] == ids
    assert len(set(ids)) == 3
    assert [summary["exit_code"] for summary in summaries] == [0, 1, 0]
    assert [summary["summary"]["step"] for summary in summaries] == [1, 2, 3]
    assert len({summary["config"]["group_key"] for summary in summaries}) == 1


def test_a_run_left_open_by_someone_else_is_not_used(config, folder, tmp_path):
    foreign = wandb.init(project="other", dir=str(tmp_path), settings=wandb.Settings(silent=True, console="off"))
    manifest = _run_job(config, [1])
    foreign.log({"x": 1})
    foreign.finish()
    assert manifest["wandb_id"] != foreign.id
    (summary,) = _summaries(folder)
    assert "x" not in summary["summary"]


def test_a_resumed_run_goes_on_under_its_id_without_overlap(config, folder):
    manifest = _run_job(config, range(1, 6), Status.interrupted)
    first_id = manifest["wandb_id"]
    _run_job(config, range(4, 8), Status.finished, manifest, resumed=3)
    assert manifest["wandb_id"] == first_id
    before, after = _summaries(folder)
    assert (before["run_id"], after["run_id"]) == (first_id, first_id)
    assert (before["exit_code"], after["exit_code"]) == (143, 0)
    assert before["tags"] == ["interrupted"]
    assert not after.get("tags")
    texts = _inspect(folder)
    assert _records(texts[0], "preempting") == [{}]
    steps = [record["item"]["step"] for text in texts for record in _records(text, "history")]
    assert steps == [1, 2, 3, 4, 5, 6, 7]
    rows = folder.metrics_csv.read_text().splitlines()[1:]
    assert [row.split(",")[0] for row in rows if ",train/loss," in row] == list("1234567")


def test_steps_that_an_untracked_job_logged_are_sent(config, folder):
    config.tracking.kind = TrackingKind.csv
    manifest = _run_job(config, range(1, 6), Status.interrupted)
    config.tracking.kind = TrackingKind.wandb
    _run_job(config, range(4, 8), Status.finished, manifest, resumed=3)
    (text,) = _inspect(folder)
    assert [record["item"]["step"] for record in _records(text, "history")] == [4, 5, 6, 7]


def test_files_stay_in_the_run_folder_or_where_it_is_said(config, folder, tmp_path):
    _run_job(config, [1])
    assert list((folder.path / "wandb").glob("offline-run-*"))
    config.seed, config.tracking.wandb_dir = 4, str(tmp_path / "elsewhere")
    _run_job(config, [1])
    assert list((tmp_path / "elsewhere" / "wandb").glob("offline-run-*"))
    assert not (RunFolder.of(config).path / "wandb").exists()


@pytest.mark.parametrize("upload", [False, True])
def test_the_model_is_sent_only_on_request_and_without_copies(config, folder, tmp_path, upload):
    config.tracking.upload_model = upload
    for step in (5, 10):
        export = folder.exports / f"step-{step:06d}"
        export.mkdir(parents=True)
        (export / "model.safetensors").write_bytes(bytes(1000))
    _run_job(config, [1])
    (text,) = _inspect(folder)
    sent = [json.dumps(artifact) for artifact in _records(text, "artifact")]
    assert len(sent) == upload
    assert all("step-000010" in artifact for artifact in sent)
    copies = [path for place in ("wandb_cache", "wandb_data") for path in (tmp_path / place).rglob("*.safetensors")]
    assert copies == []


def test_disabled_means_nothing_at_all(config, folder, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "disabled")
    _run_job(config, [1])
    assert not list(folder.path.rglob("*.wandb"))
    assert folder.metrics_csv.exists()


def test_what_wandb_refuses_is_the_users_to_correct(config):
    config.tracking.project = "a/b:c"
    with pytest.raises(ValueError, match="tracking"):
        _run_job(config, [1])


def _notices(caplog) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.name == wandb_sink.logger.name]


def test_without_a_key_a_run_goes_offline_with_one_notice(config, folder, monkeypatch, caplog):
    monkeypatch.delenv("WANDB_MODE")
    _run_job(config, [1])
    (notice,) = _notices(caplog)
    assert "there is no key" in notice
    assert "wandb sync" in notice
    assert len(_summaries(folder)) == 1


def test_without_a_server_a_run_goes_offline_with_one_notice(config, folder, monkeypatch, caplog):
    with socket.socket() as taken:  # bound and not listening: connections are refused
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        monkeypatch.setenv("WANDB_MODE", "online")
        monkeypatch.setenv("WANDB_BASE_URL", url)
        monkeypatch.setenv("WANDB_API_KEY", "a" * 40)
        _run_job(config, [1])
    (notice,) = _notices(caplog)
    assert url in notice
    assert len(_summaries(folder)) == 1


def test_a_server_that_never_answers_is_given_up(monkeypatch):
    monkeypatch.setattr(wandb_sink, "_REACH_SECONDS", 0.2)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        monkeypatch.setenv("WANDB_BASE_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        monkeypatch.setenv("WANDB_API_KEY", "a" * 40)
        assert "did not answer" in wandb_sink.why_not_online()


def test_a_key_in_netrc_counts(monkeypatch, tmp_path):
    netrc = tmp_path / "netrc"
    netrc.write_text(f"machine localhost\n  login user\n  password {'a' * 40}\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("WANDB_BASE_URL", "http://localhost")
    monkeypatch.setattr(wandb_sink, "_answers", lambda url: True)
    assert wandb_sink.why_not_online() is None


def test_a_run_that_cannot_be_opened_online_goes_offline_under_its_id(config, folder, monkeypatch, caplog):
    """The server answers and then fails: as real as a test without a server can make it."""
    real_init = wandb.init

    def init(**arguments):
        if arguments["mode"] == "online":
            raise wandb.errors.CommError("it timed out")
        return real_init(**arguments)

    monkeypatch.setenv("WANDB_MODE", "online")
    monkeypatch.setattr(wandb_sink, "why_not_online", lambda: None)
    monkeypatch.setattr(wandb_sink.wandb, "init", init)
    manifest = {**new_manifest(config), "wandb_id": "abcd1234"}
    _run_job(config, [1], manifest=manifest)
    (notice,) = _notices(caplog)
    assert "it timed out" in notice
    assert [summary["run_id"] for summary in _summaries(folder)] == ["abcd1234"]
    assert Path(folder.path / "wandb").exists()
