"""English prose in the docstrings of Python modules, found by parsing them; nothing is imported.

A paragraph is a run of lines of the same indentation; bullets and the names and types of parameters are taken
off. It is prose when it looks like sentences: it starts like one and not like a list, directive or
prompt, ends with sentence punctuation, has at least six words of which several are common English ones, and
consists of ASCII letters for the most part. Markup of roles and literals is taken off.

The file needs the standard library alone, so that :mod:`taco_cli.data.docstrings` can run it by its path in
several bare interpreters, which is faster than processes that import the package: paths of modules come in
on the standard input, one a line, and for each a JSON list of paragraphs goes to the standard output.
"""

from __future__ import annotations

import ast
import gc
import inspect
import json
import re
import sys
import warnings
from collections.abc import Iterator

VERSION = 1  # of the rules below; part of the cache's key

_LARGEST_FILE = 1_000_000  # bytes; larger ones are generated tables
_FEWEST_WORDS = 6
_FEWEST_COMMON_WORDS = 2
_LEAST_LETTERS = 0.72  # share of the characters that are letters
_COMMON_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be but by can for from has have if in into is it its may must no not of on or "
        "our should so than that the their then there these they this those to use used was we were when "
        "where which while will with would you your",
    )
)
_STARTS_LIKE_PROSE = re.compile(r"[A-Z\"'(`]")
_ENDS_LIKE_PROSE = re.compile(r"(?<!:)[.!?:][\"')`]*$")
_NOT_PROSE = re.compile(
    r">>>|^\.\. |::$|^\S+ ?: \S+$|^:\w|\bTODO\b|https?://"
    r"|^In \[\d|[{}|\\<>]|[=+*/_#-]{3}|copyright|licen[sc]e",
    re.M | re.I,
)
_HEADING = re.compile(r"^.*\n[ ]*[-=~]{3,}[ ]*\n", re.M)
# A bullet, a number, or the name and type of a parameter, before the sentence that describes it.
_ITEM = re.compile(r"(?:[-*+]|\(?\d{1,2}[.)]|\*{0,2}\w+(?: ?\([^)\n]*\))? ?:)\s+(?=[A-Z])")
_TYPOGRAPHY = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2013": "-", "\u2014": "-"})
_ROLE = re.compile(r":[\w:.+-]+:`~?([^`<]+?)\s*(?:<[^`>]*>)?`")
_LITERAL = re.compile(r"`{1,2}([^`]+)`{1,2}_{0,2}")
_EMPHASIS = re.compile(r"(?<!\w)\*{1,2}([^*\s](?:[^*]*[^*\s])?)\*{1,2}(?!\w)")


def docstrings(source: bytes) -> Iterator[str]:
    """Yield the docstrings of a module, its classes and functions, in the order of the file.

    Raises:
        SyntaxError, ValueError, RecursionError: the source cannot be parsed.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes in other people's strings
        tree = ast.parse(source)
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node, clean=False)
            if text:
                yield text
        # Definitions are statements, so expressions need no visit.
        stack.extend(reversed(list(_statements(node))))


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    for name in ("body", "handlers", "orelse", "finalbody"):
        children = getattr(node, name, None)
        if isinstance(children, list):
            yield from children


def paragraphs(docstring: str) -> Iterator[str]:
    """Yield the paragraphs of a docstring that are prose, each as one line."""
    for block in re.split(r"\n[ \t]*\n", inspect.cleandoc(docstring)):
        for lines in _runs(_HEADING.sub("", block).strip("\n").split("\n")):
            text = _without_markup("\n".join(line.strip() for line in lines))
            if is_prose(text):
                yield " ".join(text.split())


def _runs(lines: list[str]) -> Iterator[list[str]]:
    """Yield runs of lines of the same indentation; the lines after the first of an item may be indented."""
    run: list[str] = []
    depth = 0
    in_item = False
    for line in lines:
        indentation = len(line) - len(line.lstrip())
        is_item = bool(_ITEM.match(line.lstrip()))
        hanging = in_item and len(run) == 1 and indentation > depth
        if run and (is_item or (indentation != depth and not hanging)):
            yield run
            run = []
        if not run:
            in_item = is_item
        run.append(line)
        depth = indentation
    yield run


def is_prose(text: str) -> bool:
    """Tell whether a paragraph reads as English sentences (the rules are at the head of this file)."""
    text = text.strip()
    if not (_STARTS_LIKE_PROSE.match(text) and _ENDS_LIKE_PROSE.search(text)) or _NOT_PROSE.search(text):
        return False
    words = text.split()
    if len(words) < _FEWEST_WORDS or not text.isascii():
        return False
    common = sum(word.strip("\"'(),.").lower() in _COMMON_WORDS for word in words)
    letters = sum(character.isalpha() for character in text)
    return common >= _FEWEST_COMMON_WORDS and letters >= _LEAST_LETTERS * len(text)


def _without_markup(text: str) -> str:
    item = _ITEM.match(text)
    text = text[item.end() :] if item else text
    for pattern in (_ROLE, _LITERAL, _EMPHASIS):
        text = pattern.sub(r"\1", text)
    return text.translate(_TYPOGRAPHY)


def prose_of_file(path: str) -> list[str]:
    """Return the prose of one module; a file that is no valid Python has none."""
    with open(path, "rb") as file:
        source = file.read(_LARGEST_FILE + 1)
    if len(source) > _LARGEST_FILE or not (b'"""' in source or b"'''" in source):
        return []
    try:
        return [paragraph for text in docstrings(source) for paragraph in paragraphs(text)]
    except (SyntaxError, ValueError, RecursionError):
        return []


def main() -> None:
    """Answer each path on the standard input with a JSON line of its paragraphs."""
    gc.disable()  # the trees have no cycles and the process is short-lived
    for line in sys.stdin:
        print(json.dumps(prose_of_file(line.rstrip("\n"))))


if __name__ == "__main__":
    main()
