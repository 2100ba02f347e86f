"""A corpus turned into blocks, by the tool or by `datasets.map` and the `group_texts` of Hugging Face's examples."""

from __future__ import annotations

import itertools
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.case import Case, Results
from benchmarks.material import run_config
from benchmarks.memory import given_back
from taco_cli.config.schema import RunConfig


def measure(case: Case, folder: Path) -> Results:
    """Return ``tokens_per_second``, once; imports are not in it, see the rows of `start`."""
    config = run_config(folder, case, case.objectives[0])
    work = Path(tempfile.mkdtemp(dir=folder))
    try:
        way = {"tool": _tool, "datasets": _datasets}[case.way](config, case, work)
        start = time.perf_counter()
        tokens = way()
        return {"tokens_per_second": [tokens / (time.perf_counter() - start)]}
    finally:
        shutil.rmtree(work)


def _tool(config: RunConfig, case: Case, work: Path) -> Callable[[], int]:
    from taco_cli.data import prepare

    config.corpus.cache_dir, config.corpus.processes = str(work), case.processes

    def run() -> int:
        corpus = prepare(config, progress=False)
        return corpus.train.tokens + corpus.validation.tokens

    return run


def _datasets(config: RunConfig, case: Case, work: Path) -> Callable[[], int]:
    from datasets import disable_progress_bars, load_dataset
    from transformers import BertTokenizerFast

    disable_progress_bars()
    processes = case.processes if case.processes > 1 else None

    def group(rows: dict[str, list[list[int]]]) -> dict[str, list[list[int]]]:
        joined = {name: list(itertools.chain(*lists)) for name, lists in rows.items()}
        end = len(joined["input_ids"]) // case.length * case.length
        return {
            name: [values[i : i + case.length] for i in range(0, end, case.length)] for name, values in joined.items()
        }

    @given_back()
    def run() -> int:
        tokenizer = BertTokenizerFast(vocab=config.tokenizer.path, model_max_length=512)
        texts = load_dataset("json", data_files=config.corpus.files, split="train", cache_dir=str(work))
        ids = texts.map(lambda rows: tokenizer(rows["text"]), batched=True, num_proc=processes, remove_columns=["text"])
        return len(ids.map(group, batched=True, num_proc=processes)) * case.length

    return run
