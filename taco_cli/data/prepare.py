"""From the configuration to token stores: read, split, train the tokenizer, tokenise, keep in the cache.

Every stage is an entry of the cache, with a key of what it depends on: the vocabulary on the text and the
tokenizer's settings; the tokens on the text, the tokenizer and `corpus.fraction`. Blocks are views of the
stored tokens, so `sequence_length` is in no key. The vocabulary is trained on all training documents whatever
`corpus.fraction` is, so runs on different fractions are judged on the same tokens.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from transformers import PreTrainedTokenizerFast

from taco_cli.config.schema import RunConfig, TokenizerKind

from . import tokenizer as tokenizers
from .blocks import FORMAT_VERSION, BlockStore, StreamWriter
from .cache import entry, key_of
from .encode import Encoder
from .sources import Source, training_source, validation_source
from .split import TRAIN, VALIDATION, Counts, Document, split_documents

logger = logging.getLogger(__name__)

_MANY_UNKNOWN = 0.01  # share of tokens
_REPORT_EVERY = 64  # documents


@dataclass(frozen=True)
class PreparedCorpus:
    """Everything about the data that a run needs."""

    tokenizer: PreTrainedTokenizerFast
    train: BlockStore
    validation: BlockStore
    facts: dict[str, Any]  # plain JSON: documents, duplicates, words, tokens, where the text is from
    corpus_fingerprint: str  # of the documents of both splits
    tokenizer_fingerprint: str
    cache_hit: bool  # the tokens were there already


def prepare(config: RunConfig, progress: bool = True) -> PreparedCorpus:
    """Return tokenizer and token stores of `config.corpus`, from the cache where it has them.

    Args:
        config: `corpus`, `tokenizer` and `sequence_length` are read.
        progress: show a progress bar while something is built.

    Raises:
        ValueError: anything about the files, the tokenizer or the cache that the user can mend; a split with
            less text than one block.
    """
    return _Preparation(config, progress).run()


class _Preparation:
    def __init__(self, config: RunConfig, progress: bool) -> None:
        self._config, self._corpus, self._progress = config, config.corpus, progress
        if self._corpus.processes:  # read once, when the tokenizers' threads start
            os.environ["RAYON_NUM_THREADS"] = str(self._corpus.processes)
        self._training, self._validation = training_source(self._corpus), validation_source(self._corpus)
        if self._validation is None and not 0.0 < self._corpus.validation_fraction < 1.0:
            raise ValueError(
                f"corpus.validation_fraction={self._corpus.validation_fraction}: must lie between 0 and 1; "
                "or give corpus.validation_files"
            )
        self._content = self._content_key()

    def run(self) -> PreparedCorpus:
        tokenizer = self._tokenizer()
        tokenizer_fingerprint = tokenizers.fingerprint(tokenizer)
        corpus_fingerprint = key_of(self._content, self._corpus.fraction)
        folder, hit = entry(
            self._corpus.cache_dir,
            "corpora",
            key_of(FORMAT_VERSION, corpus_fingerprint, tokenizer_fingerprint),
            lambda folder: self._build_tokens(folder, tokenizer),
        )
        logger.info("corpus cache %s: %s", "hit" if hit else "miss, built", folder)
        facts = json.loads((folder / "facts.json").read_text())
        facts |= {"name": self._corpus.name, "source": str(self._corpus.source), **self._training.facts()}
        if self._validation is not None:
            facts["validation"] = self._validation.facts()
        return PreparedCorpus(
            tokenizer=tokenizer,
            train=self._store(folder, TRAIN, tokenizer),
            validation=self._store(folder, VALIDATION, tokenizer),
            facts=facts,
            corpus_fingerprint=corpus_fingerprint,
            tokenizer_fingerprint=tokenizer_fingerprint,
            cache_hit=hit,
        )

    def _content_key(self) -> str:
        held_out = self._validation.fingerprint() if self._validation else self._corpus.validation_fraction
        return key_of(self._training.fingerprint(), held_out)

    def _documents(self, what: str, counts: Counts, fraction: float) -> Iterator[Document]:
        documents = split_documents(self._corpus, self._training, self._validation, counts, fraction)
        yield from _tracked(documents, self._training, what, self._progress)
        if self._content_key() != self._content:
            raise ValueError("the corpus changed while it was read; start again when it is complete")

    def _tokenizer(self) -> PreTrainedTokenizerFast:
        settings = self._config.tokenizer
        longest = self._config.encoder.positions or self._config.sequence_length
        if settings.kind == TokenizerKind.pretrained:
            tokenizer = tokenizers.load(settings.path or "")
            if tokenizer.model_max_length > 1_000_000:  # how the library says that it is not known
                tokenizer.model_max_length = longest
            return tokenizer
        key = key_of(tokenizers.TRAINING_VERSION, self._content, settings.vocab_size, settings.sample_megabytes)
        folder, _ = entry(self._corpus.cache_dir, "tokenizers", key, self._train_tokenizer)
        tokenizer = tokenizers.load(str(folder / "vocab.txt"))
        tokenizer.model_max_length = longest
        return tokenizer

    def _train_tokenizer(self, folder: Path) -> None:
        documents = self._documents("sampling for the tokenizer", Counts(), fraction=1.0)
        pieces = tokenizers.train((d for d in documents if d.split == TRAIN), self._config.tokenizer)
        wanted = self._config.tokenizer.vocab_size
        if len(pieces) < wanted:
            logger.warning("the corpus gives %d pieces, fewer than tokenizer.vocab_size=%d", len(pieces), wanted)
        tokenizers.save_vocabulary(pieces, folder)

    def _build_tokens(self, folder: Path, tokenizer: PreTrainedTokenizerFast) -> None:
        counts = Counts()
        documents = self._documents("tokenising", counts, self._corpus.fraction)
        vocab_size = len(tokenizer)
        writers = {s: StreamWriter(folder, s, vocab_size, tokenizer.sep_token_id) for s in (TRAIN, VALIDATION)}
        for split, ids in Encoder(tokenizer).stream((d.split, d.text) for d in documents):
            writers[split].add(ids)
        occurrences = {split: writer.close() for split, writer in writers.items()}
        facts = dataclasses.asdict(counts)
        facts["tokens"] = {split: int(count.sum()) for split, count in occurrences.items()}
        unknown = tokenizer.unk_token_id
        facts["unknown"] = 0 if unknown is None else int(sum(c[unknown] for c in occurrences.values()))
        _warn_about(facts)
        (folder / "facts.json").write_text(json.dumps(facts))

    def _store(self, folder: Path, split: str, tokenizer: PreTrainedTokenizerFast) -> BlockStore:
        return BlockStore(
            folder,
            split,
            self._config.sequence_length,
            tokenizer.cls_token_id,
            tokenizer.sep_token_id,
            tuple(sorted(tokenizer.all_special_ids)),
        )


def _warn_about(facts: dict[str, Any]) -> None:
    tokens = max(1, sum(facts["tokens"].values()))
    if facts["unknown"] > _MANY_UNKNOWN * tokens:
        logger.warning("%.1f %% of the tokens are unknown to the tokenizer", 100 * facts["unknown"] / tokens)
    for what in ("empty", "duplicates", "in_validation"):
        if facts[what]:
            logger.warning("%d of %d documents left out: %s", facts[what], facts["read"], what)


def _tracked(documents: Iterator[Document], source: Source, what: str, shown: bool) -> Iterator[Document]:
    """Pass documents on and draw how much of the source is read."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not shown, transient=True) as bar:
        task = bar.add_task(what, total=None)
        for number, document in enumerate(documents):
            if number % _REPORT_EVERY == 0:
                bar.update(task, total=source.total_bytes, completed=source.done_bytes)
            yield document
