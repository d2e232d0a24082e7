"""Renders the tables with numbers in README.md, docs/ and configs/README.md from what they are made of.

A table that this script writes stands between two comments:

    <!-- table: NAME from SOURCE, made by: COMMAND -->
    ...
    <!-- end table -->

NAME is one of the renderers in _measured_tables.py and _package_tables.py. SOURCE is a committed JSON file, and COMMAND
is what measured it; or SOURCE is `the package`, for what follows from the code alone. A JSON file may say itself
which command made it (`made_by`); then the comment has to agree.

example:
  python scripts/render_tables.py           # writes the tables
  python scripts/render_tables.py --check   # writes nothing; status 1 if a table is not what its source gives
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from _measured_tables import FROM_JSON, is_number
from _package_tables import FROM_PACKAGE

from owf_fairseq.files.lines import write_lines

ROOT = Path(__file__).resolve().parent.parent
MARKED = re.compile(
    r"(?P<start><!-- table: (?P<name>\S+) from (?P<source>[^,]+), made by: (?P<command>.+?) -->\n)"
    r"(?P<table>.*?)(?P<end><!-- end table -->)",
    re.DOTALL,
)
PACKAGE = "the package"


def documents() -> list[Path]:
    """The files whose tables are looked at."""
    return [ROOT / "README.md", ROOT / "configs/README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def rendered(text: str) -> str:
    """The document with every marked table as its source gives it.

    Raises:
        ValueError: a mark names what is not there.
    """

    def replace(match: re.Match[str]) -> str:
        return match["start"] + _render(match["name"], match["source"], match["command"]) + "\n" + match["end"]

    return MARKED.sub(replace, text)


def _render(name: str, source: str, command: str) -> str:
    if source == PACKAGE:
        if name not in FROM_PACKAGE:
            raise ValueError(f"table '{name}' of {PACKAGE}: there are {', '.join(FROM_PACKAGE)}")
        return FROM_PACKAGE[name](command)
    if name not in FROM_JSON:
        raise ValueError(f"table '{name}' from {source}: there are {', '.join(FROM_JSON)}")
    path = ROOT / source
    if not path.is_file():
        raise ValueError(f"table '{name}': {source} is not there")
    data = json.loads(path.read_text(encoding="utf-8"))
    made_by = data.get("made_by", command)
    if made_by != command:
        raise ValueError(f"{source} was made by `{made_by}`, and the comment above its table says `{command}`")
    return FROM_JSON[name](data)


def unmarked_tables(text: str) -> Iterator[str]:
    """The tables that have a number in a cell and no mark; of each its head."""
    outside = re.sub(r"^```.*?^```", "", MARKED.sub("", text), flags=re.DOTALL | re.MULTILINE)
    for match in re.finditer(r"(?:^[ ]*\|.*\n?)+", outside, re.MULTILINE):
        head, *rows = match[0].strip().splitlines()
        cells = [cell for row in rows[1:] for cell in row.strip().strip("|").split("|")]
        if any(is_number(cell) for cell in cells):
            yield head


def main(argv: list[str] | None = None) -> int:
    """Writes the tables, or checks them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; status 1 if a table is not up to date")
    args = parser.parse_args(argv)
    problems = []
    for path in documents():
        name, text = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
        problems += [f"{name}: no comment says what this table is made of: {head}" for head in unmarked_tables(text)]
        try:
            fresh = rendered(text)
        except ValueError as error:
            problems.append(f"{name}: {error}")
            continue
        if fresh != text and args.check:
            problems.append(f"{name}: a table is not what its source gives: run scripts/render_tables.py")
        elif fresh != text:
            write_lines(path, fresh.rstrip("\n").split("\n"))
            print(f"{name}: rendered")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
