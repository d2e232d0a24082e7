"""README.md and docs/ as the tests read them: their commands, and the marks above their tables."""

import re
import shlex
import sys
import textwrap

from fairseq_for_tests import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "scripts"))
import render_tables

TEXTS = {path.relative_to(REPOSITORY).as_posix(): path.read_text("utf-8") for path in render_tables.documents()}


def blocks(text, language):
    """The code blocks of a language, without their indentation."""
    found = re.findall(rf"^([ ]*)```{language}\n(.*?)^\1```", text, re.DOTALL | re.MULTILINE)
    return [textwrap.dedent(code) for _, code in found]


def commands(text):
    """The commands of the bash blocks, as words."""
    lines = [line for block in blocks(text, "bash") for line in block.replace("\\\n", " ").strip().split("\n")]
    return [words for words in (shlex.split(line, comments=True) for line in lines) if words]


def makers(text):
    """The commands that made the tables, as words."""
    return [shlex.split(match["command"]) for match in render_tables.MARKED.finditer(text)]
