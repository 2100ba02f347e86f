"""One epoch of fine-tuning on sentences as long as SST-2's: the tool, and a stock loop at a fixed length in float32."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import torch
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

from benchmarks.case import Case, Results
from benchmarks.material import encoder_sizes, run_config, words, zipf
from benchmarks.memory import given_back
from taco_cli.config.glue import ProtocolConfig
from taco_cli.config.schema import TrainerConfig
from taco_cli.data import tokenizer as tokenizers
from taco_cli.encoder import build_encoder
from taco_cli.evaluation.finetune import fine_tune, targets_of
from taco_cli.evaluation.model import special_tokens
from taco_cli.evaluation.protocol import resolve
from taco_cli.evaluation.reading import Examples, read
from taco_cli.evaluation.tasks import TASKS
from taco_cli.evaluation.tokens import tokenize
from taco_cli.machine import choose_machine

TASK = TASKS["sst2"]
# Of the words of a phrase. With [CLS] and [SEP]: median 10, mean 13, 95th percentile 31; SST-2's are 10, 12 and 32.
MEDIAN_WORDS, LOG_DEVIATION, MOST_WORDS = 8.5, 0.76, 64

Epoch = Callable[[], None]


def measure(case: Case, folder: Path) -> Results:
    """Return examples per second: ``tool`` and ``plain``, both on the same tokens, which are made beforehand."""
    config = run_config(folder, case, "mlm")
    tokenizer = tokenizers.load(config.tokenizer.path or "")
    examples = _examples(case)
    ours, theirs = _tool(case, folder, tokenizer, examples), _plain(case, tokenizer, examples)
    ours()  # the first one is slower
    found: Results = {"tool": [], "plain": []}
    for _ in range(case.rounds):
        for name, epoch in (("tool", ours), ("plain", theirs)):
            start = time.perf_counter()
            epoch()
            found[name].append(len(examples) / (time.perf_counter() - start))
    return found


def sentences(case: Case) -> Examples:
    """Return made sentences with the lengths of SST-2's phrases and arbitrary labels."""
    known, draw = words(case.vocab_size), random.Random(0)
    weights = zipf(len(known))
    lengths = [draw.lognormvariate(0, LOG_DEVIATION) * MEDIAN_WORDS for _ in range(case.sentences)]
    counts = [min(MOST_WORDS, max(1, int(length))) for length in lengths]
    texts = [(" ".join(draw.choices(known, cum_weights=weights, k=count)),) for count in counts]
    return Examples(texts, [draw.choice(TASK.labels) for _ in texts])


def _examples(case: Case) -> Examples:
    if case.data_dir is None:
        return sentences(case)
    examples = read(TASK, TASK.train, case.data_dir)
    return examples.take(random.Random(0).sample(range(len(examples)), min(case.sentences, len(examples))))


def _tool(case: Case, folder: Path, tokenizer: PreTrainedTokenizerFast, examples: Examples) -> Epoch:
    config = run_config(folder, case, "mlm")
    encoder = build_encoder(config.encoder, special_tokens(tokenizer), case.length, seed=1)
    machine = choose_machine(TrainerConfig())
    protocol = ProtocolConfig(epochs=1, batch_size=case.batch_size, length=case.length, dropout=case.dropout)
    (settings,) = resolve(protocol, encoder.hidden_size, encoder.positions)
    tokens = tokenize(examples.texts, tokenizer, settings.length)
    targets = targets_of(TASK, examples.labels)

    def epoch() -> None:
        fine_tune(encoder, TASK, tokens, targets, settings, seed=1, machine=machine)

    return epoch


def _plain(case: Case, tokenizer: PreTrainedTokenizerFast, examples: Examples) -> Epoch:
    sizes = encoder_sizes(case.encoder)
    config = BertConfig(
        vocab_size=len(tokenizer),
        num_hidden_layers=sizes["layers"],
        hidden_size=sizes["hidden_size"],
        num_attention_heads=sizes["heads"],
        intermediate_size=sizes["intermediate_size"],
        hidden_dropout_prob=case.dropout,
        attention_probs_dropout_prob=case.dropout,
        pad_token_id=tokenizer.pad_token_id,
        num_labels=len(TASK.labels),
    )
    model = BertForSequenceClassification(config).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)
    texts = [text for (text,) in examples.texts]
    encoded = tokenizer(texts, padding="max_length", truncation=True, max_length=case.length, return_tensors="pt")
    labels = targets_of(TASK, examples.labels)

    @given_back()
    def epoch() -> None:
        for rows in torch.randperm(len(texts)).split(case.batch_size):
            inputs = {name: encoded[name][rows] for name in ("input_ids", "attention_mask")}
            model(**inputs, labels=labels[rows]).loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()

    return epoch
