"""Decoding with fairseq: a checkpoint, an ensemble of several, or an arch with random weights."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from fairseq.data import Dictionary, data_utils
from fairseq.models import ARCH_CONFIG_REGISTRY
from torch import Tensor

from owf_fairseq import compat
from owf_fairseq.checkpoints.stored_model import build_with_seed, read_model
from owf_fairseq.data.recorded import RecordedData, find_data
from owf_fairseq.data.segmentation import Segmentation
from owf_fairseq.decoding.forced import numbers
from owf_fairseq.decoding.generator import CappedEnsemble, CappedGenerator
from owf_fairseq.decoding.packed import pack
from owf_fairseq.decoding.search import Hypothesis, SearchOptions
from owf_fairseq.errors import InputError
from owf_fairseq.files.lines import PathLike
from owf_fairseq.model_names import checkpoints_of
from owf_fairseq.parameters import check_vocabulary, given_flags, unknown_arch
from owf_fairseq.sharing import ARCHS


class FairseqBackend:
    """A ``search.Backend`` that runs models in this process.

    Args:
        models: one, or several that decode together; their probabilities are averaged, as fairseq's ensembles do.
        source, target: dictionaries.
        device: where to decode, see ``choose_device``.
        fp16: decode in half precision.
        packed: lay matrices out for a CPU (see ``packed.py``); by default wherever it can be done.
        data: where the dictionaries come from; None for a model that was not trained.
    """

    name = "fairseq"

    def __init__(
        self,
        models: Sequence[Any],
        source: Dictionary,
        target: Dictionary,
        device: torch.device,
        fp16: bool = False,
        packed: bool = True,
        data: RecordedData | None = None,
    ) -> None:
        self.parameters = [sum(weight.numel() for weight in model.parameters()) for model in models]
        """Of each model, a shared tensor counted once."""
        self.packed = packed and device.type == "cpu" and compat.can_pack()
        self.models = [prepare_for_decoding(model, device, fp16, self.packed) for model in models]
        self.source = source
        self.target = target
        self.device = device
        self.precision = "float16" if fp16 else "float32"
        self.device_name = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
        self.data = data
        # both count the end-of-sentence symbol
        self.max_source_length: int = min(model.max_positions()[0] for model in self.models) - 1
        self.max_target_length: int = min(model.max_decoder_positions() for model in self.models) - 1

    @classmethod
    def from_checkpoint(
        cls,
        checkpoints: str,
        data: PathLike | None = None,
        cpu: bool = False,
        fp16: bool = False,
        packed: bool = True,
    ) -> FairseqBackend:
        """Loads a checkpoint.

        Args:
            checkpoints: a path; several with ``:`` between, as in fairseq's ``--path``, for an ensemble.
            data: the folder with their dictionaries; by default it is found, see ``find_data``.
            cpu, fp16: see ``choose_device``.
            packed: see the class.

        Raises:
            InputError: with all problems of all checkpoints.
        """
        problems: list[str] = []
        models, found = [], []
        try:
            device = choose_device(cpu, fp16)
        except InputError as error:
            problems += error.problems
        for path in checkpoints_of(checkpoints):
            try:
                stored = read_model(path)
                recorded = find_data(stored.state, path, data)
                source, target = recorded.joined_dictionaries()
                models.append(stored.build(source, target))
                found.append((recorded, source, target))
            except InputError as error:
                problems += error.problems
        problems += [
            f"{one.folder} and {found[0][0].folder} have different dictionaries: their models can't decode together"
            for one, *dictionaries in found
            if [dictionary.symbols for dictionary in dictionaries] != [found[0][1].symbols, found[0][2].symbols]
        ]
        if problems:
            raise InputError(problems)
        recorded, source, target = found[0]
        return cls(models, source, target, device, fp16, packed, recorded)

    @classmethod
    def from_arch(
        cls,
        arch: str,
        vocab_size: int = 32_000,
        flags: Sequence[str] = (),
        cpu: bool = False,
        fp16: bool = False,
        packed: bool = True,
        seed: int = 1,
    ) -> FairseqBackend:
        """A model with random weights and one matrix of embeddings, to measure speed with.

        Args:
            arch: its name.
            vocab_size: of both languages, special symbols included.
            flags: fairseq's flags of the model and ours, as typed.
            cpu, fp16: see ``choose_device``.
            packed: see the class.
            seed: of the weights.

        Raises:
            InputError: there is no such arch or flag, or these flags describe no model.
        """
        if arch not in ARCHS:
            raise InputError(unknown_arch(arch))
        check_vocabulary(vocab_size)
        device = choose_device(cpu, fp16)
        dictionary = Dictionary()
        for number in range(vocab_size - len(dictionary)):
            dictionary.add_symbol(f"w{number}")
        embeddings = {"share_all_embeddings": True, "share_decoder_input_output_embed": True}
        args = argparse.Namespace(**{**embeddings, **given_flags(arch, flags), "arch": arch})
        ARCH_CONFIG_REGISTRY[arch](args)
        model = build_with_seed(args, dictionary, dictionary, seed)
        return cls([model], dictionary, dictionary, device, fp16, packed)

    @property
    def source_symbols(self) -> list[str]:
        """The pieces of the source vocabulary, special symbols aside."""
        symbols: list[str] = self.source.symbols[self.source.nspecial :]
        return symbols

    def segmentation(self, other: str | None = None) -> Segmentation:
        """See ``search.Backend``."""
        if self.data is None:
            raise InputError("a model with random weights has no data, and so no segmentation for text")
        return self.data.segmentation(other)

    def files(self, other: str | None = None) -> list[Path]:
        """See ``search.Backend``."""
        return [] if self.data is None else self.data.files(other)

    @torch.inference_mode()
    def search(self, batch: Sequence[Sequence[str]], options: SearchOptions) -> list[list[Hypothesis]]:
        """See ``search.Backend``."""
        sources = [numbers(self.source, pieces) for pieces in batch]
        tokens = data_utils.collate_tokens(sources, self.source.pad(), self.source.eos(), left_pad=True)
        lengths = torch.tensor([len(source) for source in sources])

        def cap(pieces: int) -> int:
            return min(options.cap(pieces), self.max_target_length)

        # fairseq has no more beams than symbols that it can choose
        beam = min(options.beam, len(self.target) - 1)
        generator = CappedGenerator(
            CappedEnsemble(self.models, self.target.eos(), cap, beam),
            self.target,
            beam_size=beam,
            max_len_a=0,
            max_len_b=cap(int(lengths.max()) - 1),
            min_len=min(options.min_len, self.max_target_length),
            len_penalty=options.lenpen,
        )
        net_input = {"src_tokens": tokens.to(self.device), "src_lengths": lengths.to(self.device)}
        start = self.first_pieces()
        prefix = torch.tensor([start] * len(batch), device=self.device) if start else None
        found = generator.generate(self.models, {"net_input": net_input}, prefix_tokens=prefix)
        return [[self._hypothesis(one) for one in sentence[: options.nbest]] for sentence in found]

    def first_pieces(self) -> list[int]:
        """The numbers of what every translation has to begin with."""
        return []

    def synchronize(self) -> None:
        """See ``search.Backend``."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def _hypothesis(self, found: dict[str, Tensor]) -> Hypothesis:
        return Hypothesis(
            pieces=tuple(self.target[number] for number in found["tokens"].tolist()[:-1]),
            score=float(found["score"]),
            log_probability=float(found["positional_scores"].sum()),
        )


def choose_device(cpu: bool, fp16: bool) -> torch.device:
    """The GPU if there is one and ``cpu`` does not forbid it.

    Raises:
        InputError: half precision is asked for on the CPU, where it is slower and fairseq does not support it.
    """
    device = torch.device("cuda" if torch.cuda.is_available() and not cpu else "cpu")
    if fp16 and device.type == "cpu":
        why = "`--cpu` is given" if cpu else "torch sees none"
        raise InputError(f"`--fp16` needs a GPU, but {why}: leave out `--fp16`")
    return device


def prepare_for_decoding(model: Any, device: torch.device, fp16: bool, packed: bool) -> Any:
    """The model on the device, in eval mode, without what only training needs."""
    if fp16:
        model.half()
    model.to(device).eval()
    model.make_generation_fast_(need_attn=False)
    if packed:
        pack(model)
    return model
