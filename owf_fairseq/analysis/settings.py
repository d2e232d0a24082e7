"""How representations are made and compared."""

from __future__ import annotations

from dataclasses import dataclass

from owf_fairseq.errors import too_small

SUBLAYER, MODULE = CAPTURES = ("sublayer", "module")
"""What is taken of a component: what goes on to the next one, after the residual connection and (post-norm) the layer
norm; or the attention's or FFN's own output, before both. The paper does not say which it is."""


@dataclass(frozen=True)
class AnalysisSettings:
    """What can be chosen.

    Attributes:
        capture: see ``CAPTURES``.
        eos: count end-of-sentence symbols as tokens.
        debiased: the estimator of CKA.
        k: neighbours of a sentence for LNS; None for ``lns.neighborhood_size``.
        sentences: of the test set, from its start; None for all.
        max_tokens: of a batch.
        seed: of the random weights; None for one that no model here began with.
        data, segmentation: the folder of the binary data, and how text becomes pieces, if not as recorded; see
            ``find_data`` and ``RecordedData.segmentation``.
        cpu: use no GPU.
    """

    capture: str = SUBLAYER
    eos: bool = True
    debiased: bool = False
    k: int | None = None
    sentences: int | None = None
    max_tokens: int = 4000
    seed: int | None = None
    data: str | None = None
    segmentation: str | None = None
    cpu: bool = False

    def problems(self) -> list[str]:
        """What is wrong with the values, a sentence each, naming the flags."""
        least = [("--k", self.k, 1), ("--sentences", self.sentences, 2), ("--max-tokens", self.max_tokens, 1)]
        problems = [problem for each in least for problem in too_small(*each)]
        if self.seed is not None and not 0 <= self.seed < 2**31:
            problems.append(f"`--seed` must be from 0 to {2**31 - 1}, but is {self.seed}")
        if self.capture not in CAPTURES:
            problems.append(f"`--capture` must be {' or '.join(CAPTURES)}, but is '{self.capture}'")
        return problems
