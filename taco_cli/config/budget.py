"""How long a run lasts: a number of optimizer steps, of tokens, or of seconds of training."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum


class BudgetKind(StrEnum):
    """What is counted."""

    steps = "steps"
    tokens = "tokens"
    seconds = "seconds"


_UNITS = {
    "step": (BudgetKind.steps, 1),
    "steps": (BudgetKind.steps, 1),
    "token": (BudgetKind.tokens, 1),
    "tokens": (BudgetKind.tokens, 1),
    "s": (BudgetKind.seconds, 1),
    "min": (BudgetKind.seconds, 60),
    "h": (BudgetKind.seconds, 3600),
}
_SCALES = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "B": 10**9}
_FORM = re.compile(r"(?P<number>\d[\d_]*(\.\d+)?) ?(?P<scale>[kKMB]?)(?P<unit>steps?|tokens?|s|min|h)", re.ASCII)
_ALLOWED = 'allowed are steps ("300steps"), tokens ("20Mtokens", "1.5Btokens") and time ("90s", "30min", "2h")'


@dataclass(frozen=True)
class Budget:
    """A run's length; `amount` is whole for steps and tokens."""

    kind: BudgetKind
    amount: float

    @classmethod
    def parse(cls, text: str) -> Budget:
        """Read ``"300steps"``, ``"20Mtokens"``, ``"30min"`` and the like.

        Raises:
            ValueError: for any other form, an amount of zero, or a fraction of a step or token.
        """
        match = _FORM.fullmatch(str(text).strip())
        if match is None:
            raise ValueError(f"budget: found {text!r}; {_ALLOWED}")
        kind, unit = _UNITS[match["unit"]]
        if kind is BudgetKind.seconds and match["scale"]:
            raise ValueError(f"budget: found {text!r}, but time takes no {match['scale']}; {_ALLOWED}")
        # Decimal keeps "1.1Mtokens" whole, where binary fractions would not.
        amount = Decimal(match["number"].replace("_", "")) * _SCALES[match["scale"]] * unit
        if amount <= 0:
            raise ValueError(f"budget: found {text!r}, which is nothing to train for; {_ALLOWED}")
        if kind is BudgetKind.seconds:
            return cls(kind, float(amount))
        if amount != int(amount):
            raise ValueError(f"budget: found {text!r}, which is not a whole number of {kind}; {_ALLOWED}")
        return cls(kind, int(amount))

    def progress(self, step: int, tokens: int, seconds: float) -> float:
        """Return the share of the budget that is used up, in [0, 1].

        Args:
            step: optimizer steps done.
            tokens: tokens seen, over all devices.
            seconds: training time, across restarts.
        """
        return min(max(self._used(step, tokens, seconds) / self.amount, 0.0), 1.0)

    def done(self, step: int, tokens: int, seconds: float) -> bool:
        """Return whether nothing is left."""
        return self._used(step, tokens, seconds) >= self.amount

    def steps(self, tokens_per_step: int) -> int | None:
        """Return the number of optimizer steps, the last one whole; None for time, where nobody knows."""
        if self.kind is BudgetKind.steps:
            return int(self.amount)
        if self.kind is BudgetKind.tokens:
            return -(-int(self.amount) // tokens_per_step)
        return None

    def __str__(self) -> str:
        """Return the shortest form that :meth:`parse` reads back."""
        if self.kind is BudgetKind.seconds:
            return _time(self.amount)
        amount = int(self.amount)
        if self.kind is BudgetKind.tokens:
            for scale in ("B", "M", "k"):
                if amount % (_SCALES[scale] // 10) == 0 and amount >= _SCALES[scale]:
                    return f"{Decimal(amount) / _SCALES[scale]}{scale}tokens"
        return f"{amount}{self.kind}"

    def _used(self, step: int, tokens: int, seconds: float) -> float:
        return {BudgetKind.steps: step, BudgetKind.tokens: tokens, BudgetKind.seconds: seconds}[self.kind]


def _time(seconds: float) -> str:
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds % size == 0:
            return f"{int(seconds) // size}{unit}"
    return f"{int(seconds)}s" if math.floor(seconds) == seconds else f"{Decimal(repr(seconds)):f}s"
