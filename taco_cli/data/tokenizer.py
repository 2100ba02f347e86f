"""The tokenizer: a WordPiece trained on the corpus, or one that is loaded.

The trained one is BERT's uncased kind: text is lower-cased and stripped of accents, split at whitespace and
punctuation, words are cut into the longest pieces of the vocabulary.
"""

from __future__ import annotations

import hashlib
import heapq
import itertools
import json
import logging
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import cast

import numpy as np
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import AutoTokenizer, BertTokenizer, PreTrainedTokenizerFast

from taco_cli.config.schema import TokenizerConfig

from .split import FOR_SAMPLE, Document

logger = logging.getLogger(__name__)

TRAINING_VERSION = 1  # of what `train` does; part of the cache's key
SMALLEST_VOCABULARY = 128

_SPECIAL = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
_ROBERTA = {"pad": "<pad>", "unk": "<unk>", "cls": "<s>", "sep": "</s>", "mask": "<mask>"}
_TEXT_AT_ONCE = 1 << 20  # characters
_ALPHABET_PARTS = 20  # of so many characters are enough to count them


def train(documents: Iterable[Document], config: TokenizerConfig) -> list[str]:
    """Return the vocabulary of a WordPiece model trained on a sample of the documents.

    The result depends on the set of documents alone.

    Raises:
        ValueError: `tokenizer.vocab_size` is too small.
    """
    if config.vocab_size < SMALLEST_VOCABULARY:
        raise ValueError(f"tokenizer.vocab_size={config.vocab_size}: at least {SMALLEST_VOCABULARY}")
    texts = sample(documents, config.sample_megabytes)
    normalizer, splitter = normalizers.BertNormalizer(lowercase=True), pre_tokenizers.BertPreTokenizer()
    alphabet = _alphabet(texts, config.vocab_size)
    inner = [c for c in alphabet if len(splitter.pre_tokenize_str(f"a{c}a")) == 1]
    model = Tokenizer(models.WordPiece(unk_token=_SPECIAL["unk"]))
    model.normalizer, model.pre_tokenizer = normalizer, splitter
    trainer = trainers.WordPieceTrainer(
        vocab_size=config.vocab_size,
        min_frequency=2,
        show_progress=False,
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        # Named here, the pieces inside words have fixed ids; the trainer's own order of them is random, and
        # it breaks ties between merges by id.
        special_tokens=[*_SPECIAL.values(), *(f"##{c}" for c in inner)],
    )
    model.train_from_iterator(texts, trainer)
    vocabulary = model.get_vocab()
    return sorted(vocabulary, key=vocabulary.__getitem__)


def sample(documents: Iterable[Document], megabytes: float) -> list[str]:
    """Return the texts of documents spread over the corpus, at most so many megabytes, in a fixed order.

    Kept are the documents with the smallest hashes; one that is larger than the whole sample is cut.
    """
    limit = round(megabytes * 1e6)
    kept: list[tuple[float, bytes, str]] = []  # heap, largest hash first
    size = 0
    for document in documents:
        text = document.text[:limit]
        heapq.heappush(kept, (-document.share(FOR_SAMPLE), document.digest, text))
        size += len(text)
        while size > limit and len(kept) > 1:
            size -= len(heapq.heappop(kept)[2])
    return [text for _, _, text in sorted(kept, reverse=True)]


def _alphabet(texts: list[str], vocab_size: int) -> list[str]:
    """Return the most frequent characters after normalisation, at most a twentieth of the vocabulary.

    Each takes up to two entries, at the start of a word and inside it.
    """
    normalizer = normalizers.BertNormalizer(lowercase=True)
    texts = list(itertools.islice(_joined(texts), _ALPHABET_PARTS))
    counts = np.zeros(0x110000, dtype=np.int64)
    for text in texts:
        points = np.frombuffer(normalizer.normalize_str(text).encode("utf-32-le"), dtype=np.uint32)
        counts += np.bincount(points, minlength=len(counts))
    limit = max(vocab_size // 20, min(vocab_size // 3, 128))
    order = np.lexsort((np.arange(len(counts)), -counts))[: limit + 100]
    characters = [chr(point) for point in order if counts[point] and not chr(point).isspace()]
    return sorted(characters[:limit])


def _joined(texts: list[str]) -> Iterator[str]:
    part: list[str] = []
    size = 0
    for text in texts:
        part.append(text)
        size += len(text)
        if size > _TEXT_AT_ONCE:
            yield "\n".join(part)
            part, size = [], 0
    yield "\n".join(part)


def save_vocabulary(pieces: list[str], folder: Path) -> None:
    """Write `vocab.txt`, one piece a line, the line number being the id."""
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces), encoding="utf-8")


def load(path: str) -> PreTrainedTokenizerFast:
    """Return a tokenizer from a folder, a `tokenizer.json`, a `vocab.txt` (uncased BERT) or the hub.

    Raises:
        ValueError: nothing can be loaded, or a token for cls, sep, mask, pad is missing.
    """
    if not path:
        raise ValueError("tokenizer.path is empty: give a folder, a tokenizer.json, a vocab.txt or a hub name")
    place = Path(path).expanduser()
    if place.is_dir():
        tokenizer = _from_folder(place)
    elif place.suffix == ".txt":
        tokenizer = _from_vocabulary(place)
    elif place.suffix == ".json":
        tokenizer = _from_json(place)
    else:
        tokenizer = _from_pretrained(path)
    missing = [name for name in ("cls", "sep", "mask", "pad") if getattr(tokenizer, f"{name}_token_id") is None]
    if missing:
        raise ValueError(
            f"tokenizer.path={path} has no token for {', '.join(missing)}, which masked language modelling "
            "needs: take a tokenizer of a BERT or RoBERTa kind"
        )
    return tokenizer


def _from_folder(folder: Path) -> PreTrainedTokenizerFast:
    if (folder / "tokenizer_config.json").is_file():
        return _from_pretrained(str(folder))
    if (folder / "tokenizer.json").is_file():
        return _from_json(folder / "tokenizer.json")
    if (folder / "vocab.txt").is_file():
        return _from_vocabulary(folder / "vocab.txt")
    raise ValueError(f"tokenizer.path={folder}: no tokenizer_config.json, tokenizer.json or vocab.txt in that folder")


def _from_pretrained(name: str) -> PreTrainedTokenizerFast:
    try:
        tokenizer = AutoTokenizer.from_pretrained(name)
    except Exception as fault:  # the library and those below it raise many kinds
        raise ValueError(
            f"tokenizer.path={name} cannot be loaded: {type(fault).__name__}: {fault}. No file or folder "
            "here has that name; for a hub name a network or a filled cache is needed"
        ) from fault
    if not hasattr(tokenizer, "backend_tokenizer"):
        raise ValueError(f"tokenizer.path={name} has no fast tokenizer (tokenizer.json)")
    return cast(PreTrainedTokenizerFast, tokenizer)


def _from_json(path: Path) -> PreTrainedTokenizerFast:
    _check_exists(path)
    try:
        backend = Tokenizer.from_file(str(path))
    except Exception as fault:  # the library raises plain Exception
        raise ValueError(f"tokenizer.path={path} is no tokenizer.json ({fault})") from fault
    names = {}
    for role in _SPECIAL:
        known = [style[role] for style in (_SPECIAL, _ROBERTA) if backend.token_to_id(style[role]) is not None]
        if known:
            names[f"{role}_token"] = known[0]
    return PreTrainedTokenizerFast(tokenizer_object=backend, **names)


def _from_vocabulary(path: Path) -> PreTrainedTokenizerFast:
    _check_exists(path)
    pieces = path.read_text(encoding="utf-8").split("\n")
    if pieces and not pieces[-1]:
        pieces.pop()
    missing = [token for token in _SPECIAL.values() if token not in pieces]
    if missing:
        raise ValueError(f"tokenizer.path={path} lacks {', '.join(missing)}: it is no BERT vocabulary")
    lines: dict[str, int] = {}
    for number, piece in enumerate(pieces, start=1):
        if lines.setdefault(piece, number) != number:
            raise ValueError(f"tokenizer.path={path}: line {number} repeats {piece!r} of line {lines[piece]}")
    return bert_tokenizer(pieces)


def _check_exists(path: Path) -> None:
    if not path.is_file():
        raise ValueError(f"tokenizer.path={path}: there is no such file")


def bert_tokenizer(pieces: list[str]) -> PreTrainedTokenizerFast:
    """Return an uncased BERT tokenizer with a given vocabulary."""
    vocabulary = {piece: index for index, piece in enumerate(pieces)}
    return cast(PreTrainedTokenizerFast, BertTokenizer(vocab=vocabulary, do_lower_case=True))


def fingerprint(tokenizer: PreTrainedTokenizerFast) -> str:
    """Return a key of everything that decides which ids a text gets."""
    backend = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    backend.no_truncation()
    backend.no_padding()
    roles = {name: getattr(tokenizer, f"{name}_token_id") for name in _SPECIAL}
    described = json.dumps([json.loads(backend.to_str()), roles], sort_keys=True)
    return hashlib.blake2b(described.encode(), digest_size=16).hexdigest()
