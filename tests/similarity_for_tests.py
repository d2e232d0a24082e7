"""What the tests of `owf similarity` have in common."""

from __future__ import annotations

import contextlib
import io

from fairseq_for_tests import text_sentences

from owf_fairseq import cli

SENTENCES = [*dict.fromkeys(text_sentences(60, seed=7))][:40]
REFERENCES = [*dict.fromkeys(text_sentences(60, seed=8))][:40]
"""Other sentences: no model can take one for the other."""


def similarity(*arguments: object) -> tuple[int, str, str]:
    """Status, and what was printed and said."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = cli.main(["similarity", *map(str, arguments)])
    return status, out.getvalue(), err.getvalue()
