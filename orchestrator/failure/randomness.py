"""Whether a run of characters is noise, as keys and tokens are, or something people write."""

from __future__ import annotations

import math
import re

DIGIT = re.compile(rb"[0-9]")
LETTER = re.compile(rb"[A-Za-z]")
MIXED_CASE = r"[a-z0-9][A-Z]"
"""Stands in every run in mixed case; for a gate."""
_UPPER_INSIDE = re.compile(MIXED_CASE.encode())
_LOWER = re.compile(rb"[a-z]")
_PATHS = (b"/", b"./", b"../", b"~/")
_SAMPLE = 256


def mixed_case(value: bytes) -> bool:
    """A capital inside, beside small letters: base64, not prose."""
    return bool(_UPPER_INSIDE.search(value) and _LOWER.search(value))


def random_enough(value: bytes, length: int) -> bool:
    """Long, in one piece, digits among the letters, and no single character that dominates."""
    if len(value) < length or not DIGIT.search(value) or not LETTER.search(value):
        return False
    sample = value[:_SAMPLE]
    if b" " in sample or sample.startswith(_PATHS):
        return False
    return entropy(sample) >= min(3.0, math.log2(length) * 0.7)


def entropy(value: bytes) -> float:
    """Bits per character."""
    shares = (value.count(byte) / len(value) for byte in set(value))
    return -sum(share * math.log2(share) for share in shares)
