from __future__ import annotations

import dataclasses
import json
import subprocess

import pytest

from taco_cli.config.schema import Anchors, CorpusConfig, RunConfig, TrackingKind
from taco_cli.tracking import (
    Status,
    config_hash,
    continued,
    differences,
    new_manifest,
    plain,
    read_manifest,
    write_manifest,
)
from taco_cli.tracking.environment import git_state, machine, versions

FIELDS = [
    "status",
    "label",
    "name",
    "seed",
    "config",
    "config_hash",
    "config_hash_without_seed",
    "versions",
    "git_commit",
    "git_dirty",
    "corpus",
    "tokenizer",
    "machine",
    "started",
    "ended",
    "seconds",
    "step",
    "tokens",
    "metrics",
    "wandb_id",
    "command",
    "error",
]


def test_a_new_manifest_has_every_field_and_survives_the_file(config, folder):
    manifest = new_manifest(config)
    assert list(manifest) == FIELDS
    assert manifest["status"] == "running"
    write_manifest(folder.manifest, manifest)
    assert read_manifest(folder.manifest) == manifest
    assert [path.name for path in folder.path.iterdir()] == ["manifest.json"]


def test_a_run_started_again_stays_one_run_and_keeps_what_its_checkpoint_is_of(config):
    reached = {"wandb_id": "abc", "corpus": {"fingerprint": "f"}, "step": 7, "metrics": {"val/mlm": 2.0}}
    former = (
        new_manifest(config) | reached | {"status": "failed", "error": "full", "ended": "2026-01-01T00:00:00+00:00"}
    )
    again = continued(new_manifest(config), former, from_checkpoint=True)
    assert {key: again[key] for key in reached} == reached
    assert (again["status"], again["error"], again["ended"]) == ("running", None, None)
    restarted = continued(new_manifest(config), former, from_checkpoint=False)
    assert restarted == {**new_manifest(config), "started": restarted["started"], "wandb_id": "abc"}


def test_config_is_stored_in_the_words_of_the_user(config):
    config.objective.tc.anchors = Anchors.masked
    stored = json.loads(json.dumps(plain(config)))
    assert stored["objective"]["tc"]["anchors"] == "masked"
    assert stored["optimizer"]["betas"] == [0.9, 0.999]


def test_a_manifest_stays_valid_json_when_training_diverges(config, folder):
    write_manifest(folder.manifest, {**new_manifest(config), "metrics": {"train/loss": float("nan"), "x": 1.5}})
    text = folder.manifest.read_text()
    assert "NaN" not in text
    assert json.loads(text)["metrics"] == {"train/loss": None, "x": 1.5}


def test_an_interrupted_write_leaves_the_old_manifest(config, folder):
    write_manifest(folder.manifest, new_manifest(config))
    before = folder.manifest.read_text()
    with pytest.raises(TypeError):
        write_manifest(folder.manifest, {**new_manifest(config), "error": object()})
    assert folder.manifest.read_text() == before


def test_no_manifest_is_none_and_a_damaged_one_an_error(folder):
    assert read_manifest(folder.manifest) is None
    folder.path.mkdir(parents=True)
    for text, problem in (("{", "not valid JSON"), ("[]", "not the manifest of a run")):
        folder.manifest.write_text(text)
        with pytest.raises(ValueError, match=rf"manifest\.json: {problem}"):
            read_manifest(folder.manifest)


FREE = {
    "name": "other",
    "label": "other",
    "output_root": "elsewhere",
    "resume": "must",
    "checkpoint_every": 7,
    "keep_checkpoints": 9,
    "corpus.cache_dir": "x",
    "corpus.processes": 3,
    "trainer.precision": "float32",
    "trainer.workers": 4,
    "tracking.kind": TrackingKind.wandb,
    "tracking.tags": ["a"],
}
DECIDING = {
    "seed": 4,
    "budget": "2000steps",
    "batch_size": 32,
    "micro_batch_size": 16,
    "sequence_length": 64,
    "validate_every": 50,
    "objective.tc.temperature": 0.1,
    "objective.tc.anchors": Anchors.masked,
    "masking.rate": 0.3,
    "encoder.layers": 5,
    "corpus.files": ["a.txt"],
    "tokenizer.vocab_size": 99,
    "optimizer.betas": [0.9, 0.98],
}


def _changed(config: RunConfig, key: str, value: object) -> RunConfig:
    group, _, name = key.rpartition(".")
    copy = dataclasses.replace(config)
    if not group:
        return dataclasses.replace(copy, **{name: value})
    head, _, rest = group.partition(".")
    part = getattr(copy, head)
    inner = f"{rest}.{name}" if rest else name
    return dataclasses.replace(copy, **{head: _changed(part, inner, value)})


@pytest.mark.parametrize("key", FREE)
def test_what_decides_no_number_is_no_difference(config, key):
    other = _changed(config, key, FREE[key])
    assert other != config
    assert differences(config, other) == []
    assert config_hash(config) == config_hash(other)


@pytest.mark.parametrize("key", DECIDING)
def test_what_decides_numbers_is_named_with_both_values(config, key):
    other = _changed(config, key, DECIDING[key])
    (difference,) = differences(plain(config), other)
    assert difference.startswith(f"{key}: ")
    assert difference.endswith(f" -> {plain(other)['budget']}" if key == "budget" else str(DECIDING[key]))
    assert config_hash(config) != config_hash(other)
    assert (config_hash(config, with_seed=False) == config_hash(other, with_seed=False)) == (key == "seed")


def test_one_value_in_two_notations_is_no_difference(config):
    config.budget, config.objective.tc.temperature = "2000000tokens", 1.0
    other = _changed(_changed(config, "budget", "2 Mtokens"), "objective.tc.temperature", 1)
    assert differences(config, other) == []
    assert config_hash(config) == config_hash(other)


def test_the_hash_of_a_stored_config_is_that_of_the_config(config):
    config.corpus = CorpusConfig(files=["a", "b"])
    assert config_hash(json.loads(json.dumps(plain(config)))) == config_hash(config)


def test_a_key_that_older_versions_did_not_have_is_named(config):
    old = plain(config)
    del old["masking"]["rate"]
    assert differences(old, config) == ["masking.rate: (not there) -> 0.15"]


def test_versions_and_machine_are_known():
    assert versions()["python"].startswith("3.")
    assert versions()["torch"]
    described = machine()
    assert described["cores"] >= 1
    assert described["memory_gb"] > 0
    assert described["cpu"]


def _git(folder, *arguments):
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)


def test_git_state_knows_commit_and_changes(tmp_path):
    _git(tmp_path, "init")
    (tmp_path / "a").write_text("1")
    _git(tmp_path, "add", "a")
    _git(tmp_path, "commit", "-m", "first")
    clean = git_state(tmp_path)
    assert len(clean["git_commit"]) == 40
    assert clean["git_dirty"] is False
    (tmp_path / "a").write_text("2")
    assert git_state(tmp_path) == {**clean, "git_dirty": True}


def test_no_repository_and_no_git_are_no_error(tmp_path, monkeypatch):
    nothing = {"git_commit": None, "git_dirty": None}
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    assert git_state(tmp_path) == nothing
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git_state(tmp_path) == nothing


def test_status_words_are_the_four():
    assert [str(status) for status in Status] == ["running", "interrupted", "failed", "finished"]
