"""The configurations that the paper names, the sizes, and the named architectures that the two make.

Pure Python: nothing here knows torch or fairseq.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from owf_fairseq.errors import InputError
from owf_fairseq.patterns import Pattern, make_pattern


@dataclass(frozen=True)
class Configuration:
    """One of the paper's configurations: what differs from the vanilla Transformer.

    Attributes:
        flags: our flags (without dashes) and their values.
        paper: the name that the paper uses.
        wide: the FFN is widened to d_ff' = (N_enc + N_dec) * d_ff (paper, Section 2.2).
    """

    paper: str
    flags: dict[str, str | bool] = field(default_factory=dict)
    wide: bool = False

    def shares_ffn(self, stack: str) -> bool:
        """Whether layers of a stack, ``encoder`` or ``decoder``, have an FFN in common."""
        numbers = [number for number in self._ffn(stack) if number is not None]
        return len(set(numbers)) < len(numbers)

    def has_own_ffns(self, stack: str) -> bool:
        """Whether every layer of a stack has an FFN of its own."""
        numbers = self._ffn(stack)
        return None not in numbers and len(set(numbers)) == len(numbers)

    def _ffn(self, stack: str) -> Pattern:
        return make_pattern(str(self.flags.get(f"{stack}_ffn", "individual")), 6)  # as many layers as the paper has


def _ffn(encoder: str = "individual", decoder: str = "individual") -> dict[str, str | bool]:
    return {"encoder_ffn": encoder, "decoder_ffn": decoder}


def _attention(encoder: str, decoder: str, cross: str) -> dict[str, str | bool]:
    return {"encoder_self_attn": encoder, "decoder_self_attn": decoder, "decoder_cross_attn": cross}


# The names are those of the archs, the config files and the tables.
CONFIGURATIONS: dict[str, Configuration] = {
    "individual": Configuration("Transformer"),
    "shared_enc": Configuration("SharedEnc", _ffn("shared")),
    "shared_dec": Configuration("SharedDec", _ffn(decoder="shared")),
    "shared_enc_shared_dec": Configuration("SharedEncSharedDec", _ffn("shared", "shared")),
    "shared_enc_dec": Configuration("SharedEncDec", {**_ffn("shared", "shared"), "share_encoder_decoder_ffn": True}),
    "no_enc": Configuration("NoEnc", _ffn("none")),
    "no_dec": Configuration("NoDec", _ffn(decoder="none")),
    "no_enc_no_dec": Configuration("NoEncNoDec", _ffn("none", "none")),
    "shared_enc_no_dec": Configuration("SharedEncNoDec", _ffn("shared", "none")),
    "no_enc_shared_dec": Configuration("NoEncSharedDec", _ffn("none", "shared")),
    "one_wide_ffn": Configuration("One Wide FFN", _ffn("shared", "none"), wide=True),
    "sequence_2": Configuration("Sequence M=2", _ffn("sequence-2")),
    "sequence_3": Configuration("Sequence M=3", _ffn("sequence-3")),
    "cycle_2": Configuration("Cycle M=2", _ffn("cycle-2")),
    "cycle_3": Configuration("Cycle M=3", _ffn("cycle-3")),
    "cycle_rev_2": Configuration("Cycle Rev M=2", _ffn("cycle-rev-2")),
    "cycle_rev_3": Configuration("Cycle Rev M=3", _ffn("cycle-rev-3")),
    # encoder self-attention, decoder self-attention, cross-attention: s(hared) or i(ndividual)
    "attention_sss": Configuration("enc self shared, dec self shared, cross shared", _attention(*["shared"] * 3)),
    "attention_ssi": Configuration(
        "enc self shared, dec self shared, cross individual", _attention("shared", "shared", "individual")
    ),
    "attention_sii": Configuration(
        "enc self shared, dec self individual, cross individual", _attention("shared", "individual", "individual")
    ),
    "attention_isi": Configuration(
        "enc self individual, dec self shared, cross individual", _attention("individual", "shared", "individual")
    ),
    "attention_iss": Configuration(
        "enc self individual, dec self shared, cross shared", _attention("individual", "shared", "shared")
    ),
    "attention_iis": Configuration(
        "enc self individual, dec self individual, cross shared", _attention("individual", "individual", "shared")
    ),
}

# "For decoder-only models, only SharedDec and NoDec configurations are defined" (paper, Section 3).
DECODER_ONLY_CONFIGURATIONS: dict[str, Configuration] = {
    "individual": Configuration("Transformer"),
    "shared_dec": Configuration("SharedDec", {"decoder_ffn": "shared"}),
    "no_dec": Configuration("NoDec", {"decoder_ffn": "none"}),
    "one_wide_ffn": Configuration("One Wide FFN", {"decoder_ffn": "shared"}, wide=True),
}


@dataclass(frozen=True)
class Size:
    """A named size: numbers only.

    Attributes:
        encoder_layers, decoder_layers: N_enc and N_dec. A decoder-only model has no encoder layers.
        embed_dim: d_model. ffn_dim: d_ff, of each FFN of the individual model. heads: attention heads.
    """

    encoder_layers: int
    decoder_layers: int
    embed_dim: int
    ffn_dim: int
    heads: int

    @property
    def stacks(self) -> tuple[str, ...]:
        """The stacks that have layers; the first has the wide FFN of a One Wide FFN model."""
        return ("encoder", "decoder") if self.encoder_layers else ("decoder",)

    @property
    def configurations(self) -> dict[str, Configuration]:
        """What there is for such a model."""
        return CONFIGURATIONS if self.encoder_layers else DECODER_ONLY_CONFIGURATIONS

    @property
    def wide_ffn_dim(self) -> int:
        """d_ff' of the One Wide FFN of this size."""
        return wide_ffn_dim(self.ffn_dim, self.encoder_layers, self.decoder_layers)


LARGEST_VOCABULARY = 2**24
"""Symbols of a dictionary, for which it is still a model."""

SIZES: dict[str, Size] = {
    "tiny": Size(6, 6, 64, 128, 2),
    "small": Size(2, 2, 128, 256, 4),
    "base": Size(6, 6, 512, 2048, 8),
    "big": Size(6, 6, 1024, 4096, 16),
    "deep_shallow": Size(12, 2, 1024, 4096, 16),
    "iwslt": Size(6, 6, 512, 1024, 4),  # fairseq's transformer_iwslt_de_en
    "multi30k": Size(4, 4, 128, 256, 4),  # "Transformer-Tiny" of Wu et al. (2021), for Multi30k's captions
    "student_tiny": Size(6, 2, 256, 1536, 8),
    "student_base": Size(6, 2, 512, 2048, 8),
    "decoder_only": Size(0, 12, 1024, 4096, 16),
    "decoder_only_tiny": Size(0, 6, 64, 128, 2),
    "decoder_only_small": Size(0, 4, 128, 256, 4),
}


def arch_name(size: str, configuration: str) -> str:
    """``owf_<size>``, or ``owf_<size>_<configuration>``: the individual model has no second name."""
    return f"owf_{size}" if configuration == "individual" else f"owf_{size}_{configuration}"


def _fits(size: Size, configuration: Configuration) -> bool:
    """Whether the layers allow it, and it is not the individual model again (2 blocks for 2 layers)."""
    layers = {"encoder": size.encoder_layers, "decoder": size.decoder_layers}
    try:
        patterns = [
            make_pattern(value, layers[flag.split("_")[0]])
            for flag, value in configuration.flags.items()
            if isinstance(value, str)
        ]
    except InputError:
        return False
    return not patterns or any(None in pattern or len(set(pattern)) < len(pattern) for pattern in patterns)


# Every named architecture: its size and its configuration, where the layers allow it (3 blocks do not fit 2 layers).
ARCHS: dict[str, tuple[str, str]] = {
    arch_name(size, configuration): (size, configuration)
    for size, numbers in SIZES.items()
    for configuration in numbers.configurations
    if _fits(numbers, numbers.configurations[configuration])
}


def configuration_of(arch: str) -> Configuration:
    """The configuration of a named architecture."""
    size, configuration = ARCHS[arch]
    return SIZES[size].configurations[configuration]


def is_decoder_only(arch: str) -> bool:
    """Whether a named architecture has one stack."""
    return not SIZES[ARCHS[arch][0]].encoder_layers


def wide_ffn_dim(ffn_dim: int, encoder_layers: int, decoder_layers: int) -> int:
    """d_ff' = (N_enc + N_dec) * d_ff, the width of the One Wide FFN (paper, Section 2.2)."""
    return (encoder_layers + decoder_layers) * ffn_dim
