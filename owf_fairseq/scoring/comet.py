"""COMET (Rei et al., 2020): a model that scores each translation against its source and its reference."""

from __future__ import annotations

import hashlib
import importlib.metadata
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from owf_fairseq.errors import InputError
from owf_fairseq.scoring.quiet import quietly

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Score, Signature

DEFAULT_MODEL = "wmt20-comet-da"
"""The paper's (Section 3)."""


class CometModel:
    """A model that is ready to score.

    Args:
        model: COMET's.
        name: in signatures.
        checkpoint: its file.
        gpus: 0 or 1.
    """

    def __init__(self, model: Any, name: str, checkpoint: Path, gpus: int) -> None:
        self.model, self.name, self.checkpoint, self.gpus = model, name, checkpoint, gpus
        self.needs_references: bool = model.requires_references()
        self.version = importlib.metadata.version("unbabel-comet")

    def segment_scores(
        self,
        sources: Sequence[str],
        hypotheses: Sequence[str],
        references: Sequence[str] | None,
        advance: Callable[[int], None] | None = None,
    ) -> list[float]:
        """The score of every segment, about 0 to 1 in the models of today, unbounded in the paper's.

        Args:
            sources, hypotheses, references: line n belongs to line n; no references for a model that takes none.
            advance: is told how many more segments are done.

        Raises:
            InputError: a score is infinite or no number (NaN).
        """
        columns = {"src": sources, "mt": hypotheses} | ({} if references is None else {"ref": references})
        samples = [dict(zip(columns, texts, strict=True)) for texts in zip(*columns.values(), strict=True)]

        def count(outputs: Any, *_: Any) -> None:
            if advance is not None:
                advance(len(outputs["scores"]))

        # Lightning calls it after each batch. COMET's own cache of embeddings stays off: by its own comment it takes
        # one text for another at times.
        self.model.on_predict_batch_end = count
        with quietly():
            scores: list[float] = self.model.predict(samples, gpus=self.gpus, progress_bar=False)["scores"]
        wrong = next((number for number, score in enumerate(scores, 1) if not math.isfinite(score)), None)
        if wrong is not None:
            raise InputError(
                f"COMET's model {self.checkpoint} gives line {wrong} the score {scores[wrong - 1]}, which is none: its "
                "weights are damaged, or no result of a training that went well; get the model again"
            )
        return scores

    def facts(self) -> dict[str, Any]:
        """For JSON."""
        with open(self.checkpoint, "rb") as file:
            sha256 = hashlib.sha256()
            while block := file.read(1 << 22):
                sha256.update(block)
        return {
            "model": self.name,
            "file": str(self.checkpoint),
            "sha256": sha256.hexdigest(),
            "gpus": self.gpus,
            "uses_references": self.needs_references,
        }


class CometMetric:
    """COMET as one of sacreBLEU's metrics, so that the same bootstrap serves it.

    Its statistics of a segment are its score, the mean over the references where there are several, and 1; its score
    is 100 times their mean, as in the paper.

    Args:
        model: that scores.
        sources, references: of the test set.
        advance: is told how many more segments are scored against a reference.
    """

    def __init__(
        self,
        model: CometModel,
        sources: Sequence[str],
        references: Sequence[Sequence[str]],
        advance: Callable[[int], None] | None = None,
    ) -> None:
        self.model, self.sources, self.advance = model, sources, advance
        self.references: Sequence[Sequence[str] | None] = references if model.needs_references else [None]

    def _extract_corpus_statistics(self, hypotheses: Sequence[str], references: None = None) -> list[list[float]]:
        by_reference = [
            self.model.segment_scores(self.sources, hypotheses, lines, self.advance) for lines in self.references
        ]
        return [[sum(scores) / len(scores), 1.0] for scores in zip(*by_reference, strict=True)]

    def _aggregate_and_compute(self, stats: Sequence[Sequence[float]]) -> Score:
        return self._compute_score_from_stats([sum(column) for column in zip(*stats, strict=True)])

    def _compute_score_from_stats(self, stats: Sequence[float]) -> Score:
        from sacrebleu.metrics.base import Score

        return Score("COMET", 100 * float(stats[0]) / float(stats[1]))

    def get_signature(self) -> Signature:
        """In sacreBLEU's form; the version is COMET's."""
        from sacrebleu.metrics.base import Signature

        references = len(self.references) if self.model.needs_references else 0
        signature = Signature({"num_refs": references})
        signature.update("version", f"comet {self.model.version}")
        signature.update("model", self.model.name)
        if references > 1:
            signature.update("refs", "mean")
        return signature
