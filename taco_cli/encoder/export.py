"""A Hugging Face directory: weights, tokenizer and model card, written whole or not at all."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taco_cli.encoder.card import model_card
from taco_cli.encoder.encoder import Encoder
from taco_cli.encoder.quiet import quiet_transformers

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

logger = logging.getLogger(__name__)

_MODEL_FILES = (".safetensors", ".bin", ".json", ".txt", ".model")


def export(encoder: Encoder, tokenizer: PreTrainedTokenizerBase, folder: str | Path, facts: dict[str, Any]) -> Path:
    """Write ``folder`` so that ``AutoModelForMaskedLM`` and ``AutoTokenizer`` load it.

    The folder appears by one rename after everything is on disk; one that is there already is replaced.

    Args:
        encoder: what to save; its float32 weights, the decoder once with the embeddings it is tied to.
        tokenizer: a transformers tokenizer.
        folder: where to.
        facts: what :func:`taco_cli.encoder.card.model_card` tells of the run, plain JSON values.

    Returns:
        the folder.

    Raises:
        ValueError: if the tokenizer has more tokens than the encoder.
    """
    rows = encoder.word_embeddings.shape[0]
    if len(tokenizer) > rows:
        raise ValueError(f"cannot export to {folder}: the tokenizer has {len(tokenizer)} tokens, the encoder {rows}")
    target = Path(folder)
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    shutil.rmtree(draft, ignore_errors=True)
    try:
        _write(encoder, tokenizer, draft, facts)
        _move_into_place(draft, target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return target


def fingerprint(folder: Path) -> str:
    """Return 16 hexadecimal digits over the files of weights, configuration and tokenizer of a Hugging Face folder."""
    digest = hashlib.blake2b(digest_size=8)
    for file in sorted(p for p in folder.iterdir() if p.suffix in _MODEL_FILES and p.is_file()):
        digest.update(f"{file.name}\n".encode())
        with file.open("rb") as content:
            digest.update(hashlib.file_digest(content, "blake2b").digest())
    return digest.hexdigest()


def _write(encoder: Encoder, tokenizer: PreTrainedTokenizerBase, draft: Path, facts: dict[str, Any]) -> None:
    _name_special_tokens(encoder.model.config, tokenizer)
    _name_rotary_bases(encoder.model.config)
    with quiet_transformers():
        encoder.model.save_pretrained(draft)
    tokenizer.save_pretrained(draft)
    (draft / "README.md").write_text(model_card(encoder, tokenizer, facts), encoding="utf-8")
    for path in draft.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())


def _name_special_tokens(config: Any, tokenizer: PreTrainedTokenizerBase) -> None:
    """Give the configuration the ids that the architecture's defaults take from another vocabulary."""
    ids = {
        "bos_token_id": tokenizer.cls_token_id,
        "cls_token_id": tokenizer.cls_token_id,
        "eos_token_id": tokenizer.sep_token_id,
        "sep_token_id": tokenizer.sep_token_id,
    }
    for key, value in ids.items():
        if getattr(config, key, 0) is None:
            setattr(config, key, value)


def _name_rotary_bases(config: Any) -> None:
    """Say in the words of transformers 4 what ``rope_parameters`` says; it would take its defaults otherwise."""
    if config.model_type == "modernbert":
        config.global_rope_theta = config.rope_parameters["full_attention"]["rope_theta"]
        config.local_rope_theta = config.rope_parameters["sliding_attention"]["rope_theta"]


def _move_into_place(draft: Path, target: Path) -> None:
    old = target.with_name(f".{target.name}.{os.getpid()}.old")
    if target.exists():
        target.rename(old)
    draft.rename(target)
    shutil.rmtree(old, ignore_errors=True)
