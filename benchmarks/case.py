"""One measurement in a process of its own: ``python -m benchmarks.case '{"side": "tool", ...}'`` prints JSON."""

from __future__ import annotations

import contextlib
import csv
import itertools
import json
import resource
import shutil
import statistics
import sys
import time
from pathlib import Path
from typing import Any

TOKENS = 32 * 128
WARM_UP = 20  # steps; compilation is in the first


def tool(case: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Train through everything: loader, logging, checkpoints."""
    from benchmarks.material import run_config
    from taco_cli.tracking import RunFolder
    from taco_cli.training import train

    config = run_config(folder, case)
    shutil.rmtree(RunFolder.of(config).path, ignore_errors=True)
    train(config)
    rows = list(csv.DictReader(RunFolder.of(config).metrics_csv.read_text().splitlines()))
    late = [row for row in rows if int(row["step"]) > WARM_UP]
    values = {
        name: [float(row["value"]) for row in late if row["metric"] == f"throughput/{name}"]
        for name in ("tokens_per_second", "mfu")
    }
    return {"seconds": [TOKENS / value for value in values["tokens_per_second"]], "mfu": values["mfu"]}


def bare(case: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Call the same module's step in a bare loop."""
    from benchmarks.material import run_config
    from taco_cli.data import prepare, step_loader
    from taco_cli.encoder import build_encoder
    from taco_cli.machine import choose_machine
    from taco_cli.objectives import build_objective
    from taco_cli.training.module import Pretraining
    from taco_cli.training.run import _special_tokens

    config = run_config(folder, case)
    corpus = prepare(config, progress=False)
    special = _special_tokens(corpus)
    encoder = build_encoder(config.encoder, special, config.sequence_length, config.seed)
    encoder.set_compiled(case.get("compile", "true") == "true")
    module = Pretraining(
        config,
        encoder,
        build_objective(config.objective, config.masking, special, config.seed),
        choose_machine(config.trainer),
    )
    module.manual_backward = lambda loss: loss.backward()  # type: ignore[method-assign,assignment]
    module._gradients_synced = lambda last: contextlib.nullcontext()  # type: ignore[method-assign]
    loader = step_loader(corpus.train, seed=1, batch_size=32, micro_batch_size=None, start_step=0, end_step=None)
    batches = iter(loader)
    return {"seconds": _timed(lambda: module.training_step(next(batches), 0), case["steps"] - WARM_UP, WARM_UP)}


def plain(case: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Train the plain way on random ids of the same shape."""
    import torch
    from transformers import AutoConfig, AutoModelForMaskedLM

    from benchmarks.material import ENCODERS
    from benchmarks.plain import loss

    sizes, dropout = ENCODERS[case["encoder"]], case["dropout"]
    names = {"bert": ("hidden_dropout_prob", "attention_probs_dropout_prob")}.get(sizes["architecture"], ())
    config = AutoConfig.for_model(
        sizes["architecture"],
        vocab_size=case["vocab_size"],
        num_hidden_layers=sizes["layers"],
        hidden_size=sizes["hidden_size"],
        num_attention_heads=sizes["heads"],
        intermediate_size=sizes["intermediate_size"],
        pad_token_id=0,
        **dict.fromkeys(names, dropout),
    )
    model = AutoModelForMaskedLM.from_config(config).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def step() -> None:
        ids = torch.randint(5, case["vocab_size"], (32, 128))
        labels = torch.where(torch.rand(ids.shape) < 0.15, ids, -100)
        loss(model, ids, labels, negatives=50 if case["objective"] == "taco" else 0).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return {"seconds": _timed(step, case["plain_steps"], 1)}


def blocks(case: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Turn a corpus into blocks, by the tool or by ``datasets.map`` and ``group_texts``; return tokens per second."""
    from benchmarks.material import run_config

    config = run_config(folder, case)
    if case["way"] == "tool":
        from taco_cli.data import prepare

        shutil.rmtree(config.corpus.cache_dir, ignore_errors=True)
        start = time.perf_counter()
        tokens = prepare(config, progress=False).train.tokens
        return {"tokens_per_second": tokens / (time.perf_counter() - start)}
    from datasets import disable_progress_bars, load_dataset
    from transformers import BertTokenizerFast

    disable_progress_bars()
    tokenizer = BertTokenizerFast(vocab=config.tokenizer.path, model_max_length=512)
    start = time.perf_counter()
    texts = load_dataset("json", data_files=config.corpus.files, split="train", cache_dir=str(folder / f"hf{start}"))
    ids = texts.map(lambda rows: tokenizer(rows["text"]), batched=True, num_proc=2, remove_columns=["text"])

    def group(rows: dict[str, list[list[int]]]) -> dict[str, list[list[int]]]:
        joined = {name: list(itertools.chain(*lists)) for name, lists in rows.items()}
        end = len(joined["input_ids"]) // 128 * 128
        return {name: [values[i : i + 128] for i in range(0, end, 128)] for name, values in joined.items()}

    grouped = ids.map(group, batched=True, num_proc=2)
    return {"tokens_per_second": len(grouped) * 128 / (time.perf_counter() - start)}


def loader(case: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Read batches and do nothing with them."""
    from benchmarks.material import run_config
    from taco_cli.data import prepare, step_loader

    corpus = prepare(run_config(folder, case), progress=False)
    batches = iter(step_loader(corpus.train, seed=1, batch_size=32, micro_batch_size=None, start_step=0, end_step=None))
    return {"seconds": _timed(lambda: next(batches), 200, 5)}


def _timed(step: Any, count: int, warm_up: int) -> list[float]:
    for _ in range(warm_up):
        step()
    seconds = []
    for _ in range(count):
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    return seconds


def main() -> None:
    case = json.loads(sys.argv[1])
    sides = {"tool": tool, "bare": bare, "plain": plain, "blocks": blocks, "loader": loader}
    result = sides[case["side"]](case, Path(case["folder"]))
    if "seconds" in result:
        result["median"] = statistics.median(result["seconds"])
    result["peak_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps(result))


if __name__ == "__main__":
    main()
