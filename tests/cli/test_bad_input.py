"""Whatever a user gets wrong: one clear message without a traceback, status 1, nothing written."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.cli.conftest import Command

WRONG = {
    "misspelt key": ("objective.tc.windo=3", ["objective.tc.windo", "did you mean objective.tc.window"]),
    "misspelt group": ("objectve=taco", ["did you mean objective"]),
    "key that is not there": ("+objective.tc.windo=1", ["objective.tc.windo", "did you mean objective.tc.window"]),
    "unknown choice": ("objective=tacoo", ["objective/tacoo", "taco_concentrated"]),
    "text for a number": ("objective.tc.window=x", ["objective.tc.window=x", "Integer"]),
    "unknown enum word": ("objective.tc.anchors=some", ["some", "all, masked, unmasked"]),
    "even window": ("objective.tc.window=4", ["objective.tc.window=4", "odd and at least 3"]),
    "window below 3": ("objective.tc.window=1", ["objective.tc.window=1", "odd and at least 3"]),
    "no negatives": ("objective.tc.negatives=0", ["objective.tc.negatives=0", "at least 1"]),
    "temperature": ("objective.tc.temperature=0", ["objective.tc.temperature=0", "above 0"]),
    "pool of one": ("micro_batch_size=1", ["micro_batch_size=1", "negatives"]),
    "batch and micro-batch": ("micro_batch_size=3", ["micro_batch_size=3", "batch_size=8", "1, 2, 4, 8"]),
    "positions": ("sequence_length=1024 encoder.positions=512", ["sequence_length=1024", "encoder.positions=512"]),
    "masking": ("masking.rate=0", ["masking.rate=0", "select less than one token"]),
    "shares": ("masking.mask=0.9 masking.random=0.2", ["masking.mask=0.9", "together at most 1"]),
    "budget": ("budget=soon", ["budget", "'soon'", "30min"]),
    "no files": ("corpus.files=[]", ["corpus.files"]),
    "missing file": ("corpus.files=[nowhere.txt]", ["nowhere.txt"]),
    "glob without files": ("corpus.files=[none/*.txt]", ["none/*.txt"]),
    "folder as text": ("corpus.files=[folder.txt]", ["folder.txt"]),
    "binary as text": ("corpus.files=[binary.txt]", ["binary.txt"]),
    "empty file": ("corpus.files=[empty.txt]", ["empty.txt"]),
    "undecodable": ("corpus.files=[latin.txt]", ["latin.txt", "byte 5"]),
    "less than a block": ("corpus.files=[short.txt]", ["fewer than"]),
    "pretrained without path": ("tokenizer=pretrained", ["tokenizer.path"]),
    "pretrained not there": ("tokenizer=pretrained tokenizer.path=no/such", ["no/such"]),
    "files that are not read": ("corpus=docstrings corpus.files=[a.txt]", ["corpus.files=a.txt", "corpus=text"]),
    "hub that is not read": ("corpus.hub=[{path:wiki}]", ["corpus.hub=wiki", "corpus.source=hub"]),
    "tokenizer that is not read": ("tokenizer.path=a.json", ["tokenizer.path=a.json", "tokenizer=pretrained"]),
    "checkpoint that is not read": ("encoder.path=my/model", ["encoder.path=my/model", "encoder=hf"]),
    "hf without path": ("encoder=hf", ["encoder.path"]),
    "no gpu": ("trainer.accelerator=gpu", ["trainer.accelerator=gpu"]),
    "nothing to continue": ("resume=must", ["resume=must"]),
    "every weight 0": ("objective=mlm objective.mlm.weight=0", ["weight"]),
    "folder name": ("name=a/b", ["name='a/b'"]),
}


@pytest.fixture
def odd_files(tmp_path: Path) -> None:
    (tmp_path / "folder.txt").mkdir()
    (tmp_path / "binary.txt").write_bytes(gzip.compress(b"text" * 100))
    (tmp_path / "empty.txt").write_bytes(b"")
    (tmp_path / "latin.txt").write_bytes(b"a caf\xe9 \n")
    (tmp_path / "short.txt").write_text("few words\n\nand two\n\nor three")


@pytest.mark.usefixtures("odd_files")
@pytest.mark.parametrize(("arguments", "expected"), WRONG.values(), ids=WRONG.keys())
def test_wrong(command: Command, tmp_path: Path, arguments: str, expected: list[str]) -> None:
    ended = command(arguments)
    assert ended.status == 1
    for words in expected:
        assert words in ended.err
    assert ended.err.count("error: ") == 1
    assert "Traceback" not in ended.err
    assert not list(tmp_path.glob("**/*.ckpt"))


def test_misspelt_key_in_a_file_names_file_and_key(command: Command, tmp_path: Path) -> None:
    (tmp_path / "mine" / "objective").mkdir(parents=True)
    (tmp_path / "mine" / "objective" / "odd.yaml").write_text("name: odd\ntc: {weigth: 1.0}\n")
    ended = command("objective=odd --config-dir mine")
    assert ended.status == 1
    for words in ("objective/odd", "weigth", "did you mean"):
        assert words in ended.err


def test_another_configuration_in_the_folder_is_refused(command: Command) -> None:
    assert command("").status == 0
    ended = command("objective.tc.temperature=0.1")
    assert ended.status == 1
    assert "objective.tc.temperature: 0.07 -> 0.1" in ended.err


def test_traceback_on_request(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    from taco_cli import cli

    def debugging() -> int:
        os.environ["HYDRA_FULL_ERROR"] = "1"
        return cli.train()

    assert "Traceback" in command("budget=soon", entry=debugging).err
