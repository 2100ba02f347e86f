"""Weights that are taken over must have been trained on the same token ids: else every row means another token."""

from __future__ import annotations

import logging
from pathlib import Path

from transformers import AutoTokenizer, PreTrainedTokenizerFast

from taco_cli.config.schema import EncoderConfig
from taco_cli.encoder import export_of_run

logger = logging.getLogger(__name__)


def refuse_other_vocabulary(config: EncoderConfig, tokenizer: PreTrainedTokenizerFast) -> None:
    """Compare the tokenizers saved beside the weights that `config` names with the run's own.

    Weights without a tokenizer earn a warning.

    Raises:
        ValueError: an id of `tokenizer` is another token there.
    """
    sources = {"encoder.path": config.path, "encoder.word_embeddings_from": config.word_embeddings_from}
    for key, source in sources.items():
        if source is not None:
            _compare(f"{key}={source}", str(export_of_run(Path(source).expanduser())), tokenizer)


def _compare(what: str, place: str, tokenizer: PreTrainedTokenizerFast) -> None:
    try:
        theirs = AutoTokenizer.from_pretrained(place).get_vocab()
    except Exception:  # the library and those below it raise many kinds; what reads the weights tells of a wrong path
        logger.warning(
            "%s has no tokenizer that can be read: whether its token ids are this run's cannot be told", what
        )
        return
    tokens = {index: token for token, index in theirs.items()}
    for token, index in sorted(tokenizer.get_vocab().items(), key=lambda item: item[1]):
        if tokens.get(index, token) != token:
            raise ValueError(
                f"{what}: token {index} is {tokens[index]!r} there and {token!r} in this run's tokenizer, so its rows "
                f"mean other tokens; use its own: tokenizer=pretrained tokenizer.path={place}"
            )
