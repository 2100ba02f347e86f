"""The nine tasks of GLUE in one table, and the names under which tasks are asked for.

Labels travel by name: files and the hub have numbers of their own, which end at the reader.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

from taco_cli.config.glue import Score, TaskConfig
from taco_cli.config.subject import as_list

_PAIR = ["sentence1", "sentence2"]
_ENTAILMENT = ["entailment", "not_entailment"]

TASKS: dict[str, TaskConfig] = {
    task.name: task
    for task in (
        TaskConfig(
            "cola",
            "CoLA",
            ["sentence"],
            labels=["unacceptable", "acceptable"],
            values={"0": "unacceptable", "1": "acceptable"},
            metrics=[Score.matthews],
            no_header=["source", "label", "mark", "sentence"],
            hub="cola",
            in_average=True,
        ),
        TaskConfig(
            "sst2",
            "SST-2",
            ["sentence"],
            labels=["negative", "positive"],
            values={"0": "negative", "1": "positive"},
            hub="sst2",
            in_average=True,
        ),
        TaskConfig(
            "mrpc",
            "MRPC",
            ["#1 String", "#2 String"],
            label="Quality",
            labels=["not_equivalent", "equivalent"],
            values={"0": "not_equivalent", "1": "equivalent"},
            metrics=[Score.f1, Score.accuracy],
            positive="equivalent",
            hub="mrpc",
            hub_texts=_PAIR,
            in_average=True,
        ),
        TaskConfig(
            "stsb",
            "STS-B",
            _PAIR,
            label="score",
            metrics=[Score.pearson, Score.spearman],
            headline=Score.spearman,
            bounds=[0.0, 5.0],
            hub="stsb",
            in_average=True,
        ),
        TaskConfig("rte", "RTE", _PAIR, labels=_ENTAILMENT, hub="rte", in_average=True),
        TaskConfig(
            "mnli",
            "MNLI",
            _PAIR,
            label="gold_label",
            labels=["entailment", "neutral", "contradiction"],
            dev={"matched": "dev_matched", "mismatched": "dev_mismatched"},
            test={"m": "test_matched", "mm": "test_mismatched"},
            hub="mnli",
            hub_texts=["premise", "hypothesis"],
            in_average=True,
        ),
        TaskConfig(
            "qqp",
            "QQP",
            ["question1", "question2"],
            label="is_duplicate",
            labels=["not_duplicate", "duplicate"],
            values={"0": "not_duplicate", "1": "duplicate"},
            metrics=[Score.f1, Score.accuracy],
            positive="duplicate",
            hub="qqp",
            in_average=True,
        ),
        TaskConfig("qnli", "QNLI", ["question", "sentence"], labels=_ENTAILMENT, hub="qnli", in_average=True),
        TaskConfig(
            "wnli",
            "WNLI",
            _PAIR,
            labels=["not_entailment", "entailment"],
            values={"0": "not_entailment", "1": "entailment"},
            hub="wnli",
        ),
    )
}

# Measures of frozen states and of the masked-LM head: nothing is fine-tuned. Those with one line of words each.
FROZEN = ("blimp", "sts_zero_shot", "pos_probe", "docstring_topic")
PROBE = "_probe"  # <task>_probe is the linear probe of a classification task
GROUPS: dict[str, list[str]] = {
    "all": list(TASKS),
    "small": ["cola", "sst2", "mrpc", "stsb", "rte"],
    "zero_shot": ["blimp", "sts_zero_shot", "sst2_probe", "pos_probe", "docstring_topic"],
}
DETAIL = "_of_"  # in metrics of single layers and paradigms, which stay in the file
_ALIASES = {"ud-ewt": "pos_probe"}


def choose(asked: Any, own: TaskConfig) -> tuple[list[TaskConfig], list[str]]:
    """Resolve ``tasks``: names, groups, or a list of them.

    Args:
        asked: the value of `tasks`; None: the task of one's own, or the small ones.
        own: `task`, without a name if there is none.

    Returns:
        tasks to fine-tune on, and names of frozen measures.

    Raises:
        ValueError: a name that nothing has.
    """
    known = table(own)
    names: list[str] = as_list(asked) or [own.name or "small"]
    expanded = [part for name in names for part in GROUPS.get(str(name), [str(name)])]
    wanted = list(dict.fromkeys(_ALIASES.get(name, name) for name in expanded))
    frozen = [name for name in wanted if _is_frozen(name, known)]
    unknown = [name for name in wanted if name not in known and name not in frozen]
    if unknown:
        raise ValueError(_unknown(unknown[0], known))
    return [known[name] for name in wanted if name in known], frozen


def table(own: TaskConfig) -> dict[str, TaskConfig]:
    """Return GLUE's tasks and one's own."""
    return TASKS | ({own.name: own} if own.name else {})


def probed(name: str, known: dict[str, TaskConfig]) -> TaskConfig | None:
    """Return the classification task whose sentences `<task>_probe` classifies; None for another name."""
    task = known.get(name.removesuffix(PROBE)) if name.endswith(PROBE) else None
    return task if task is not None and task.labels else None


def headline(task: TaskConfig) -> list[str]:
    """Return the names of the metrics that count in an average: one per dev set."""
    first = task.headline or task.metrics[0]
    return [metric_name(first, suffix) for suffix in task.dev_sets]


def metric_name(score: Score, suffix: str) -> str:
    """Name a metric of one dev set: ``accuracy``, ``accuracy_mismatched``."""
    return f"{score}_{suffix}" if suffix else str(score)


def _is_frozen(name: str, known: dict[str, TaskConfig]) -> bool:
    return name in FROZEN or (name not in known and probed(name, known) is not None)


def _unknown(name: str, known: dict[str, TaskConfig]) -> str:
    names: Sequence[str] = [*known, *GROUPS, *FROZEN, *(f"{task}{PROBE}" for task in known)]
    near = difflib.get_close_matches(name, names, n=3)
    hint = (
        f"did you mean {' or '.join(near)}?"
        if near
        else "one of your own is a file conf/task/<name>.yaml and +task=<name>"
    )
    return (
        f"tasks: {name} is none of {', '.join(known)}, {', '.join(FROZEN)}, <task>{PROBE}, "
        f"nor a group ({', '.join(GROUPS)}); {hint}"
    )
