from __future__ import annotations

import logging
import tarfile
from pathlib import Path

import pytest

from taco_cli.config.glue import Score, TaskConfig
from taco_cli.evaluation import reading
from taco_cli.evaluation.reading import find, read
from taco_cli.evaluation.tasks import TASKS

SHARED = Path(__file__).parents[3] / "shared" / "data"
OWN = TaskConfig("mine", "own", ["text"], labels=["bad", "good"])


@pytest.mark.parametrize("name", TASKS)
def test_official_layouts_of_all_tasks(name: str, data_dir: Path) -> None:
    task = TASKS[name]
    splits = {task.train: 48, **dict.fromkeys(task.dev_sets.values(), 24), **dict.fromkeys(task.test_sets.values(), 5)}
    for split, count in splits.items():
        examples = read(task, split, str(data_dir))
        assert len(examples) == count
        assert all(len(text) == len(task.texts) for text in examples.texts)
        hidden = split in task.test_sets.values()
        assert all((label is None) == hidden for label in examples.labels)
        if task.labels and not hidden:
            assert set(examples.labels) == set(task.labels)


def test_folder_of_the_files_may_be_the_one_above_or_itself(data_dir: Path) -> None:
    assert find(TASKS["rte"], "train", str(data_dir)) == find(TASKS["rte"], "train", str(data_dir / "glue"))


def test_quotes_are_characters_and_marks_are_not(data_dir: Path) -> None:
    examples = read(TASKS["mrpc"], "train", str(data_dir))
    assert all(second.startswith('" ') for _, second in examples.texts)
    assert not any("\ufeff" in text for pair in examples.texts for text in pair)


def test_only_line_feeds_end_lines(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "train.tsv").write_bytes("text\tlabel\r\none\u2028two\x0bthree\tgood\r\n".encode())
    assert read(OWN, "train", str(tmp_path)).texts == [("one\u2028two\x0bthree",)]


def test_json_lines(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "dev.jsonl").write_text('{"text": "a\\tb", "label": "good"}\n{"text": "c", "label": null}\n')
    examples = read(OWN, "dev", str(tmp_path))
    assert examples.texts == [("a\tb",), ("c",)]
    assert examples.labels == ["good", None]


@pytest.mark.parametrize("hidden", ["-1", "", "-"])
def test_hidden_labels_are_left_out_with_a_warning(
    hidden: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "dev.tsv").write_text(f"text\tlabel\na\tgood\nb\t{hidden}\n")
    with caplog.at_level(logging.WARNING):
        assert read(OWN, "dev", str(tmp_path)).labelled("mine dev").texts == [("a",)]
    assert "1 of 2 examples have no label" in caplog.text


def test_minus_one_is_a_label_where_the_task_says_so(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "dev.tsv").write_text("text\tlabel\na\t1\nb\t-1\n")
    named = TaskConfig("mine", "own", ["text"], labels=["bad", "good"], values={"-1": "bad", "1": "good"})
    assert read(named, "dev", str(tmp_path)).labels == ["good", "bad"]
    plain = TaskConfig("mine", "own", ["text"], labels=["-1", "1"])
    assert read(plain, "dev", str(tmp_path)).labels == ["1", "-1"]
    scored = TaskConfig("mine", "own", ["text"], metrics=[Score.pearson], bounds=[-1.0, 1.0])
    assert read(scored, "dev", str(tmp_path)).labels == [1.0, -1.0]


def test_unknown_label_is_named_with_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "train.tsv").write_text("text\tlabel\na\tgood\nb\tugly\n")
    with pytest.raises(ValueError, match=r"train\.tsv, line 3: label is 'ugly'.*bad, good"):
        read(OWN, "train", str(tmp_path))


@pytest.mark.parametrize(("value", "message"), [("warm", "no number"), ("5.5", "from 0 to 5"), ("nan", "from 0 to 5")])
def test_impossible_score_is_named_with_file_and_line(value: str, message: str, tmp_path: Path) -> None:
    task = TaskConfig("mine", "own", ["text"], metrics=[Score.pearson], bounds=[0.0, 5.0])
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "train.tsv").write_text(f"text\tlabel\na\t{value}\n")
    with pytest.raises(ValueError, match=rf"line 2: .*{message}"):
        read(task, "train", str(tmp_path))


@pytest.mark.parametrize("value", ["nan", "inf"])
def test_score_that_is_not_finite_is_refused_without_bounds(value: str, tmp_path: Path) -> None:
    task = TaskConfig("mine", "own", ["text"], metrics=[Score.pearson])
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "dev.tsv").write_text(f"text\tlabel\na\t1.5\nb\t{value}\n")
    with pytest.raises(ValueError, match=rf"dev\.tsv, line 3: label is '{value}', which is no finite number"):
        read(task, "dev", str(tmp_path))


def test_missing_file_names_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"RTE/train\.tsv.*glue/RTE/train\.tsv"):
        read(TASKS["rte"], "train", str(tmp_path))


def test_wrong_header_and_broken_lines(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "own").mkdir()
    path = tmp_path / "own" / "train.tsv"
    path.write_text("sentence\tlabel\na\tgood\n")
    with pytest.raises(ValueError, match="no column text; it has sentence, label"):
        read(OWN, "train", str(tmp_path))
    path.write_text("text\tlabel\na\tgood\nbroken\n")
    with caplog.at_level(logging.WARNING):
        assert len(read(OWN, "train", str(tmp_path))) == 1
    assert "line 3" in caplog.text
    path.write_text("text\tlabel\na good\nb bad\nc bad\n")
    with pytest.raises(ValueError, match="too few columns"):
        read(OWN, "train", str(tmp_path))


def test_broken_lines_of_a_test_set_keep_the_places_of_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "QQP").mkdir()
    (tmp_path / "QQP" / "test.tsv").write_text("id\tquestion1\tquestion2\n0\ta\tb\n1\tbroken\n2\tc\td\n")
    with caplog.at_level(logging.WARNING):
        assert read(TASKS["qqp"], "test", str(tmp_path), every_line=True).texts == [
            ("a", "b"),
            ("broken", ""),
            ("c", "d"),
        ]
    assert "line 3" in caplog.text


def test_hub_labels_go_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        {"premise": "a", "hypothesis": "b", "label": 0},
        {"premise": "a", "hypothesis": "c", "label": -1},
    ]
    asked = []

    def load(task: TaskConfig, split: str) -> tuple[list[dict[str, object]], list[str]]:
        asked.append((task.hub, split))
        return rows, ["contradiction", "entailment", "neutral"]  # an order of their own

    monkeypatch.setattr(reading, "_load_hub", load)
    examples = read(TASKS["mnli"], "dev_matched", None)
    assert asked == [("mnli", "validation_matched")]
    assert examples.texts == [("a", "b"), ("a", "c")]
    assert examples.labels == ["contradiction", None]


@pytest.mark.skipif(not (SHARED / "glue.tar.xz").is_file(), reason="needs ../shared/data/glue.tar.xz")
def test_real_files_have_their_published_sizes(tmp_path: Path) -> None:
    with tarfile.open(SHARED / "glue.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    root = next(path.parent for path in tmp_path.rglob("CoLA"))
    sizes = {"cola": (8551, 1043), "sst2": (67349, 872), "mrpc": (3668, 408), "stsb": (5749, 1500), "rte": (2490, 277)}
    for name, expected in sizes.items():
        splits = [read(TASKS[name], split, str(root)) for split in ("train", "dev")]
        assert tuple(len(examples) for examples in splits) == expected
        assert all(label is not None for examples in splits for label in examples.labels)
