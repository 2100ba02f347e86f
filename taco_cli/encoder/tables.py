"""Word embeddings taken over from a finished run."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import torch

from taco_cli.encoder.encoder import Encoder
from taco_cli.encoder.quiet import quiet_transformers

logger = logging.getLogger(__name__)


@torch.no_grad()
def copy_word_embeddings(encoder: Encoder, source: str) -> None:
    """Copy the word-embedding table of an export into ``encoder``, and so into the decoder that is tied to it.

    Args:
        encoder: receives the rows; nothing else of it changes.
        source: a Hugging Face folder, or a run folder, of which the last export is taken.

    Raises:
        ValueError: nothing can be read there, or its table has another shape.
    """
    from transformers import AutoModelForMaskedLM

    folder = export_of_run(Path(source).expanduser())
    try:
        with quiet_transformers():
            model = AutoModelForMaskedLM.from_pretrained(folder, dtype=torch.float32)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"encoder.word_embeddings_from={source}: no Hugging Face model can be read there ({error}); give the "
            "folder of an export, <run>/hf/step-*, or of a run that has one"
        ) from error
    rows, table = model.get_input_embeddings().weight, encoder.word_embeddings
    if rows.shape != table.shape:
        raise ValueError(
            f"encoder.word_embeddings_from={source}: its table has {rows.shape[0]} tokens x {rows.shape[1]}, this "
            f"encoder's {table.shape[0]} x {table.shape[1]}; use the tokenizer and the encoder size of that run"
        )
    table.copy_(rows)
    logger.info("word embeddings copied from %s", folder)


def export_of_run(folder: Path) -> Path:
    """Return the last export of a run folder; any other folder as it is."""
    exports = [path for path in (folder / "hf").glob("step-*") if re.fullmatch(r"step-\d+", path.name)]
    return max(exports, key=lambda path: int(path.name[5:]), default=folder)
