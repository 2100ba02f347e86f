from __future__ import annotations

import pytest

from taco_cli.config.glue import TaskConfig, check_task
from taco_cli.evaluation.tasks import GROUPS, TASKS, choose, headline


def test_nine_tasks_are_described_without_fault() -> None:
    assert len(TASKS) == 9
    assert [problem for task in TASKS.values() for problem in check_task(task)] == []


def test_average_has_nine_numbers_with_mnli_counted_twice() -> None:
    counted = [name for task in TASKS.values() if task.in_average for name in headline(task)]
    assert len(counted) == 9
    assert headline(TASKS["mnli"]) == ["accuracy_matched", "accuracy_mismatched"]
    assert not TASKS["wnli"].in_average


@pytest.mark.parametrize("asked", ["cola,sst2", ["cola", "sst2"], "[cola, sst2]", ["cola", "cola", "sst2"]])
def test_lists_and_strings_mean_the_same(asked: object) -> None:
    tuned, frozen = choose(asked, TaskConfig())
    assert [task.name for task in tuned] == ["cola", "sst2"]
    assert frozen == []


def test_groups() -> None:
    assert [task.name for task in choose("all", TaskConfig())[0]] == list(TASKS)
    assert [task.name for task in choose(None, TaskConfig())[0]] == GROUPS["small"]
    tuned, frozen = choose(["rte", "zero_shot", "cola_probe", "ud-ewt"], TaskConfig())
    assert [task.name for task in tuned] == ["rte"]
    assert frozen == [*GROUPS["zero_shot"], "cola_probe"]


def test_own_task_is_the_default() -> None:
    own = TaskConfig("mine", texts=["text"], labels=["a", "b"])
    assert choose(None, own)[0] == [own]
    assert choose(["mine_probe"], own)[1] == ["mine_probe"]


@pytest.mark.parametrize(("name", "hint"), [("sst-2", "sst2"), ("stsb_probe", "none of"), ("imdb", "conf/task")])
def test_unknown_name_is_refused_with_a_hint(name: str, hint: str) -> None:
    with pytest.raises(ValueError, match=hint):
        choose([name], TaskConfig())
