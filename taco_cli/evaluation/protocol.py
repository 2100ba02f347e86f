"""The settings of one fine-tuning, resolved for an encoder, and the key under which its results are found again."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
from dataclasses import dataclass
from typing import Any

from taco_cli.config.glue import Pooling, ProtocolConfig

logger = logging.getLogger(__name__)

# Published for 4 layers of 512 and 12 of 768 (method, section 5); other sizes take those of the nearer kind.
BASE_HIDDEN_SIZE = 768
SMALL, BASE = (5e-5, 4), (3e-5, 6)

HEAD = "dense, tanh, linear; fresh"


@dataclass(frozen=True)
class Settings:
    """Everything that decides a fine-tuning but the seed, the data, the checkpoint and the precision."""

    protocol: str
    lr: float
    epochs: int
    batch_size: int
    length: int
    warmup_steps: int
    weight_decay: float
    clip: float
    dropout: float | None
    pooling: Pooling
    train_limit: int | None

    def facts(self) -> dict[str, str]:
        """Return the settings as columns of `glue.csv`."""
        facts = {name: "" if value is None else str(value) for name, value in dataclasses.asdict(self).items()}
        return facts | {"head": HEAD}

    def warmup(self, steps: int) -> int:
        """Return the warm-up of a fine-tuning of so many steps: as asked, at most half of them."""
        return min(self.warmup_steps, steps // 2)


def resolve(protocol: ProtocolConfig, hidden_size: int, positions: int) -> list[Settings]:
    """Return one setting per learning rate to try."""
    size = "base" if hidden_size >= BASE_HIDDEN_SIZE else "small"
    lr, epochs = BASE if size == "base" else SMALL
    if not protocol.lr or protocol.epochs is None:
        chosen = [f"learning rate {lr:g}"] * (not protocol.lr) + [f"{epochs} epochs"] * (protocol.epochs is None)
        logger.info(
            "protocol %s: %s, as published for %s encoders (hidden size %d)",
            protocol.name,
            " and ".join(chosen),
            size,
            hidden_size,
        )
    length = min(protocol.length, positions)
    if length < protocol.length:
        logger.warning(
            "protocol.length=%d: the encoder has %d positions, so texts are cut there", protocol.length, positions
        )
    rates = protocol.lr or [lr]
    return [
        Settings(
            protocol=protocol.name,
            lr=rate,
            epochs=protocol.epochs or epochs,
            batch_size=protocol.batch_size,
            length=length,
            warmup_steps=protocol.warmup_steps,
            weight_decay=protocol.weight_decay,
            clip=protocol.clip,
            dropout=protocol.dropout,
            pooling=protocol.pooling,
            train_limit=protocol.train_examples,
        )
        for rate in rates
    ]


def key_of(*parts: Any) -> str:
    """Return 16 hexadecimal digits over plain JSON values."""
    return hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=8).hexdigest()
