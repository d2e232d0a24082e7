"""Decoding with a checkpoint of fairseq's task ``translation_multi_simple_epoch``, which translates in many directions.

The task tells a model the languages by tags, pieces such as ``__de__``. They are not in the text, and where they stand
is said by the flags of the training: ``--encoder-langtok src`` or ``tgt`` puts one before every source sentence,
``--decoder-langtok`` one before every target sentence, which decoding then begins with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from fairseq.data import Dictionary
from fairseq.data.multilingual.multilingual_utils import augment_dictionary, get_lang_tok

from owf_fairseq.checkpoints.stored_model import model_flags, read_model
from owf_fairseq.data.recorded import RecordedData, find_data
from owf_fairseq.data.segmentation import Segmentation
from owf_fairseq.decoding.fairseq_backend import FairseqBackend, choose_device
from owf_fairseq.decoding.search import Hypothesis, SearchOptions
from owf_fairseq.decoding.translator import Batching, Translator
from owf_fairseq.errors import InputError, collect
from owf_fairseq.files.job import Job
from owf_fairseq.files.lines import PathLike, read_lines, write_lines
from owf_fairseq.progress import Progress

TASK = "translation_multi_simple_epoch"


@dataclass(frozen=True)
class Tags:
    """Which languages a model knows, and where their tags stand.

    Attributes:
        langs: in the order of their tags in the dictionary.
        directions: that it was trained on, as ``de-en``.
        encoder: whose tag comes before a source sentence: ``src``, ``tgt``, or None for none.
        decoder: whether the target language's tag comes before a target sentence.
        style: fairseq's name for the spelling of tags.
    """

    langs: tuple[str, ...]
    directions: tuple[str, ...]
    encoder: str | None
    decoder: bool
    style: str

    @staticmethod
    def of_checkpoint(flags: Mapping[str, Any], file: str) -> Tags:
        """What the flags of a training say.

        Raises:
            InputError: it was another task, or its tags stand where this module does not put them.
        """
        if flags.get("task") != TASK:
            raise InputError(f"{file} is of the task '{flags.get('task')}', not of {TASK}: `owf translate` takes it")
        odd = [
            f"`--{name.replace('_', '-')}`"
            for name in ("lang_tok_replacing_bos_eos", "langtoks_specs", "extra_data", "lang_dict")
            if flags.get(name) not in (None, False, "main", ["main"])
        ]
        if odd:
            raise InputError(f"{file} was trained with {' and '.join(odd)}, which only fairseq itself knows")
        pairs = flags.get("lang_pairs") or []
        directions = tuple(pairs.split(",") if isinstance(pairs, str) else pairs)
        # as the task itself finds the languages that `--langs` does not name
        langs = flags.get("langs") or sorted({lang for direction in directions for lang in direction.split("-")})
        return Tags(
            tuple(langs),
            directions,
            flags.get("encoder_langtok"),
            bool(flags.get("decoder_langtok")),
            flags.get("lang_tok_style") or "multilingual",
        )

    def tag(self, lang: str) -> str:
        """As it is spelt."""
        spelt: str = get_lang_tok(lang, self.style)
        return spelt

    def before_source(self, source: str, target: str) -> list[str]:
        """What stands before the pieces of a source sentence: a tag, or nothing."""
        return [] if self.encoder is None else [self.tag(source if self.encoder == "src" else target)]


@dataclass(frozen=True)
class DirectionData(RecordedData):
    """Binary data, read for one direction: with the tags in the dictionaries and in the source's pieces.

    Attributes:
        tags: of the model.
    """

    tags: Tags

    def dictionaries(self) -> tuple[Dictionary, Dictionary]:
        """See ``RecordedData``."""
        found = super().dictionaries()
        for dictionary in found:
            # as the task does; tags that are there already stay where they are
            augment_dictionary(dictionary, list(self.tags.langs), self.tags.style)
        return found

    def segmentation(self, other: str | None = None) -> Segmentation:
        """See ``RecordedData``."""
        return TaggedSegmentation(super().segmentation(other), self)


class TaggedSegmentation(Segmentation):
    """Another segmentation, with a tag before the pieces of a source sentence.

    Args:
        inner: the other one.
        data: of the direction.
    """

    def __init__(self, inner: Segmentation, data: DirectionData) -> None:
        super().__init__(data.source, data.target)
        self.inner = inner
        self.before_source = data.tags.before_source(data.source, data.target)

    def pieces(self, line: str, lang: str) -> list[str]:
        return [*self.before_source, *self.inner.pieces(line, lang)]

    def decode(self, pieces: str) -> str:
        return self.inner.decode(pieces)


class MultilingualBackend(FairseqBackend):
    """A multilingual model, loaded once for all of its directions; ``choose`` says which it is to translate in.

    Translations that begin with a tag are given without it. It is part of their score, as in fairseq-generate: with its
    probability, and as a piece when that is divided by the length.
    """

    def __init__(self, *args: Any, tags: Tags, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.tags = tags
        self.target_tag: str | None = None
        # the tag takes one place of those that the model has
        self.max_target_length -= tags.decoder

    @classmethod
    def from_checkpoint(
        cls, checkpoints: str, data: PathLike | None = None, cpu: bool = False, fp16: bool = False, packed: bool = True
    ) -> MultilingualBackend:
        """Loads a checkpoint.

        Args:
            checkpoints: the path of one.
            data: the folder of its binary data, of several shards any; by default it is found, see ``find_data``.
            cpu, fp16: see ``choose_device``.
            packed: see ``FairseqBackend``.

        Raises:
            InputError: with all problems of the checkpoint and its data.
        """
        problems: list[str] = []
        device = collect(problems, lambda: choose_device(cpu, fp16))
        stored = read_model(checkpoints)
        tags = collect(problems, lambda: Tags.of_checkpoint(model_flags(stored.state), checkpoints))
        found = collect(problems, lambda: find_data(stored.state, checkpoints, data))
        if problems or device is None or tags is None or found is None:
            raise InputError(problems)
        recorded = DirectionData(found.folder, found.source, found.target, tags, fingerprint=found.fingerprint)
        source, target = recorded.joined_dictionaries()
        return cls([stored.build(source, target)], source, target, device, fp16, packed, recorded, tags=tags)

    def choose(self, direction: str) -> None:
        """Translates in a direction, such as ``de-en``, from now on.

        Raises:
            InputError: the model does not know both languages, or they are one.
        """
        source, _, target = direction.partition("-")
        if not {source, target} <= {*self.tags.langs} or source == target:
            known = ", ".join(self.tags.langs)
            raise InputError(f"there is no direction '{direction}': it has two of the languages {known}, as in de-en")
        assert self.data is not None
        self.target_tag = self.tags.tag(target) if self.tags.decoder else None
        self.data = replace(self.data, source=source, target=target)

    def search(self, batch: Sequence[Sequence[str]], options: SearchOptions) -> list[list[Hypothesis]]:
        """See ``search.Backend``."""
        if self.target_tag is None:
            return super().search(batch, options)
        longer = replace(options, max_len_b=options.max_len_b + 1, min_len=options.min_len + 1)
        return [
            [Hypothesis(one.pieces[1:], one.score, one.log_probability) for one in found]
            for found in super().search(batch, longer)
        ]

    def first_pieces(self) -> list[int]:
        """See ``FairseqBackend``: the target's tag, as fairseq's task gives it to the search."""
        return [] if self.target_tag is None else [self.target.index(self.target_tag)]


def translate_directions(
    backend: MultilingualBackend,
    texts: Mapping[str, PathLike],
    output: PathLike,
    directions: Sequence[str],
    options: SearchOptions | None = None,
    batching: Batching | None = None,
    jobs: Mapping[str, Job] | None = None,
) -> list[str]:
    """Translates a text that is there in several languages from each of them into each other one.

    Every direction's file, ``test.de-en.en`` in the folder ``output``, appears when it is complete. A file that is
    there is left as it is, so that a run that was interrupted goes on; unless the direction's job knows that it was
    made of other files.

    Args:
        backend: that translates.
        texts: a file for each language; line n of all files says the same.
        output: folder; it is made.
        directions: as ``de-en``.
        options: of the search.
        batching: of sentences.
        jobs: for each direction, what making its file is.

    Returns:
        The directions that were translated now.

    Raises:
        InputError: a text can't be read, the texts have different numbers of lines, or the model does not know a
            direction.
    """
    lines: dict[str, list[str]] = {}
    problems: list[str] = []
    for lang, path in texts.items():
        lines[lang] = collect(problems, partial(read_lines, path)) or []
    numbers = {lang: len(text) for lang, text in lines.items()}
    if not problems and len(set(numbers.values())) > 1:
        listed = ", ".join(f"{texts[lang]} has {number}" for lang, number in numbers.items())
        problems.append(f"line n of all texts must say the same, but their numbers of lines differ: {listed}")
    for direction in directions:
        collect(problems, partial(backend.choose, direction))
    paths = {one: file_of(direction=one, folder=output) for one in directions}
    todo = []
    for direction, path in paths.items():
        job = (jobs or {}).get(direction)
        if job is None or (path.exists() and not job.overwrite and not job.is_known()):
            there = path.exists()
        else:
            job.reads(backend.files())
            there = job.is_done(say=False)
            problems += [] if there else job.problems()
        todo += [] if there else [direction]
    if problems:
        raise InputError(problems)
    for direction in todo:
        path, source = paths[direction], direction.partition("-")[0]
        backend.choose(direction)
        with Progress("sentences", len(lines[source]), label=direction) as progress:
            translator = Translator(
                backend,
                backend.segmentation(),
                options or SearchOptions(),
                batching or Batching(),
                warn=progress.say,
                name=str(texts[source]),
            )
            write_lines(path, (best[0].text for best in translator.translate(lines[source], progress)))
        if jobs is not None:
            jobs[direction].note()
    return todo


def file_of(direction: str, folder: PathLike) -> Path:
    """The file of a direction's translations."""
    return Path(folder) / f"test.{direction}.{direction.partition('-')[2]}"
