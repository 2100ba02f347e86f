"""Documents of one file: .txt, .jsonl or .parquet, each plain or compressed (.gz, .xz, .zst).

- ``.txt``: documents are separated by blank lines; the lines of one are kept. A document above 4 MB is cut at
  the end of a line.
- ``.jsonl``: one JSON object a line, its text under `corpus.text_field`; blank lines are allowed.
- ``.parquet``: one document per row of the column `corpus.text_field`.

Lines end at LF or CRLF and nowhere else: U+2028 or a lone CR are text. A byte-order mark at the start is
dropped. Everything is read in pieces; at most one document is held.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import lzma
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

import zstandard

COMPRESSIONS = (".gz", ".xz", ".zst")
FORMATS = (".txt", ".jsonl", ".parquet")
ALLOWED = "allowed are .txt, .jsonl and .parquet, each plain or with .gz, .xz or .zst"

_CHUNK = 1 << 20
_LONGEST_DOCUMENT = 4 << 20  # characters of a .txt document


def format_of(path: Path) -> tuple[str, str]:
    """Return format and compression of a file by its name, e.g. ``(".jsonl", ".xz")``; "" is plain.

    Raises:
        ValueError: neither is known.
    """
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    compression = suffixes.pop() if suffixes and suffixes[-1] in COMPRESSIONS else ""
    if not suffixes or suffixes[-1] not in FORMATS:
        raise ValueError(f"{path}: the kind of file is not known from its name; {ALLOWED}")
    return suffixes[-1], compression


def documents_of_file(
    path: Path, text_field: str, replace_bad_bytes: bool = False, on_read: Callable[[int], None] | None = None
) -> Iterator[str]:
    """Yield the documents of a file.

    Args:
        path: the file.
        text_field: key of .jsonl or column of .parquet.
        replace_bad_bytes: put U+FFFD for what is not UTF-8 instead of raising.
        on_read: called now and then with the number of bytes of the file read so far.

    Raises:
        ValueError: with file, and line or byte where there is one: unreadable or broken file, no UTF-8,
            binary data given as text, invalid JSON, no such field or column.
    """
    kind, compression = format_of(path)
    try:
        with path.open("rb") as raw, _decompressed(raw, compression) as stream:
            if kind == ".parquet":
                yield from _parquet(path, stream, compression, text_field)
            else:
                lines = _lines(path, stream, replace_bad_bytes, lambda: on_read(raw.tell()) if on_read else None)
                yield from (_text(lines) if kind == ".txt" else _jsonl(path, lines, text_field, replace_bad_bytes))
    except (lzma.LZMAError, gzip.BadGzipFile, zlib.error, EOFError, zstandard.ZstdError) as fault:
        raise ValueError(f"{path}: the {compression} data is broken or cut off ({fault})") from fault


@contextlib.contextmanager
def _decompressed(raw: BinaryIO, compression: str) -> Iterator[BinaryIO]:
    if compression == ".gz":
        stream: IO[bytes] = cast(IO[bytes], gzip.GzipFile(fileobj=raw))
    elif compression == ".xz":
        stream = lzma.LZMAFile(raw)  # noqa: SIM115 - closed below
    elif compression == ".zst":
        stream = cast(IO[bytes], io.BufferedReader(_ZstandardStream(raw)))
    else:
        yield raw
        return
    with stream:
        yield cast(BinaryIO, stream)


class _ZstandardStream(io.RawIOBase):
    """All frames of a .zst file; unlike the library's own reader it notices a frame that is cut off."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self._frame: zstandard.ZstdDecompressionObj | None = None
        self._compressed = self._plain = b""

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        while not self._plain:
            data = self._compressed or self._raw.read(1 << 16)
            if not data:
                if self._frame is not None:
                    raise EOFError("the last frame has no end")
                return 0
            self._frame = self._frame or zstandard.ZstdDecompressor().decompressobj()
            self._plain, self._compressed = self._frame.decompress(data), b""
            if self._frame.eof:
                self._compressed, self._frame = self._frame.unused_data, None
        size = min(len(target), len(self._plain))
        target[:size], self._plain = self._plain[:size], self._plain[size:]
        return size


def _lines(
    path: Path, stream: BinaryIO, replace_bad_bytes: bool, on_read: Callable[[], None]
) -> Iterator[tuple[int, str]]:
    """Yield number (from 1) and text of each line, without its end."""
    for number, (offset, line) in enumerate(_byte_lines(path, stream, on_read), start=1):
        try:
            yield number, line.decode()
        except UnicodeDecodeError as fault:
            if not replace_bad_bytes:
                raise ValueError(
                    f"{path}: byte {offset + fault.start} (line {number}) is not UTF-8: "
                    f"{line[fault.start : fault.start + 4]!r}; convert the file to UTF-8, or set "
                    "corpus.on_bad_bytes=replace to put U+FFFD for such bytes"
                ) from fault
            yield number, line.decode(errors="replace")


def _byte_lines(path: Path, stream: BinaryIO, on_read: Callable[[], None]) -> Iterator[tuple[int, bytes]]:
    """Yield offset (in the uncompressed data) and bytes of each line, in time linear in the line's length."""
    started: list[bytes] = []  # pieces of a line whose end is not read yet
    offset = 0
    first = True
    while chunk := stream.read(_CHUNK):
        if b"\0" in chunk:
            raise ValueError(f"{path}: holds NUL bytes, so it is binary or UTF-16, not UTF-8 text; {ALLOWED}")
        if first and chunk.startswith(b"\xef\xbb\xbf"):
            chunk, offset = chunk[3:], 3
        first = False
        on_read()
        *complete, rest = chunk.split(b"\n")
        for line in complete:
            if started:
                line = b"".join([*started, line])
                started = []
            yield offset, line.removesuffix(b"\r")
            offset += len(line) + 1
        if rest:
            started.append(rest)
    if started:
        yield offset, b"".join(started).removesuffix(b"\r")


def _text(lines: Iterator[tuple[int, str]]) -> Iterator[str]:
    document: list[str] = []
    length = 0
    for _, line in lines:
        blank = not line or line.isspace()
        if not blank:
            document.append(line)
            length += len(line) + 1
        if document and (blank or length > _LONGEST_DOCUMENT):
            yield "\n".join(document)
            document, length = [], 0
    if document:
        yield "\n".join(document)


def _jsonl(path: Path, lines: Iterator[tuple[int, str]], field: str, replace_bad_bytes: bool) -> Iterator[str]:
    for number, line in lines:
        if not line or line.isspace():
            continue
        try:
            record = json.loads(line)
        except (json.JSONDecodeError, RecursionError) as fault:
            raise ValueError(f"{path}:{number}: invalid JSON ({fault}); a line holds one object") from fault
        if not isinstance(record, dict):
            raise ValueError(f"{path}:{number}: a {type(record).__name__} where an object is expected")
        text = _checked(f"{path}:{number}", record.get(field, _MISSING), field, sorted(record))
        try:
            text.encode()
        except UnicodeEncodeError as fault:  # JSON can spell half of a surrogate pair
            if not replace_bad_bytes:
                raise ValueError(
                    f"{path}:{number}: character {fault.start} of {field!r} is half of a surrogate pair; "
                    "mend the file or set corpus.on_bad_bytes=replace"
                ) from fault
            text = text.encode(errors="surrogatepass").decode(errors="replace")
        yield text


_MISSING = object()


def _checked(place: str, value: Any, field: str, found: list[str]) -> str:
    if value is _MISSING:
        raise ValueError(f"{place}: no field {field!r} but {', '.join(found) or 'none'}; set corpus.text_field")
    if not isinstance(value, str):
        raise ValueError(f"{place}: field {field!r} holds a {type(value).__name__} where text is expected")
    return value


def _parquet(path: Path, stream: BinaryIO, compression: str, field: str) -> Iterator[str]:
    import pyarrow
    import pyarrow.parquet

    with contextlib.ExitStack() as stack:
        if compression:  # the format is read from its end
            plain = stack.enter_context(tempfile.TemporaryFile(prefix="taco-parquet-"))
            shutil.copyfileobj(stream, plain, _CHUNK)
            plain.seek(0)
            stream = cast(BinaryIO, plain)
        try:
            file = pyarrow.parquet.ParquetFile(stream)
            columns = file.schema_arrow.names
            if field not in columns:
                _checked(str(path), _MISSING, field, columns)
            row = 0
            batches = file.iter_batches(batch_size=1000, columns=[field])
            for batch in batches:
                for value in batch.column(0).to_pylist():
                    yield _checked(f"{path}: row {row}", value, field, columns)
                    row += 1
        except (pyarrow.lib.ArrowException, OSError) as fault:
            raise ValueError(f"{path}: not a readable parquet file ({fault})") from fault
