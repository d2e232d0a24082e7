"""The encoder-decoder model ``owf_transformer``: fairseq's Transformer with blocks laid out by patterns."""

from __future__ import annotations

import difflib
from argparse import ArgumentParser, Namespace
from typing import Any

from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import register_model
from fairseq.models.transformer import (
    TransformerConfig,
    TransformerDecoderBase,
    TransformerEncoderBase,
    TransformerModel,
)
from fairseq.models.transformer.transformer_legacy import base_architecture
from fairseq.modules import MultiheadAttention
from fairseq.modules.checkpoint_activations import checkpoint_wrapper
from torch import Tensor, nn

from owf_fairseq import compat
from owf_fairseq.errors import InputError
from owf_fairseq.flags import DECODER_ONLY_DEFAULTS, FLAG_DEFAULTS, LIST_FLAGS, SharingFlags, as_text
from owf_fairseq.models.tied_weights import fill_in, store_once
from owf_fairseq.modules.attention import (
    IncrementalState,
    attention_in_order,
    make_cross_attention,
    make_self_attention,
)
from owf_fairseq.modules.feed_forward import feed_forward_in_order, make_feed_forward
from owf_fairseq.modules.transformer_layer import TransformerDecoderLayer, TransformerEncoderLayer
from owf_fairseq.plan import Plan, make_plan


class LayerBlocks:
    """The blocks of a model while it is built: each iterator gives the next layer's.

    A block is made when the first layer that uses it is built, which is fairseq's order: with the same seed the
    individual model gets the weights that fairseq's own would.

    Args:
        cfg: fairseq's TransformerConfig.
        plan: which block every layer uses.
        attention: what the decoder's self-attention is made of.
    """

    def __init__(
        self, cfg: TransformerConfig, plan: Plan, attention: type[MultiheadAttention] = MultiheadAttention
    ) -> None:
        self.ffn = feed_forward_in_order(
            plan.ffn,
            lambda layer: make_feed_forward(
                cfg, cfg.encoder if layer < cfg.encoder.layers else cfg.decoder, plan.ffn_widths[layer]
            ),
            plan.per_layer,
        )
        self.encoder_self_attn = attention_in_order(
            plan.encoder_self_attn, lambda: make_self_attention(cfg, cfg.encoder)
        )
        self.decoder_self_attn = attention_in_order(
            plan.decoder_self_attn, lambda: make_self_attention(cfg, cfg.decoder, attention)
        )
        self.decoder_cross_attn = attention_in_order(plan.decoder_cross_attn, lambda: make_cross_attention(cfg))


def maybe_checkpointed(layer: nn.Module, cfg: TransformerConfig) -> nn.Module:
    """The layer, wrapped if ``--checkpoint-activations`` asks for it."""
    return checkpoint_wrapper(layer, offload_to_cpu=cfg.offload_activations) if cfg.checkpoint_activations else layer


class TransformerEncoder(TransformerEncoderBase):
    """fairseq's encoder with our layers.

    Args:
        cfg, dictionary, embed_tokens: as in fairseq.
        blocks: what the layers are handed.
    """

    def __init__(self, cfg: TransformerConfig, dictionary: Any, embed_tokens: nn.Module, blocks: LayerBlocks) -> None:
        self._blocks: LayerBlocks | None = blocks  # fairseq's constructor builds the layers
        super().__init__(cfg, dictionary, embed_tokens)
        self._blocks = None

    def build_encoder_layer(self, cfg: TransformerConfig) -> nn.Module:
        assert self._blocks is not None
        layer = TransformerEncoderLayer(
            cfg, self_attn=next(self._blocks.encoder_self_attn), feed_forward=next(self._blocks.ffn)
        )
        return maybe_checkpointed(layer, cfg)


class TransformerDecoder(TransformerDecoderBase):
    """fairseq's decoder with our layers.

    Args:
        cfg, dictionary, embed_tokens, no_encoder_attn: as in fairseq.
        blocks: what the layers are handed.
    """

    def __init__(
        self,
        cfg: TransformerConfig,
        dictionary: Any,
        embed_tokens: nn.Module,
        blocks: LayerBlocks,
        no_encoder_attn: bool = False,
    ) -> None:
        self._blocks: LayerBlocks | None = blocks
        super().__init__(cfg, dictionary, embed_tokens, no_encoder_attn=no_encoder_attn)
        self._blocks = None

    def build_decoder_layer(self, cfg: TransformerConfig, no_encoder_attn: bool = False) -> nn.Module:
        assert self._blocks is not None
        layer = TransformerDecoderLayer(
            cfg,
            self_attn=next(self._blocks.decoder_self_attn),
            encoder_attn=None if no_encoder_attn else next(self._blocks.decoder_cross_attn),
            feed_forward=next(self._blocks.ffn),
        )
        return maybe_checkpointed(layer, cfg)

    def extract_features(
        self,
        prev_output_tokens: Tensor,
        encoder_out: dict[str, list[Tensor]] | None,
        incremental_state: IncrementalState | None = None,
        full_context_alignment: bool = False,
        alignment_layer: int | None = None,
        alignment_heads: int | None = None,
    ) -> Any:
        """fairseq's; the attention weights are by default those of the last layer that has cross-attention."""
        if alignment_layer is None:
            # layers by number: to iterate over them draws from them, with `--decoder-layerdrop`
            from_last = reversed(range(len(self.layers)))
            alignment_layer = next(
                (number for number in from_last if self.layers[number].encoder_attn is not None), None
            )
        return super().extract_features(
            prev_output_tokens, encoder_out, incremental_state, full_context_alignment, alignment_layer, alignment_heads
        )


class SharingModel(TransformerModel):
    """What all our models have in common: flags, blocks laid out by patterns, and shared tensors stored once."""

    flags: type[SharingFlags] = SharingFlags
    """Our flags on top of fairseq's."""

    attention: type[MultiheadAttention] = MultiheadAttention
    """Of the decoder's self-attention."""

    decoder_only = False
    """Whether there is one stack."""

    def __init__(self, cfg: TransformerConfig, encoder: Any, decoder: Any) -> None:
        super().__init__(cfg, encoder, decoder)
        self._register_state_dict_hook(store_once)

    def load_state_dict(self, state_dict: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """fairseq's, for a state dict that has each shared tensor under one name or more.

        Raises:
            InputError: what is one weight here has different values in the state dict.
        """
        return super().load_state_dict(fill_in(self, state_dict), *args, **kwargs)

    @classmethod
    def add_args(cls, parser: ArgumentParser) -> None:
        super().add_args(parser)
        gen_parser_from_dataclass(parser, cls.flags(), delete_default=True)

    @classmethod
    def build_model(cls, args: Namespace | Any, task: Any) -> SharingModel:
        """Builds the model that the flags describe.

        Raises:
            InputError: with every problem of the flags at once.
        """
        given = compat.as_namespace(args)
        if given is not args:
            refuse_unknown_keys(cls, given)
        args = given
        args.decoder_only = cls.decoder_only
        set_defaults(args)
        plan = make_plan(args)
        cfg = TransformerConfig.from_namespace(args)
        # fairseq builds the two stacks in two class methods that see nothing in common but the configuration
        cfg.layer_blocks = LayerBlocks(cfg, plan, cls.attention)
        try:
            return super().build_model(cfg, task)
        finally:
            del cfg.layer_blocks


@register_model("owf_transformer")
class OwfTransformerModel(SharingModel):
    """Transformer whose FFNs and attention are individual, shared or dropped, layer by layer.

    Everything that the patterns do not speak of is fairseq's: flags, embeddings, the forward pass of the stacks.
    """

    @classmethod
    def build_encoder(cls, cfg: TransformerConfig, src_dict: Any, embed_tokens: nn.Module) -> TransformerEncoder:
        return TransformerEncoder(cfg, src_dict, embed_tokens, cfg.layer_blocks)

    @classmethod
    def build_decoder(cls, cfg: TransformerConfig, tgt_dict: Any, embed_tokens: nn.Module) -> TransformerDecoder:
        return TransformerDecoder(cfg, tgt_dict, embed_tokens, cfg.layer_blocks, no_encoder_attn=cfg.no_cross_attention)


def refuse_unknown_keys(model: type[SharingModel], args: Namespace) -> None:
    """Checks the keys of a config file: fairseq-hydra-train does not, for models like fairseq's own transformer.

    Raises:
        InputError: with every key that is no flag of the model.
    """
    parser = ArgumentParser(add_help=False)
    model.add_args(parser)
    defaults = Namespace()
    set_defaults(defaults)
    known = {action.dest for action in parser._actions} | set(vars(defaults))
    unknown = [name for name in vars(args) if name not in known and name != "_name"]
    if unknown:
        near = [difflib.get_close_matches(name, known, n=1) for name in unknown]
        raise InputError(
            f"`{name}` under `model` is not a flag of the model" + (f"; did you mean `{match[0]}`?" if match else "")
            for name, match in zip(unknown, near, strict=True)
        )


def set_defaults(args: Any) -> None:
    """Gives every flag that has no value yet its default: fairseq's, and ours."""
    args.decoder_only = getattr(args, "decoder_only", False)
    if args.decoder_only:
        args.encoder_layers = getattr(args, "encoder_layers", 0)
    for name, default in (DECODER_ONLY_DEFAULTS if args.decoder_only else FLAG_DEFAULTS).items():
        value = getattr(args, name, default)
        setattr(args, name, as_text(value) if name in LIST_FLAGS else value)
    base_architecture(args)
