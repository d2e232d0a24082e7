"""Which of a teacher's translations of a line a student learns from."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from owf_fairseq.data.work import Workers
from owf_fairseq.errors import InputError
from owf_fairseq.scoring.metrics import Metrics, MetricSettings, bleu_tokenizer

SENTENCE_METRICS = {"chrf": "chrF", "bleu": "BLEU"}
"""That say how near a translation is to a reference, and how reports call them."""

_CHUNK = 250
"""Lines that a process scores at a time: a second's work."""

Score = Callable[[str, str], float]
"""How near a translation is to a reference, from 0 to 100."""

LineToPick = tuple[Sequence[str], str]
"""The translations of a line, and its reference."""


class Picked(NamedTuple):
    """The place of a translation among those of its line, its score, and that of the first one."""

    place: int
    score: float
    first: float


@functools.cache
def sentence_metric(name: str, lang: str) -> Score:
    """sacreBLEU's score of a sentence.

    Args:
        name: one of ``SENTENCE_METRICS``.
        lang: target language.

    Raises:
        InputError: sacreBLEU's tokenizer for the language is not installed.
    """
    from sacrebleu.metrics import BLEU, CHRF

    problems = Metrics(MetricSettings(metrics=(name,))).check([lang], has_source=False)
    if problems:
        raise InputError(problems)
    # without effective order, a sentence without four words in a row that match has no BLEU to speak of
    metric = CHRF() if name == "chrf" else BLEU(tokenize=bleu_tokenizer(lang), effective_order=True)

    def score(translation: str, reference: str) -> float:
        return float(metric.sentence_score(translation, [reference]).score)

    return score


@dataclass(frozen=True)
class Picker:
    """Picks, of the translations of a line, the one that is nearest to its reference; of equals the first.

    Attributes:
        metric: one of ``SENTENCE_METRICS``.
        lang: target language.
        workers: that do it; few lines are not worth starting them.
    """

    metric: str
    lang: str
    workers: Workers

    def pick(self, rows: Sequence[LineToPick]) -> list[Picked]:
        """Picks for each of several lines."""
        chunks = [rows[start : start + _CHUNK] for start in range(0, len(rows), _CHUNK)]
        task = functools.partial(pick_some, self.metric, self.lang)
        return [picked for chunk in self.workers.map(task, chunks) for picked in chunk]


def pick_some(metric: str, lang: str, rows: Sequence[LineToPick]) -> list[Picked]:
    """Picks for each of several lines; see ``Picker``."""
    score = sentence_metric(metric, lang)
    found = []
    for translations, reference in rows:
        scores = [score(translation, reference) for translation in translations]
        best = scores.index(max(scores))  # the first of equals
        found.append(Picked(best, scores[best], scores[0]))
    return found
