"""Random numbers as a pure function of (seed, stream, index): no state, no order of calls.

Every mask, positive, negative, replacement token and the order of examples is drawn here. A number
depends on nothing but its key, so it is the same whatever the batch layout, the worker, the rank, the
device, and after a resume. The hash is the finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014),
applied once per key component, in 64-bit integers that wrap around.
"""

from __future__ import annotations

import hashlib

import torch
from torch import Tensor

_GOLDEN = -7046029254386353131  # 0x9E3779B97F4A7C15 as a signed 64-bit integer
_MIX_1 = -4658895280553007687  # 0xBF58476D1CE4E5B9
_MIX_2 = -7723592293110705685  # 0x94D049BB133111EB
_LOW_32 = 0xFFFFFFFF


def stream_key(seed: int, stream: str) -> int:
    """Return the signed 64-bit key of a named stream, e.g. ``stream_key(1, "masking/select")``."""
    digest = hashlib.blake2b(f"{seed}/{stream}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def random_bits(key: int, *indices: Tensor) -> Tensor:
    """Return 64 random bits for each index tuple.

    Args:
        key: from :func:`stream_key`.
        indices: int64 tensors that broadcast together, e.g. epoch ``(N, 1)``, example ``(N, 1)``,
            position ``(L,)``.

    Returns:
        int64 tensor of the broadcast shape.
    """
    bits: Tensor | int = key
    for index in indices:
        bits = _finalise((index * _GOLDEN) ^ bits)
    assert isinstance(bits, Tensor)
    return bits


def uniform(bits: Tensor) -> Tensor:
    """Map random bits to float32 uniform on [0, 1), from the highest 24 bits."""
    return _shift(bits, 40).to(torch.float32) * 2.0**-24


def below(bits: Tensor, bound: Tensor | int) -> Tensor:
    """Map random bits to integers uniform on [0, bound), ``1 <= bound < 2**31``.

    Uses the low 32 bits by multiply-and-shift; the bias is below ``bound / 2**32``.
    """
    return _shift((bits & _LOW_32) * bound, 32)


def high_bits(bits: Tensor) -> Tensor:
    """Return the upper 32 bits as a value for a second, independent :func:`below`."""
    return _shift(bits, 32)


def permutation(key: int, epoch: int, size: int) -> Tensor:
    """Return the order of ``size`` examples in ``epoch``: an int64 permutation of ``range(size)``."""
    index = torch.arange(size)
    return torch.argsort(random_bits(key, torch.tensor(epoch), index), stable=True)


def _finalise(bits: Tensor) -> Tensor:
    bits = bits + _GOLDEN
    bits = (bits ^ _shift(bits, 30)) * _MIX_1
    bits = (bits ^ _shift(bits, 27)) * _MIX_2
    return bits ^ _shift(bits, 31)


def _shift(bits: Tensor, by: int) -> Tensor:
    """Shift right with zeros coming in (torch's own shift of int64 keeps the sign)."""
    return (bits >> by) & ((1 << (64 - by)) - 1)
