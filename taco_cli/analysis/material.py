"""What every measure works on: an encoder at one step, and sequences that are the same for every checkpoint.

Legend: N sequences, L positions, V vocabulary.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from taco_cli.analysis.subjects import Subject
from taco_cli.config.analyze import AnalyzeConfig
from taco_cli.config.schema import Anchors, NegativePositions, ObjectiveConfig, Pool, RunConfig
from taco_cli.data import BlockStore, PreparedCorpus, validation_blocks
from taco_cli.data.prepare import prepare
from taco_cli.encoder import Encoder
from taco_cli.objectives import Batch, Corrupted, Corruption, SpecialTokens
from taco_cli.objectives.token_contrast import TokenContrast
from taco_cli.objectives.validation import PUBLISHED_MASKING

logger = logging.getLogger(__name__)

# Whatever a run trained on, it is judged at the published corruption, by the same masks and draws.
SEED = 0


@dataclass(frozen=True)
class Material:
    """Sequences and facts that a measure needs.

    Attributes:
        config: of the run.
        settings: of the analysis.
        corpus: tokenizer and both splits.
        special: what objectives must know of the vocabulary.
        held_out: batches of unmasked validation sequences.
        device: where batches and encoders are.
    """

    config: RunConfig
    settings: AnalyzeConfig
    corpus: PreparedCorpus
    special: SpecialTokens
    held_out: list[Batch]
    device: torch.device

    def training(self) -> list[Batch]:
        """Return batches of training sequences, for probes to learn from."""
        return to_batches(self.corpus.train, self.settings.probe_sequences, self.settings.batch_size, self.device)

    def corrupt(self, batch: Batch) -> Corrupted:
        """Mask a batch as published, alike for every run and checkpoint."""
        return Corruption(PUBLISHED_MASKING, self.special, SEED, stream="analysis/masking")(batch)

    def few(self, corrupted: Corrupted) -> Tensor:
        """Return ``(N, L)`` bool, true at about as many words as are masked, and independent of that."""
        batch = Batch(corrupted.originals, corrupted.example, corrupted.epoch, corrupted.attention_mask)
        return Corruption(PUBLISHED_MASKING, self.special, SEED, stream="analysis/few")(batch).selected

    def on_device(self, batch: Batch) -> Batch:
        """Return the batch where the encoder is."""
        mask, device = batch.attention_mask, self.device
        return Batch(
            batch.input_ids.to(device),
            batch.example.to(device),
            batch.epoch.to(device),
            None if mask is None else mask.to(device),
        )

    def contrast(self, negatives: NegativePositions) -> TokenContrast:
        """Return the contrast with the run's settings, every position an anchor, by the same draws for every run."""
        tc = replace(self.config.objective.tc, anchors=Anchors.all, pool=Pool.rank, negative_positions=negatives)
        return TokenContrast(ObjectiveConfig(tc=tc), SEED, stream="analysis/tc")

    def frequencies(self) -> Tensor:
        """Return how often each token occurs in the training text, ``(V,)``."""
        return self.corpus.train.token_counts


def gather_material(subject: Subject, settings: AnalyzeConfig) -> Material:
    """Prepare the run's own text and tokenizer, from the cache where it has them.

    Raises:
        ValueError: the text cannot be read, or gives another tokenizer than the run had.
    """
    config = copy.deepcopy(subject.config)
    corpus = prepare(config)
    _check_fingerprints(subject, corpus)
    tokenizer = corpus.tokenizer
    special = SpecialTokens(
        mask_id=tokenizer.mask_token_id,
        pad_id=tokenizer.pad_token_id,
        special_ids=tuple(sorted(tokenizer.all_special_ids)),
        vocab_size=len(tokenizer),
    )
    device = _device(settings.device)
    held_out = to_batches(corpus.validation, settings.sequences, settings.batch_size, device)
    return Material(config, settings, corpus, special, held_out, device)


def to_batches(store: BlockStore, limit: int, batch_size: int, device: torch.device) -> list[Batch]:
    """Cut at most ``limit`` blocks, spread evenly, into batches of about ``batch_size``, none of a single one.

    Raises:
        ValueError: the split has a single block.
    """
    sequences_NL = validation_blocks(store, limit).to(device)
    if len(sequences_NL) < 2:
        raise ValueError(
            f"the {store.split} split has a single sequence of {store.sequence_length} tokens, and similarity needs "
            "two; give more text (or a larger corpus.validation_fraction)"
        )
    example_N = torch.arange(len(sequences_NL), device=device)
    parts = max(1, min(round(len(sequences_NL) / batch_size), len(sequences_NL) // 2))
    return [
        Batch(ids, example, torch.zeros_like(example))
        for ids, example in zip(sequences_NL.tensor_split(parts), example_N.tensor_split(parts), strict=True)
    ]


@torch.no_grad()
def unmasked_states(encoder: Encoder, batches: list[Batch]) -> Iterator[tuple[Batch, list[Tensor]]]:
    """Yield each batch with all hidden states ``(N, L, d)`` of its uncorrupted sequences."""
    for batch in batches:
        yield batch, encoder.layers(batch.input_ids, batch.attention_mask)


def _check_fingerprints(subject: Subject, corpus: PreparedCorpus) -> None:
    known = subject.fingerprints
    if known.get("tokenizer", corpus.tokenizer_fingerprint) != corpus.tokenizer_fingerprint:
        raise ValueError(
            f"{subject.name}: the tokenizer of its configuration is not the one it was trained with (the text or the "
            "file has changed since), so its token ids mean other words now; restore the text, or analyse an export "
            f"with its own tokenizer: model={subject.checkpoints[-1][1].path}"
        )
    if known.get("corpus", corpus.corpus_fingerprint) != corpus.corpus_fingerprint:
        logger.warning(
            "%s: the text has changed since the run; held-out sequences may have been trained on", subject.name
        )


def _device(wanted: str) -> torch.device:
    if wanted == "cuda" and not torch.cuda.is_available():
        raise ValueError("device=cuda: torch finds no GPU here; use device=auto or device=cpu")
    if wanted == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return torch.device(wanted)
