"""The model ``owf_decoder_only``: one stack reads the source and writes the target, as a prefix language model.

The layers are those of one sequence, source ++ target: source positions see the whole source, target positions see the
source and what is before them. The stack reads the source once; ``model.encoder`` stands for that reading, with
fairseq's interface of an encoder and without parameters of its own, so that fairseq's tasks, criteria and search take
the model for an encoder-decoder one. What the paper leaves open is written in the README.
"""

from __future__ import annotations

from argparse import Action, ArgumentParser, Namespace
from typing import Any, NoReturn

import torch
from fairseq import utils
from fairseq.models import FairseqEncoder, register_model
from fairseq.models.transformer import TransformerConfig, TransformerDecoderBase
from fairseq.modules import PositionalEmbedding
from torch import Tensor, nn

from owf_fairseq.flags import NOT_IN_ONE_STACK, DecoderOnlyFlags
from owf_fairseq.models.transformer import LayerBlocks, SharingModel, maybe_checkpointed
from owf_fairseq.modules.attention import IncrementalState
from owf_fairseq.modules.prefix_attention import PrefixSelfAttention
from owf_fairseq.modules.prefix_layer import PrefixLayer

EncoderOut = dict[str, list[Tensor]]


class PrefixStack(TransformerDecoderBase):
    """The one stack: fairseq's decoder with our layers, whose positions may run on from the source.

    Args:
        cfg, dictionary, embed_tokens: as in fairseq.
        blocks: what the layers are handed.
    """

    def __init__(self, cfg: TransformerConfig, dictionary: Any, embed_tokens: nn.Module, blocks: LayerBlocks) -> None:
        self._blocks: LayerBlocks | None = blocks  # fairseq's constructor builds the layers
        super().__init__(cfg, dictionary, embed_tokens, no_encoder_attn=True)
        self._blocks = None
        self.restarts = cfg.target_positions == "restart"
        self.embed_positions: nn.Module | None
        if self.embed_positions is not None:
            longest = (cfg.max_source_positions, cfg.max_target_positions)
            self.embed_positions = PositionalEmbedding(
                max(longest) if self.restarts else sum(longest),
                self.embed_dim,
                self.padding_idx,
                learned=cfg.decoder.learned_pos,
            )

    def build_decoder_layer(self, cfg: TransformerConfig, no_encoder_attn: bool = False) -> nn.Module:
        assert self._blocks is not None
        layer = PrefixLayer(cfg, self_attn=next(self._blocks.decoder_self_attn), feed_forward=next(self._blocks.ffn))
        return maybe_checkpointed(layer, cfg)

    def max_positions(self) -> int:
        """The longest target, with its end-of-sentence symbol."""
        return int(self.max_target_positions)

    def read_source(self, tokens: Tensor) -> tuple[list[Tensor], list[Tensor], Tensor | None]:
        """Reads sentences as far as target positions need it.

        Args:
            tokens: (N, S), padded on either side.

        Returns:
            For each layer that attends the keys and values, (N, H, S, D); and the padding, (N, S), None where there is
            none.
        """
        padding = self._padding(tokens)
        x = self._embed(tokens, self._positions(tokens))
        keys: list[Tensor] = []
        values: list[Tensor] = []
        last = self._last_attention
        for layer in self.layers[:last]:
            x, own_keys, own_values, _ = layer(x, None, None, None, padding, False)
            if own_keys is not None:
                keys.append(own_keys)
                values.append(own_values)
        # nothing of the target sees what the last layer that attends makes of the source
        for collected, own in zip((keys, values), self.layers[last].keys_and_values(x), strict=True):
            collected.append(own)
        return keys, values, padding

    @property
    def _last_attention(self) -> int:
        """The last layer that attends."""
        return max(number for number, layer in enumerate(self.layers) if layer.self_attn is not None)

    def extract_features(
        self,
        prev_output_tokens: Tensor,
        encoder_out: EncoderOut,
        incremental_state: IncrementalState | None = None,
        full_context_alignment: bool = False,
        alignment_layer: int | None = None,
        alignment_heads: int | None = None,
    ) -> tuple[Tensor, dict[str, list[Tensor | None]]]:
        """Reads target positions; see fairseq's ``TransformerDecoderBase.extract_features``.

        Args:
            prev_output_tokens: (B, T), the B / N rows of one source sentence side by side.
            encoder_out: what ``SourceReader`` returned.
            incremental_state: the cache; then the last position alone is read.
            full_context_alignment: target positions see later ones too.
            alignment_layer: the layer whose weights on the source are returned; by default the last that attends.
            alignment_heads: not supported: the weights are the mean over all heads.

        Returns:
            Features (B, T, C); and ``attn``, the weights on the source, (B, T, S), and ``inner_states``, (T, B, C).
        """
        step = incremental_state is not None
        padding = self._padding(prev_output_tokens)
        positions = self._positions(prev_output_tokens)
        if not self.restarts:
            positions = torch.where(positions > 0, positions + encoder_out["src_lengths"][0], positions)
        if step:
            prev_output_tokens, positions = prev_output_tokens[:, -1:], positions[:, -1:]
        x = self._embed(prev_output_tokens, positions)
        source_padding = next(iter(encoder_out["encoder_padding_mask"]), None)
        causal = not step and not full_context_alignment
        wanted = self._last_attention if alignment_layer is None else alignment_layer
        attention: Tensor | None = None
        inner_states: list[Tensor | None] = [x]
        sources = zip(encoder_out["source_keys"], encoder_out["source_values"], strict=True)
        for number, layer in enumerate(self.layers):
            keys, values = (None, None) if layer.self_attn is None else next(sources)
            x, _, _, on_source = layer(x, keys, values, source_padding, padding, causal, incremental_state)
            inner_states.append(x)
            attention = on_source if number == wanted else attention
        if self.layer_norm is not None:
            x = self.layer_norm(x)
        x = x.transpose(0, 1)
        if self.project_out_dim is not None:
            x = self.project_out_dim(x)
        return x, {"attn": [attention], "inner_states": inner_states}

    def _padding(self, tokens: Tensor) -> Tensor | None:
        padding: Tensor = tokens.eq(self.padding_idx)
        return padding if padding.any() else None

    def _positions(self, tokens: Tensor) -> Tensor:
        """The number of each token in its sentence, from 1; 0 at padding."""
        positions: Tensor = utils.make_positions(tokens, self.padding_idx) - self.padding_idx
        return positions

    def _embed(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """(B, T) to (T, B, C)."""
        x = self.embed_scale * self.embed_tokens(tokens)
        if self.quant_noise is not None:
            x = self.quant_noise(x)
        if self.project_in_dim is not None:
            x = self.project_in_dim(x)
        if self.embed_positions is not None:
            # fairseq's modules number tokens by themselves: so they number a sentence as long as the longest here
            longest = max(int(positions.max()), 1)
            table = self.embed_positions(tokens.new_full((1, longest), self.padding_idx + 1))[0]
            x = x + table[(positions - 1).clamp(min=0)] * positions.gt(0).unsqueeze(-1)
        if self.layernorm_embedding is not None:
            x = self.layernorm_embedding(x)
        return self.dropout_module(x).transpose(0, 1)


class SourceReader(FairseqEncoder):
    """fairseq's encoder, as far as others see: it has the stack read the source. It has no parameters.

    Args:
        cfg: fairseq's TransformerConfig.
        dictionary: of the source.
    """

    def __init__(self, cfg: TransformerConfig, dictionary: Any) -> None:
        super().__init__(dictionary)
        self.max_source_positions = cfg.max_source_positions
        self._stack: tuple[PrefixStack, ...] = ()

    def use(self, stack: PrefixStack) -> None:
        """Says which stack reads. It is held in a tuple, so that its parameters are not this module's as well."""
        self._stack = (stack,)

    def forward(self, src_tokens: Tensor, src_lengths: Tensor | None = None, **kwargs: Any) -> EncoderOut:
        """Reads sentences.

        Args:
            src_tokens: (N, S), padded on either side.
            src_lengths: not needed.
            kwargs: other arguments of fairseq's, not looked at.

        Returns:
            For each layer that attends ``source_keys`` and ``source_values``, (N, H, S, D); ``encoder_padding_mask``,
            (N, S) or nothing; and ``src_lengths``, (B, 1), where B is N until the rows are reordered. ``encoder_out``
            is empty, because no layer attends to the last one's output.
        """
        (stack,) = self._stack
        keys, values, padding = stack.read_source(src_tokens)
        return {
            "encoder_out": [],
            "encoder_padding_mask": [] if padding is None else [padding],
            "source_keys": keys,
            "source_values": values,
            "src_lengths": [src_tokens.ne(stack.padding_idx).sum(1, keepdim=True)],
        }

    def forward_torchscript(self, net_input: dict[str, Tensor]) -> EncoderOut:
        """What fairseq's search calls."""
        return self.forward(net_input["src_tokens"])

    def reorder_encoder_out(self, encoder_out: EncoderOut, new_order: Tensor) -> EncoderOut:
        """Says which rows there are now; keys and values stay where they are as long as their sentences do.

        (Sentences that end leave, and so are copied the others once; if sentences get different numbers of rows, each
        row gets a copy of its own. fairseq's search does not do that.)

        Args:
            encoder_out: with B rows of N sentences, B / N each, side by side.
            new_order: (B'), the rows to have now, in this order.
        """
        lengths = encoder_out["src_lengths"][0]
        sentences = encoder_out["source_keys"][0].size(0)
        sentence_of = new_order // (lengths.size(0) // sentences)
        kept, counts = sentence_of.unique_consecutive(return_counts=True)
        if (counts != counts[0]).any():  # as many rows for each sentence, or else as many sentences as rows
            kept = sentence_of
        unmoved = kept.size(0) == sentences and bool((kept == torch.arange(sentences, device=kept.device)).all())
        moved = {
            name: [tensor if unmoved else tensor.index_select(0, kept) for tensor in encoder_out[name]]
            for name in ("source_keys", "source_values", "encoder_padding_mask")
        }
        return {"encoder_out": [], **moved, "src_lengths": [lengths.index_select(0, new_order)]}

    def max_positions(self) -> int:
        """The longest source, with its end-of-sentence symbol."""
        return int(self.max_source_positions)


class RefuseEncoderFlag(Action):
    """An ``--encoder-*`` flag of fairseq's, which the one stack has no use for."""

    def __call__(
        self, parser: ArgumentParser, namespace: Namespace, values: Any, option_string: str | None = None
    ) -> NoReturn:
        option = option_string or ""
        decoders = option.replace("--encoder", "--decoder")
        refused = decoders[2:].replace("-", "_") in NOT_IN_ONE_STACK
        instead = "" if refused else f": its one stack takes `{decoders}`"
        parser.error(f"`{option}` is not for a decoder-only model{instead}")


@register_model("owf_decoder_only")
class OwfDecoderOnlyModel(SharingModel):
    """A prefix language model whose FFNs and attention are individual, shared or dropped, layer by layer."""

    flags = DecoderOnlyFlags
    attention = PrefixSelfAttention
    decoder_only = True

    def __init__(self, cfg: TransformerConfig, encoder: SourceReader, decoder: PrefixStack) -> None:
        super().__init__(cfg, encoder, decoder)
        encoder.use(decoder)

    @classmethod
    def add_args(cls, parser: ArgumentParser) -> None:
        super().add_args(parser)
        for action in parser._actions:
            if any(option.startswith("--encoder-") for option in action.option_strings):
                action.__class__ = RefuseEncoderFlag

    @classmethod
    def build_encoder(cls, cfg: TransformerConfig, src_dict: Any, embed_tokens: nn.Module) -> SourceReader:
        return SourceReader(cfg, src_dict)

    @classmethod
    def build_decoder(cls, cfg: TransformerConfig, tgt_dict: Any, embed_tokens: nn.Module) -> PrefixStack:
        return PrefixStack(cfg, tgt_dict, embed_tokens, cfg.layer_blocks)
