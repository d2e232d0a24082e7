"""Which of a teacher's translations of a line a student learns from."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from owf_fairseq.errors import InputError
from owf_fairseq.scoring.metrics import Metrics, MetricSettings, bleu_tokenizer

METRICS = ("chrf", "bleu")
"""That say what is near."""

Score = Callable[[str, str], float]
"""How near a translation is to a reference, from 0 to 100."""


def sentence_metric(name: str, lang: str) -> Score:
    """sacreBLEU's score of a sentence.

    Args:
        name: one of ``METRICS``.
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


def pick(translations: Sequence[str], reference: str, score: Score) -> tuple[int, float, float]:
    """Picks the translation that is nearest to the reference; of equals the first.

    Returns:
        Its place, its score, and that of the first translation.
    """
    scores = [score(translation, reference) for translation in translations]
    best = max(range(len(scores)), key=lambda n: scores[n])  # the first of equals
    return best, scores[best], scores[0]
