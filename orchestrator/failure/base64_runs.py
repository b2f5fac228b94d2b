"""Runs of base64 and what they hold."""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator

from orchestrator.failure.randomness import DIGIT, entropy, mixed_case

CORE = r"[A-Za-z0-9+/]{16}"
"""Stands in every run; for a gate."""
# No pattern here can backtrack: what repeats is possessive, or one class to its end.
_CORE = re.compile(CORE.encode())
_CANDIDATE = re.compile(rb"[A-Za-z0-9+/_-]{16,}+={0,2}")
"""In either alphabet; words joined by hyphens are no run."""
_LINES = re.compile(rb"[A-Za-z0-9+/]{60,}+(?:\r?\n[A-Za-z0-9+/]++={0,2}+)++")
_STANDARD = bytes.maketrans(b"-_", b"+/")


def runs(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Start, end and characters of every run; a run in one case is a word or a digest."""
    found = _CANDIDATE.search(data)
    while found:
        found = _LINES.match(data, found.start()) or found
        run = found.group()
        if mixed_case(run) and _CORE.search(run):
            yield (*found.span(), run)
        found = _CANDIDATE.search(data, found.end())


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
