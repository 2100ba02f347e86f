from __future__ import annotations

import gzip
import json
import lzma
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from taco_cli.data import readers
from taco_cli.data.readers import documents_of_file, format_of

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}
TEXTS = ["One text.", "Zwei, naïve ☃ words.", "Three\nlines\nhere"]


def read(path: Path, field: str = "text", replace: bool = False) -> list[str]:
    return list(documents_of_file(path, field, replace))


def as_bytes(kind: str, texts: list[str]) -> bytes:
    if kind == ".txt":
        return "\n\n".join(texts).encode()
    if kind == ".jsonl":
        return "".join(json.dumps({"id": 1, "text": text}) + "\n" for text in texts).encode()
    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(pyarrow.table({"id": [1] * len(texts), "text": texts}), sink)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("compression", COMPRESS)
@pytest.mark.parametrize("kind", readers.FORMATS)
def test_every_format_and_compression_gives_the_same_documents(tmp_path: Path, kind: str, compression: str) -> None:
    path = tmp_path / f"some.text{kind}{compression}"
    path.write_bytes(COMPRESS[compression](as_bytes(kind, TEXTS)))
    assert format_of(path) == (kind, compression)
    assert read(path) == TEXTS


@pytest.mark.parametrize("compression", [".gz", ".xz", ".zst"])
def test_concatenated_compressed_parts_are_all_read(tmp_path: Path, compression: str) -> None:
    path = tmp_path / f"a.txt{compression}"
    path.write_bytes(COMPRESS[compression](b"one\n\n") + COMPRESS[compression](b"two\n"))
    assert read(path) == ["one", "two"]


def test_the_position_in_the_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\n\ntwo\n")
    positions: list[int] = []
    list(documents_of_file(path, "text", on_read=positions.append))
    assert positions[-1] == path.stat().st_size


def test_lines_end_at_lf_and_crlf_only(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("\ufeffa\u2028b\r\nc\rd\x0be\x85f\r\n\r\ng\n \t\nh".encode())
    assert read(path) == ["a\u2028b\nc\rd\x0be\x85f", "g", "h"]


def test_a_mark_inside_the_text_is_text(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("a\ufeffb".encode())
    assert read(path) == ["a\ufeffb"]


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20), max_size=8))
@settings(deadline=None, max_examples=50)
def test_lines_are_those_of_splitting_at_lf(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    path = tmp_path_factory.mktemp("lines") / "a.jsonl"
    # JSON without escapes: U+2028 and the like stand in the file as they are.
    lines = [json.dumps({"text": text}, ensure_ascii=False) for text in texts]
    path.write_bytes("\r\n".join(lines).encode())
    assert read(path) == texts


def test_pieces_read_do_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("\ufeffäöü\r\n\r\nsecond ☃ text\nnext\n\n\nlast".encode())
    whole = read(path)
    for size in range(3, 12):
        monkeypatch.setattr(readers, "_CHUNK", size)
        assert read(path) == whole == ["äöü", "second ☃ text\nnext", "last"]


def test_a_long_line_is_read_in_linear_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    size = 24 << 20
    path.write_bytes(b"word " * (size // 5))
    tracemalloc.start()
    try:
        (document,) = read(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(document) == size // 5 * 5
    assert peak < 6 * size


def test_a_text_without_blank_lines_is_cut_at_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "_LONGEST_DOCUMENT", 30)
    path = tmp_path / "a.txt"
    path.write_text("0123456789\n" * 7)
    assert [document.count("\n") + 1 for document in read(path)] == [3, 3, 1]


def test_bytes_that_are_not_utf8_are_named_by_file_line_and_offset(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("\ufeffgut\r\nna".encode() + b"\xefve\n")
    with pytest.raises(ValueError, match=r"a\.txt: byte 10 \(line 2\).*on_bad_bytes=replace"):
        read(path)
    assert read(path, replace=True) == ["gut\nna\ufffdve"]


@pytest.mark.parametrize("content", [b"\x89PNG\0\0", "text".encode("utf-16")])
def test_binary_data_given_as_text_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"a\.txt: holds NUL bytes"):
        read(path)


@pytest.mark.parametrize("name", ["a", "a.csv", "a.gz", "a.txt.bz2", "a.jsonl.zip", ".xz"])
def test_other_kinds_of_files_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"allowed are \.txt, \.jsonl and \.parquet"):
        format_of(Path(name))


@pytest.mark.parametrize("compression", [".gz", ".xz", ".zst"])
@pytest.mark.parametrize("fault", ["broken", "cut off"])
def test_broken_compressed_files_are_named(tmp_path: Path, compression: str, fault: str) -> None:
    path = tmp_path / f"a.txt{compression}"
    data = COMPRESS[compression](b"".join(b"text %d\n" % i for i in range(1000)))
    path.write_bytes(data[: len(data) // 2] if fault == "cut off" else b"no archive at all")
    with pytest.raises(ValueError, match=rf"a\.txt\{compression}: the \{compression} data is broken or cut off"):
        read(path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"body": "x", "id": 1}', r"a\.jsonl:3: no field 'text' but body, id; set corpus\.text_field"),
        ('{"text": ', r"a\.jsonl:3: invalid JSON"),
        ("[1]", r"a\.jsonl:3: a list where an object is expected"),
        ('{"text": null}', r"a\.jsonl:3: field 'text' holds a NoneType"),
        ('{"text": "\\ud800"}', r"a\.jsonl:3: character 0 of 'text' is half of a surrogate pair"),
        ("[" * 100_000, r"a\.jsonl:3: invalid JSON"),
    ],
)
def test_faulty_json_lines_are_named_by_file_and_line(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "good"}\n\n' + line + "\n")
    with pytest.raises(ValueError, match=message):
        read(path)


def test_half_a_surrogate_pair_can_be_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a\\ud800b"}')
    (text,) = read(path, replace=True)
    assert set(text) == {"a", "\ufffd", "b"}


def test_parquet_faults_are_named(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(b"no parquet")
    with pytest.raises(ValueError, match=r"a\.parquet: not a readable parquet file"):
        read(path)
    pyarrow.parquet.write_table(pyarrow.table({"id": [1], "text": [None]}), path)
    with pytest.raises(ValueError, match=r"a\.parquet: no field 'body' but id, text"):
        read(path, field="body")
    with pytest.raises(ValueError, match=r"a\.parquet: row 0: field 'text' holds a NoneType"):
        read(path)
