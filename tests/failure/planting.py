"""Planted secrets, and the spellings in which they arrive."""

import base64
import json
from pathlib import Path
from urllib.parse import quote

DATA = Path(__file__).parent / "data"
CORPUS = json.loads((DATA / "secrets.json").read_text(encoding="utf-8"))
BARE = [(row["name"], row["secret"]) for row in CORPUS["bare"]]
"""Secrets that give themselves away by their shape."""
NAMED = [(row["name"], row["secret"], text) for row in CORPUS["named"] for text in row["texts"]]
"""Secrets that only a name, a header or a URL gives away, in a text that has it."""


def _base64(text):
    return base64.b64encode(text.encode()).decode()


def wrapped(text, columns=76):
    """As a terminal of that width breaks it."""
    return "\n".join(text[at : at + columns] for at in range(0, len(text), columns))


def _unicode_escapes(text):
    return "".join(c if c.isalnum() else f"\\u{ord(c):04x}" for c in text)


def _references(text):
    text = text.replace("&", "&amp;").replace("<", "&lt;")
    return text.replace('"', "&quot;").replace("'", "&#39;")


SPELLINGS = {
    "as it is": str,
    "in a sentence": lambda s: f"the request failed with {s} (see the log)",
    "behind the words of a log": lambda s: f"2026-11-30 12:00:00 [x] npm error {s}",
    "in a JSON text": lambda s: json.dumps({"error": {"message": s}}),
    "in JSON in JSON": lambda s: json.dumps({"error": {"message": json.dumps({"m": s})}}),
    "in JSON in JSON in JSON": lambda s: json.dumps(json.dumps(json.dumps({"m": s}))),
    "in a repr": lambda s: repr({"m": s}),
    "percent-encoded": lambda s: quote(s, safe=""),
    "percent-encoded twice": lambda s: quote(quote(s, safe=""), safe=""),
    "percent-encoded to the last letter": lambda s: "".join(f"%{b:02X}" for b in s.encode()),
    "with character references": _references,
    "in base64": _base64,
}
"""For every planted secret."""
BARE_SPELLINGS = {
    "in double quotes": lambda s: f'got "{s}" here',
    "in single quotes": lambda s: f"got '{s}' here",
    "in brackets": lambda s: f"[{s}]",
    "behind a colon": lambda s: f"x:{s}",
    "behind an equals sign": lambda s: f"x={s},y=1",
    "as bytes": lambda s: repr(s.encode()),
    "with unicode escapes": _unicode_escapes,
    "percent-encoded in JSON": lambda s: json.dumps({"u": quote(s)}),
    "in base64 of JSON": lambda s: f"body={_base64(json.dumps({'m': s}))}",
    "in base64 for URLs": lambda s: base64.urlsafe_b64encode(s.encode()).decode().rstrip("="),
    "in base64 over several lines": lambda s: base64.encodebytes(s.encode()).decode(),
    "in base 16": lambda s: f"got {s.encode().hex()} here",
    "in base 16, a digit in front": lambda s: f"0{s.encode().hex().upper()}",
    "in base 16 of JSON": lambda s: json.dumps({"m": s}).encode().hex(),
    "in base64 twice": lambda s: _base64(_base64(s)),
}
"""For those that need no neighbour."""


def survives(secret, out, text=None):
    """True where the secret, twelve characters of a long one, or its whole spelling is left."""
    pieces = [secret]
    if len(secret) > 30:
        pieces += [secret[at : at + 12] for at in range(8, len(secret) - 14, 5)]
    return any(piece in out for piece in pieces) or out == text
