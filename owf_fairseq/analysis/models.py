"""The models of an analysis: what they are, told before anything is computed, and what they make of sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from owf_fairseq.analysis.representations import Stack, TokenPair, represent
from owf_fairseq.analysis.settings import AnalysisSettings
from owf_fairseq.checkpoints.checkpoint import read_checkpoint
from owf_fairseq.checkpoints.model_facts import facts_of_stored
from owf_fairseq.checkpoints.stored_model import build_with_seed, describe_state, model_flags, seed_of
from owf_fairseq.data.recorded import RecordedData, find_data
from owf_fairseq.decoding.fairseq_backend import choose_device
from owf_fairseq.decoding.forced import numbers
from owf_fairseq.decoding.multilingual import TASK as MULTILINGUAL
from owf_fairseq.errors import InputError
from owf_fairseq.progress import Progress

BASELINE, BENCHMARK, COMPARED, RANDOM = ROLES = ("baseline", "benchmark", "compared", "random")
"""What a model is for: all others are compared with the baseline; benchmarks are the baseline with other seeds, whose
similarity counts as 100 %; a model with the baseline's architecture and random weights is the lower bound."""

RANDOM_NAME = "random weights"


@dataclass(frozen=True)
class Model:
    """A model of the analysis.

    Attributes:
        name: in tables.
        checkpoint: the path; of the random model, the baseline's.
        role: one of ``ROLES``.
        facts: of it, for JSON.
        data: with its dictionaries.
        dimensions: d_model, the larger one where the stacks differ.
        longest: source and target that it takes, without end-of-sentence symbols.
        pairs: the test set as it reads it.
    """

    name: str
    checkpoint: str
    role: str
    facts: dict[str, Any]
    data: RecordedData
    dimensions: int
    longest: tuple[int, int]
    pairs: list[TokenPair]

    @property
    def seed(self) -> int | None:
        """What its training began with; None if the checkpoint doesn't say."""
        seed: int | None = self.facts["seed"]
        return seed

    def load(self, settings: AnalysisSettings) -> Any:
        """The model, in eval mode, on the GPU or CPU.

        Raises:
            InputError: it can't be loaded.
        """
        source, target = self.data.joined_dictionaries()
        stored = describe_state(read_checkpoint(self.checkpoint), self.checkpoint)
        if self.role == RANDOM:
            assert self.seed is not None
            model = build_with_seed(stored.args, source, target, self.seed).eval()
        else:
            model = stored.build(source, target)
        return model.to(choose_device(settings.cpu, fp16=False))

    def represent(self, settings: AnalysisSettings) -> dict[str, Stack]:
        """The representations of the test set, see ``representations.represent``.

        Raises:
            InputError: they are no numbers: the training has diverged.
        """
        model = self.load(settings)
        with Progress("sentences", len(self.pairs), label=self.name) as progress:
            found = represent(
                model,
                self.data.joined_dictionaries(),
                self.pairs,
                capture=settings.capture,
                with_eos=settings.eos,
                max_tokens=settings.max_tokens,
                progress=progress,
            )
        for stack, components in found.items():
            for label, features in components.components.items():
                if not features.isfinite().all():
                    raise InputError(
                        f"{self.checkpoint}: what {stack}.{label} makes of some sentences is infinite or no number "
                        "(NaN); did its training diverge?"
                    )
        return found


def read(name: str, path: str, role: str, lines: Sequence[tuple[str, str]], settings: AnalysisSettings) -> Model:
    """A model that was named, with the test set as it reads it; its weights stay on the disk.

    Args:
        name, role: see ``Model``.
        path: of a checkpoint.
        lines: source and target of the test set.
        settings: of the analysis.

    Raises:
        InputError: with every problem of the model.
    """
    stored = describe_state(read_checkpoint(path, read_tensors=False), path)
    stored.check()
    if model_flags(stored.state).get("task") == MULTILINGUAL:
        raise InputError(f"{path} is of the task {MULTILINGUAL}, whose language tags `owf similarity` does not know")
    data = find_data(stored.state, path, settings.data)
    dictionaries, segmentation = data.joined_dictionaries(), data.segmentation(settings.segmentation)
    stored.check_dictionaries(*dictionaries)
    langs = (segmentation.source, segmentation.target)
    pairs = []
    for line in lines:
        one, other = (
            numbers(dictionary, segmentation.encode(text, lang).split())
            for dictionary, text, lang in zip(dictionaries, line, langs, strict=True)
        )
        pairs.append((one, other))
    skeleton = stored.skeleton
    return Model(
        name,
        path,
        role,
        {
            "name": name,
            "checkpoint": path,
            **facts_of_stored([stored]).as_json(),
            "seed": seed_of(stored.state),
            "langs": [data.source, data.target],
        },
        data,
        max(stored.args.encoder_embed_dim, stored.args.decoder_embed_dim),
        # both count the end-of-sentence symbol
        (skeleton.max_positions()[0] - 1, skeleton.max_decoder_positions() - 1),
        pairs,
    )
