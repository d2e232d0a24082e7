"""The metrics: BLEU, chrF, spBLEU and COMET, each with the settings and the signature of the paper's setup.

The paper (Section 3) scores with sacreBLEU 2.3.1: BLEU ``case:mixed|eff:no|tok:13a|smooth:exp``, spBLEU the same with
``tok:flores101``, chrF ``case:mixed|eff:yes|nc:6|nw:0|space:no``; and with COMET's model ``wmt20-comet-da``.

A metric is what sacreBLEU calls one: it has statistics for every segment, and a score for their sum. That is what the
paired bootstrap resamples, and what makes a score of several test sets together well-defined.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from owf_fairseq.data.languages import short_code
from owf_fairseq.errors import InputError, collect
from owf_fairseq.scoring.comet import DEFAULT_MODEL, CometMetric, CometModel
from owf_fairseq.scoring.comet_checkpoint import find_model
from owf_fairseq.scoring.inputs import TestSet
from owf_fairseq.scoring.quiet import quietly, reason

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Signature

METRICS = {"bleu": "BLEU", "chrf": "chrF", "spbleu": "spBLEU", "comet": "COMET"}
"""What ``--metrics`` takes, and the name in a table."""

SPBLEU_TOKENIZER = "flores101"

# sacreBLEU's own choice for these three; 13a splits at spaces, which the others don't write between words.
_TOKENIZERS = {"zh": "zh", "ja": "ja-mecab", "ko": "ko-mecab"} | dict.fromkeys(("th", "lo", "km", "my", "bo"), "char")

Statistics = Sequence[Sequence[float]]
"""A row for each segment."""


class Metric(Protocol):
    """What is needed of a metric; sacreBLEU's have it."""

    def _extract_corpus_statistics(self, hypotheses: Sequence[str], references: None) -> Any: ...

    def _aggregate_and_compute(self, stats: Any) -> Any: ...

    def _compute_score_from_stats(self, stats: Any) -> Any: ...

    def get_signature(self) -> Signature: ...


@dataclass(frozen=True)
class MetricSettings:
    """What is measured, and how.

    Attributes:
        metrics: names from ``METRICS``.
        tokenize: sacreBLEU's tokenizer for BLEU; by default the target language's.
        comet_model: the name of a model, a checkpoint, or the folder of one.
        cpu: use no GPU for COMET; by default one is used if there is one.
        samples: of the bootstrap.
    """

    metrics: Sequence[str] = ("bleu", "chrf")
    tokenize: str | None = None
    comet_model: str = DEFAULT_MODEL
    cpu: bool = False
    samples: int = 1000


def bleu_tokenizer(language: str | None) -> str:
    """sacreBLEU's tokenizer for BLEU into a language, such as ``de``, ``zh_CN``, ``zho_Hans`` or ``jpn``."""
    return _TOKENIZERS.get(short_code(language or ""), "13a")


class Metrics:
    """The metrics of one evaluation: what they need is checked with the texts, and fetched when all is well.

    Args:
        settings: which.
    """

    def __init__(self, settings: MetricSettings) -> None:
        self.settings = settings
        self.names = list(dict.fromkeys(settings.metrics))
        self._comet: CometModel | None = None
        self._load_comet: Callable[[], CometModel] | None = None

    def check(self, languages: Iterable[str | None], has_source: bool) -> list[str]:
        """Looks for what can be told without the network.

        Args:
            languages: of the target sides.
            has_source: whether the source is given.

        Returns:
            The problems.
        """
        problems = [
            f"`--metrics` must be of {', '.join(METRICS)}, but is '{name}' (hypotheses go before the flags, or after "
            "`--`)"
            for name in self.names
            if name not in METRICS
        ]
        if self.settings.samples < 1:
            problems.append(f"`--samples` must be at least 1, but is {self.settings.samples}")
        problems += self._tokenizer_problems(languages, fetch=False)
        if "comet" in self.names:
            if not has_source:
                problems.append("`--metrics comet` needs `--src`, the source text: COMET scores against it as well")
            self._load_comet = collect(problems, lambda: find_model(self.settings.comet_model, self.settings.cpu))
        return problems

    def prepare(self, languages: Iterable[str | None], has_references: bool = True) -> None:
        """Fetches and loads what the metrics need, after `check` found no problem.

        Args:
            languages: of the target sides.
            has_references: whether there are any; only COMET's reference-free models do without.

        Raises:
            InputError: something can't be fetched or loaded, or needs references.
        """
        problems = self._tokenizer_problems(languages, fetch=True)
        if self._load_comet is not None:
            self._comet = collect(problems, self._load_comet)
            if self._comet is not None and self._comet.needs_references and not has_references:
                problems.append(f"`--comet-model` {self.settings.comet_model} scores against references: give `--ref`")
        if problems:
            raise InputError(problems)

    def bind(self, name: str, test_set: TestSet, advance: Callable[[int], None] | None = None) -> Metric:
        """A metric for one test set.

        Args:
            name: from ``METRICS``.
            test_set: its references are prepared once for all systems.
            advance: is told how many segments are done, by a metric that takes long.
        """
        references = [reference.lines for reference in test_set.references]
        if name == "comet":
            assert self._comet is not None
            assert test_set.source is not None
            return CometMetric(self._comet, test_set.source.lines, references, advance)
        from sacrebleu.metrics import BLEU, CHRF

        if name == "chrf":
            return CHRF(references=references)
        # force: sacreBLEU's own warning of tokenised text is ours (see checks.py), and changes no score
        return BLEU(tokenize=self._tokenizer(name, test_set.language), references=references, force=True)

    def facts(self, name: str) -> dict[str, Any]:
        """For JSON: what the signature does not say."""
        return self._comet.facts() if name == "comet" and self._comet is not None else {}

    def _tokenizer(self, name: str, language: str | None) -> str:
        return SPBLEU_TOKENIZER if name == "spbleu" else self.settings.tokenize or bleu_tokenizer(language)

    def _tokenizer_problems(self, languages: Iterable[str | None], *, fetch: bool) -> list[str]:
        """Tries every tokenizer that is needed once."""
        names = [name for name in self.names if name in ("bleu", "spbleu")]
        needed = {self._tokenizer(name, language): language for language in languages for name in names}
        problems = [_tokenizer_problem(tokenizer, language, fetch) for tokenizer, language in sorted(needed.items())]
        return [problem for problem in problems if problem]


def _tokenizer_problem(tokenizer: str, language: str | None, fetch: bool) -> str | None:
    """Tries a tokenizer; sacreBLEU fetches a SentencePiece model where one is needed, if ``fetch`` lets it."""
    from sacrebleu.metrics import BLEU
    from sacrebleu.tokenizers import tokenizer_spm

    if tokenizer not in BLEU.TOKENIZERS:
        return f"`--tokenize` must be of {', '.join(sorted(BLEU.TOKENIZERS))}, but is '{tokenizer}'"
    model = None
    if tokenizer in tokenizer_spm.SPM_MODELS:
        url = tokenizer_spm.SPM_MODELS[tokenizer]["url"]
        model = os.path.join(tokenizer_spm.SACREBLEU_DIR, "models", os.path.basename(url))
        if not fetch and not os.path.exists(model):
            return None
    try:
        with quietly():
            BLEU(tokenize=tokenizer)
    except Exception as error:  # of the network, of sentencepiece, of MeCab
        if model is not None:
            if os.path.exists(model):
                return (
                    f"sacreBLEU's tokenizer {tokenizer} can't be read ({reason(error)}): remove {model} and try again"
                )
            return (
                f"sacreBLEU's tokenizer {tokenizer} is not on this machine and can't be fetched ({reason(error)}): put "
                f"the file {url} to {model} (the environment variable SACREBLEU names another folder than "
                f"{tokenizer_spm.SACREBLEU_DIR})"
            )
        extra = tokenizer.split("-")[0]
        return (
            f"BLEU{f' for the language {language}' if language else ''} needs sacreBLEU's tokenizer {tokenizer}, which "
            f"is not installed: `pip install 'sacrebleu[{extra}]'`, or choose another one, `--tokenize char`"
        )
    return None
