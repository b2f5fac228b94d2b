"""Runs of base64 and what they hold."""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from orchestrator.failure.linear import compile_linear, find_all
from orchestrator.failure.randomness import DIGIT, entropy, mixed_case

CORE = r"[A-Za-z0-9+/]{16}"
"""Stands in every run; for a gate."""
_RUN = (
    r"[A-Za-z0-9+/]{60,}(?:\r?\n[A-Za-z0-9+/]+={0,2})+"
    r"|[A-Za-z0-9+/_-]*[A-Za-z0-9+/]{16}[A-Za-z0-9+/_-]*={0,2}"
)
"""In either alphabet, also over several lines; words joined by hyphens are no run."""
_STANDARD = bytes.maketrans(b"-_", b"+/")


@cache
def _pattern() -> Any:
    return compile_linear(_RUN)


def runs(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Start, end and characters of every run; a run in one case is a word or a digest."""
    for match in find_all(_pattern(), data):
        run = match.group()
        if mixed_case(run):
            yield (*match.span(), run)


def unbase64(run: bytes) -> bytes:
    """What a run in either alphabet holds, padded or not, cut short or not."""
    run = run.translate(_STANDARD, b"\r\n").rstrip(b"=")
    beyond = len(run) % 4
    try:
        return binascii.a2b_base64(run[:-1] if beyond == 1 else run + b"=="[: -beyond % 4])
    except binascii.Error:
        return b""


def is_text(decoded: bytes) -> bool:
    """True for bytes that a person could read."""
    try:
        return decoded.decode("utf-8").replace("\n", " ").replace("\t", " ").isprintable()
    except UnicodeDecodeError:
        return False


_AWS_SECRET = re.compile(rb"[A-Za-z0-9+/]{40}")
_WORD = re.compile(rb"[a-z]{6}")
_VOWEL = re.compile(rb"[aeiouAEIOU]")
_MIN_ENTROPY = 4.2
_MAX_VOWELS = 13


def is_aws_secret(run: bytes) -> bool:
    """A secret access key of AWS, which has no mark of its own: 40 characters of noise."""
    return bool(
        _AWS_SECRET.fullmatch(run)
        and DIGIT.search(run)
        and mixed_case(run)
        and not _WORD.search(run)
        and len(_VOWEL.findall(run)) <= _MAX_VOWELS
        and entropy(run) >= _MIN_ENTROPY
        and not unbase64(run).isascii()
    )
