"""Tiny exported runs, and made-up files in the official layouts of all nine tasks."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from transformers import PreTrainedTokenizerFast

from taco_cli.config.glue import GlueConfig, Pooling, ProtocolConfig
from taco_cli.config.schema import Accelerator, Architecture, EncoderConfig, Precision, TrainerConfig
from taco_cli.data.tokenizer import bert_tokenizer
from taco_cli.encoder import build_encoder, export
from taco_cli.evaluation.checkpoints import Checkpoint
from taco_cli.evaluation.model import Model, load_model, special_tokens
from taco_cli.machine import Machine, choose_machine

WORDS = ["good", "fine", "bad", "poor", "the", "a", "cat", "dog", "film", "was", "is", "very", "he", "she", "we", "ran"]
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *"abcdefghijklmnopqrstuvwxyz.[]", "##s", "##ing"]

MakeRun = Callable[..., Path]
Ask = Callable[..., GlueConfig]


@pytest.fixture(scope="session")
def tokenizer() -> PreTrainedTokenizerFast:
    made = bert_tokenizer(VOCABULARY)
    made.model_max_length = 32
    return made


@pytest.fixture(scope="session")
def trainer() -> TrainerConfig:
    return TrainerConfig(accelerator=Accelerator.cpu, precision=Precision.float32)


@pytest.fixture(scope="session")
def machine(trainer: TrainerConfig) -> Machine:
    return choose_machine(trainer)


@pytest.fixture(scope="session")
def make_run(tokenizer: PreTrainedTokenizerFast) -> MakeRun:
    """Return a function that writes a finished run's manifest and exports."""

    def make(root: Path, label: str = "taco", seed: int = 1, steps: tuple[int, ...] = (10,)) -> Path:
        folder = root / label / f"seed_{seed}"
        folder.mkdir(parents=True)
        sizes = EncoderConfig(Architecture.bert, None, 2, 16, 2, 32, 0.1, positions=32)
        for step in steps:
            encoder = build_encoder(sizes, special_tokens(tokenizer), 32, 100 * seed + step)
            export(encoder, tokenizer, folder / "hf" / f"step-{step:06d}", {})
        facts = {
            "status": "finished",
            "config": {},
            "label": label,
            "seed": seed,
            "name": "made",
            "step": max(steps, default=0),
        }
        (folder / "manifest.json").write_text(json.dumps(facts))
        return folder

    return make


@pytest.fixture(scope="session")
def run_folder(make_run: MakeRun, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="session")
def model(run_folder: Path, machine: Machine) -> Model:
    return load_model(Checkpoint(str(run_folder / "hf" / "step-000010"), 10, run_folder, "taco", 1), machine, 0.1)


@pytest.fixture
def ask(data_dir: Path, trainer: TrainerConfig) -> Ask:
    """Return a factory of requests that take a second."""

    def make(**changes: object) -> GlueConfig:
        protocol = ProtocolConfig("tiny", 24, 8, [5e-3], 2, 2, pooling=Pooling.mean)
        config = GlueConfig(data_dir=str(data_dir), seeds=[1], protocol=protocol, probe_examples=50, trainer=trainer)
        for key, value in changes.items():
            target, name = (config.protocol, key.removeprefix("protocol__")) if "__" in key else (config, key)
            assert hasattr(target, name), key
            setattr(target, name, value)
        return config

    return make


@pytest.fixture(scope="session")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with all nine tasks, BLiMP and a treebank, in the layouts in which they are published."""
    root = tmp_path_factory.mktemp("data")
    draw = random.Random(0)
    for split, count in (("train", 48), ("dev", 24), ("test", 5)):
        _write_glue(root / "glue", split, count, draw)
    _write_blimp(root / "blimp", draw)
    for split, count in (("train", 60), ("dev", 20)):
        _write_treebank(root / "ud-ewt" / f"en_ewt-ud-{split}.conllu", count, draw)
    return root


def sentence(good: bool, draw: random.Random) -> str:
    """Return words that say by one of them what the label is."""
    words = draw.choices(WORDS[4:], k=draw.randint(3, 9))
    words[draw.randrange(len(words))] = draw.choice(WORDS[:2] if good else WORDS[2:4])
    return " ".join(words)


def _write_glue(root: Path, split: str, count: int, draw: random.Random) -> None:
    labels = [draw.random() < 0.5 for _ in range(count)]
    one = [sentence(label, draw) for label in labels]
    two = [sentence(draw.random() < 0.5, draw) for _ in labels]
    known = split != "test"
    numbers = [str(int(label)) for label in labels]
    entailed = ["entailment" if label else "not_entailment" for label in labels]
    three = [draw.choice(["entailment", "neutral", "contradiction"]) for _ in labels]

    def write(name: str, header: str, rows: list[list[str]], mark: str = "", end: str = "\n") -> None:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [*([header.replace(" | ", "\t")] if header else []), *("\t".join(row) for row in rows)]
        path.write_bytes((mark + "\n".join(lines) + end).encode())

    def table(*columns: list[str]) -> list[list[str]]:
        return [list(row) for row in zip([str(i) for i in range(count)], *columns, strict=True)]

    if known:
        rows = [
            ["gj04", number, "" if label else "*", text]
            for number, label, text in zip(numbers, labels, one, strict=True)
        ]
        write(f"CoLA/{split}.tsv", "", rows, end="" if split == "dev" else "\n")
        write(f"SST-2/{split}.tsv", "sentence | label", [[text + " ", n] for text, n in zip(one, numbers, strict=True)])
        mrpc = [[n, "1", "2", a, f'" {b}'] for n, a, b in zip(numbers, one, two, strict=True)]
        write(f"MRPC/{split}.tsv", "Quality | #1 ID | #2 ID | #1 String | #2 String", mrpc, "\ufeff")
    else:
        write("CoLA/test.tsv", "index | sentence", table(one))
        write("SST-2/test.tsv", "index | sentence", table(one))
        header = "index | #1 ID | #2 ID | #1 String | #2 String"
        write("MRPC/test.tsv", header, table(numbers, numbers, one, two), "\ufeff")
    score = [[f"{4.0 * label + draw.random():.3f}" for label in labels]] if known else []
    sources = [["x"] * count for _ in range(6)]
    header = "index | genre | filename | year | old_index | source1 | source2 | sentence1 | sentence2"
    write(f"STS-B/{split}.tsv", header + " | score" * known, table(*sources, one, two, *score))
    for name, columns, label in (
        ("RTE", "sentence1 | sentence2", entailed),
        ("QNLI", "question | sentence", entailed),
        ("WNLI", "sentence1 | sentence2", numbers),
    ):
        write(
            f"{name}/{split}.tsv",
            f"index | {columns}" + " | label" * known,
            table(one, two, *([label] if known else [])),
        )
    if known:
        ids = [[str(i), str(i)] for i in range(count)]
        qqp = [[n, *pair, a, b, label] for n, pair, a, b, label in zip(numbers, ids, one, two, numbers, strict=True)]
        write(f"QQP/{split}.tsv", "id | qid1 | qid2 | question1 | question2 | is_duplicate", qqp)
    else:
        write("QQP/test.tsv", "id | question1 | question2", table(one, two))
    for kind in ("",) if split == "train" else ("_matched", "_mismatched"):
        header = "index | promptID | genre | sentence1 | sentence2" + " | label1 | gold_label" * known
        more = [["neutral"] * count, three] if known else []
        write(f"MNLI/{split}{kind}.tsv", header, table(sources[0], sources[1], one, two, *more))


def _write_blimp(root: Path, draw: random.Random) -> None:
    root.mkdir(parents=True)
    for paradigm in ("made_one", "made_two"):
        pairs = [{"sentence_good": sentence(True, draw), "sentence_bad": sentence(False, draw)} for _ in range(6)]
        (root / f"{paradigm}.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))


def _write_treebank(path: Path, count: int, draw: random.Random) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    tags = {"the": "DET", "a": "DET", "cat": "NOUN", "dog": "NOUN", "was": "VERB", "is": "VERB", "he": "PRON"}
    blocks = []
    for number in range(count):
        words = draw.choices(list(tags), k=draw.randint(2, 6))
        rows = [f"{i}\t{word}\t_\t{tags[word]}\t_\t_\t0\t_\t_\t_" for i, word in enumerate(words, start=1)]
        blocks.append("\n".join([f"# sent_id = {number}", "1-2\tcan't\t_\t_\t_\t_\t_\t_\t_\t_", *rows, ""]))
    path.write_text("\n".join(blocks) + "\n")
