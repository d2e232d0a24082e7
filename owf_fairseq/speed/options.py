"""What `owf benchmark` measures, and how."""

from __future__ import annotations

from dataclasses import dataclass

from owf_fairseq.errors import too_small
from owf_fairseq.sharing import LARGEST_VOCABULARY
from owf_fairseq.speed.benchmark_models import Candidate, Loading


@dataclass(frozen=True)
class BenchmarkOptions:
    """What is measured, and how.

    Attributes:
        lengths: pieces of source and target, for random sentences; not looked at with ``input``.
        input: a text file to translate.
        segmentation: how it is cut into pieces, if not as recorded, see ``RecordedData.segmentation``.
        sentences: how many: at least, of random ones, because batches are full (default 10); of the text, from its
            start (default all).
        batch_sizes: sentences that are decoded together.
        max_tokens: pieces of a batch, padding and end-of-sentence symbols included, in place of ``batch_sizes``.
        beam: of the search.
        runs, warmup: see ``speed.measure``.
        threads: of a search.
        vocab_size: of archs.
        data: the folder of checkpoints' binary data, if it is not where they were trained.
        memory: measure peak memory too.
        calibrate: measure the machine too.
        unpacked: names of the models whose matrices stay as they are, as fairseq leaves them; empty for all models,
            None for none of them.
        cpu, fp16: see ``Loading``.
        backend: see ``benchmark_names.with_backends``.
        baseline, by_size: what speeds are relative to, see ``baselines.choose``.
        shortlist: symbols that translations may have, for archs that CTranslate2 decodes; None for all. Exported models
            have their own shortlists.
        no_shortlist: names of the models that decode without; empty for all models, None for none of them.
        clients: numbers of clients that ask at the same time, see ``serving``; None for no such measurement.
    """

    lengths: tuple[tuple[int, int], ...] = ((26, 30),)
    input: str | None = None
    segmentation: str | None = None
    sentences: int | None = None
    batch_sizes: tuple[int, ...] = (1,)
    max_tokens: int | None = None
    beam: int = 5
    runs: int = 5
    warmup: int = 1
    threads: int = 1
    vocab_size: int = 32_000
    data: str | None = None
    memory: bool = False
    calibrate: bool = False
    cpu: bool = False
    fp16: bool = False
    unpacked: tuple[str, ...] | None = None
    backend: tuple[str, ...] = ()
    baseline: tuple[str, ...] = ()
    by_size: bool = False
    shortlist: int | None = None
    no_shortlist: tuple[str, ...] | None = None
    clients: tuple[int, ...] | None = None

    def loading(self, model: Candidate, searches: int = 1) -> Loading:
        """How a model is loaded, for so many searches at the same time."""
        left = self.unpacked is not None and (not self.unpacked or model.named.name in self.unpacked)
        without = self.no_shortlist is not None and (not self.no_shortlist or model.named.name in self.no_shortlist)
        return Loading(self.data, self.cpu, self.fp16, not left, self.threads, not without, searches)

    def problems(self) -> list[str]:
        """What is wrong with the numbers, a sentence each, naming the flags."""
        least = dict.fromkeys(["sentences", "max_tokens", "beam", "runs", "threads"], 1)
        least |= {"warmup": 0, "vocab_size": 5, "shortlist": 5}
        problems = [
            problem
            for name, smallest in least.items()
            for problem in too_small(f"--{name.replace('_', '-')}", getattr(self, name), smallest)
        ]
        problems += [
            f"`--clients` must be from 1 to 1,024, but one is {number:,}"
            for number in self.clients or ()
            if not 1 <= number <= 1_024
        ]
        most = {"threads": 1_024, "beam": 10_000, "vocab_size": LARGEST_VOCABULARY}
        problems += [
            f"`--{name.replace('_', '-')}` must be at most {largest:,}, but is {value:,}"
            for name, largest in most.items()
            if (value := getattr(self, name)) is not None and value > largest
        ]
        problems += [f"`--batch-sizes` must be at least 1, but one is {size}" for size in self.batch_sizes if size < 1]
        problems += [
            f"`--lengths` must be at least 1/1, but one is {source}/{target}"
            for source, target in self.lengths
            if min(source, target) < 1
        ]
        return problems
