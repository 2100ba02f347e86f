"""The data of a run: documents, tokenizer, packed token stores, and the order in which they are read."""

from .blocks import BlockStore, unigram_entropy, validation_blocks
from .loader import step_loader
from .prepare import PreparedCorpus, prepare

__all__ = ["BlockStore", "PreparedCorpus", "prepare", "step_loader", "unigram_entropy", "validation_blocks"]
