"""What fairseq-generate printed, put back into the order of the test set and checked."""

from __future__ import annotations

import re
from dataclasses import dataclass

from owf_fairseq.data.lines import PathLike, read_lines
from owf_fairseq.errors import InputError

_TRANSLATED = re.compile(
    r"Translated ([\d,]+) sentences \(([\d,]+) tokens\) in ([\d.,]+)s \([\d.,]+ sentences/s, ([\d.,]+) tokens/s\)"
)


@dataclass(frozen=True)
class Generated:
    """The best hypothesis of every sentence.

    Attributes:
        hypotheses: in the order of the test set, as text.
        tokens: pieces of the hypotheses, without end-of-sentence symbols.
        seconds: that the search took, without loading the model and printing.
    """

    hypotheses: list[str]
    tokens: int
    seconds: float


def read_generated(path: PathLike, sentences: int, log: PathLike | None = None) -> Generated:
    """Read the standard output of fairseq-generate (with `--remove-bpe`, and one hypothesis a sentence).

    fairseq-generate writes in order of length. It loses sentences without a word if the size of its batches doesn't
    divide their number (see `--required-batch-size-multiple`), and metrics then compare the wrong lines: so every
    sentence must be there exactly once.

    Args:
        path: of the output.
        sentences: how many the test set has.
        log: where its standard error went: which of the two gets the summary depends on what else was imported.

    Raises:
        InputError: a sentence is missing, there twice or not in the test set; or the output is cut off.
    """
    hypotheses: dict[int, str] = {}
    repeated: list[int] = []
    summary = None
    for line in read_lines(path):
        if line.startswith("H-"):
            name, _, rest = line.partition("\t")
            number = int(name[len("H-") :])
            if number in hypotheses:
                repeated.append(number)
            hypotheses[number] = rest.partition("\t")[2]
        else:
            summary = _TRANSLATED.search(line) or summary
    for line in read_lines(log) if log is not None else ():
        summary = _TRANSLATED.search(line) or summary

    problems = []
    for what, numbers in [
        ("has no translation of", sorted(set(range(sentences)) - set(hypotheses))),
        ("has more than one translation of", sorted(set(repeated))),
        ("has translations that the test set doesn't, of", sorted(set(hypotheses) - set(range(sentences)))),
    ]:
        if numbers:
            listed = ", ".join(map(str, numbers[:5])) + (" ..." if len(numbers) > 5 else "")
            problems.append(f"{path} {what} {len(numbers)} of {sentences} sentences: {listed}")
    if summary is None:
        problems.append(f"{path} is cut off: fairseq-generate's summary (Translated ... sentences ...) is missing")
    if problems or summary is None:
        raise InputError(problems)
    _, printed_tokens, seconds, rate = (float(group.replace(",", "")) for group in summary.groups())
    return Generated(
        hypotheses=[hypotheses[number] for number in range(sentences)],
        # fairseq counts the end-of-sentence symbol of every hypothesis.
        tokens=int(printed_tokens) - sentences,
        # The rate has two decimals, the seconds one.
        seconds=printed_tokens / rate if rate else seconds,
    )
