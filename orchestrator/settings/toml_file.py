"""A TOML file as a table, or one sentence that says why not."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

_LARGEST: Final = 1 << 20

_WHY: Final[Mapping[type, str]] = {
    FileNotFoundError: "there is no such file",
    IsADirectoryError: "this is a folder, not a file",
    PermissionError: "no permission to read this file",
}


class UnusableFileError(Exception):
    """The file gives no table; the text names it and says why."""

    def __init__(self, file: Path, reason: str, *, readable: bool) -> None:
        """`readable` when there is text, which is not TOML."""
        super().__init__(f"{file_name(file)}: {reason}")
        self.readable = readable


def file_name(file: Path) -> str:
    """A file's name on one line, as it is where that is harmless."""
    name = str(file)
    return name if name.isascii() and name.isprintable() else json.dumps(name)


def read_table(file: Path) -> dict[str, Any]:
    """Read and parse.  Raises UnusableFileError, and nothing else."""
    text = _text(file)
    try:
        return tomllib.loads(text)
    except RecursionError:
        reason = "values are nested too deeply"
    except ValueError as error:  # TOMLDecodeError; a plain one for a number of 5,000 digits
        reason = f"not valid TOML: {json.dumps(str(error))[1:-1]}"
    raise UnusableFileError(file, reason, readable=True)


def _text(file: Path) -> str:
    reason = "no file can have this name"
    if "\0" not in str(file):
        try:
            with file.open("rb") as stream:
                content = stream.read(_LARGEST + 1)
            if len(content) <= _LARGEST:
                return content.removeprefix(b"\xef\xbb\xbf").decode("utf-8")
            reason = "this is larger than 1 MiB, which settings and rules never are"
        except UnicodeDecodeError as error:
            reason = f"byte {error.start} is not UTF-8, which TOML has to be"
        except OSError as error:
            reason = _WHY.get(type(error), error.strerror or "it cannot be read")
    raise UnusableFileError(file, reason, readable=False)
