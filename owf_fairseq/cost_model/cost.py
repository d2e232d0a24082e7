"""What decoding computes and moves, counted from the shape of a model: FLOPs and bytes, without weights or torch.

A sentence costs its source side once (the encoder, and the decoder's projections of the encoder's output to keys and
values) and then a decoder step for every piece and for the end-of-sentence symbol. The assumptions:

- FLOPs are those of matrix products, two a multiply-add; biases, layer norms, softmax and top-k are left out.
- Weights are read from memory once in a pass over the source and once in a step. **A block that several layers share is
  read again in each of them**: the FFNs in question are larger than the caches of today's devices.
- A matrix product reads its input and writes its output; the ReLU does so once more. What is smaller (scores of the
  attention, residuals, layer norms) is left out.
- The self-attention's cache is read once in a step and, as in fairseq, copied twice: to append to it and to reorder the
  beams. fairseq also reorders two copies of the encoder's output in every step.
- The scores of the vocabulary are passed over six times: written by the product, read and written by the softmax, read
  and written with the scores of the beams added, and read to choose from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from owf_fairseq.patterns import make_pattern
from owf_fairseq.per_layer import PerLayer
from owf_fairseq.sharing import ARCHS, SIZES, configuration_of, is_decoder_only

if TYPE_CHECKING:
    from owf_fairseq.flag_checks import HasFlags

ENCODER_ATTENTION = "encoder self-attention"
ENCODER_FFN = "encoder FFN"
SOURCE_KEYS = "keys and values of the source"
DECODER_ATTENTION = "decoder self-attention"
CROSS_ATTENTION = "decoder cross-attention"
DECODER_FFN = "decoder FFN"
OUTPUT = "output projection"


@dataclass(frozen=True)
class LayerShape:
    """What of a layer decides how much it computes and reads.

    Attributes:
        ffn: the width d_ff of the FFN that it uses, 0 where it is dropped.
        self_attention, cross_attention: whether it has them; an encoder's layer has no cross-attention anyway.
        scale, lora: what it has of its own in a shared FFN, see ``per_layer.PerLayer``.
    """

    ffn: int
    self_attention: bool = True
    cross_attention: bool = True
    scale: bool = False
    lora: int = 0


def stack_shape(
    widths: Sequence[int],
    self_attn: Sequence[int | None],
    cross_attn: Sequence[int | None],
    shares: Sequence[bool],
    per_layer: PerLayer,
) -> tuple[LayerShape, ...]:
    """The layers of a stack.

    Args:
        widths: for each layer, d_ff of its FFN, 0 where it is dropped.
        self_attn, cross_attn: patterns; only where they are None counts.
        shares: whether the layer's FFN serves others too.
        per_layer: what such layers have of their own.
    """
    return tuple(
        LayerShape(
            width,
            own is not None,
            cross is not None,
            scale=width > 0 and is_shared and per_layer.scale,
            lora=per_layer.lora if width and is_shared else 0,
        )
        for width, own, cross, is_shared in zip(widths, self_attn, cross_attn, shares, strict=True)
    )


@dataclass(frozen=True)
class ModelShape:
    """What of a Transformer decides how much it computes and reads.

    Attributes:
        encoder_dim, decoder_dim: d_model of the stacks.
        encoder, decoder: their layers.
        vocab_size: rows of the output projection.
        decoder_only: whether the decoder's layers read the source as well, and their self-attention sees it.
    """

    encoder_dim: int
    decoder_dim: int
    encoder: tuple[LayerShape, ...]
    decoder: tuple[LayerShape, ...]
    vocab_size: int
    decoder_only: bool = False


@dataclass(frozen=True)
class Workload:
    """What is to be decoded.

    Attributes:
        batch_size: sentences that are decoded together; their mean where batches differ.
        beam: hypotheses of a sentence.
        source_length, target_length: pieces of each sentence, the end-of-sentence symbol aside.
        source_for_each_beam: whether the encoder's output is projected to keys and values once for every beam, as
            fairseq's search does, and not once for a sentence.
    """

    batch_size: float = 1
    beam: int = 5
    source_length: float = 26
    target_length: float = 30
    source_for_each_beam: bool = True

    @property
    def source_rows(self) -> float:
        """Rows of the encoder's matrix products."""
        return self.batch_size * (self.source_length + 1)

    @property
    def rows(self) -> float:
        """Rows of the decoder's matrix products in a step."""
        return self.batch_size * self.beam

    @property
    def steps(self) -> float:
        """Decoder steps; the last gives the end-of-sentence symbol."""
        return self.target_length + 1

    @property
    def generated_tokens(self) -> float:
        """Pieces of the best hypotheses."""
        return self.batch_size * self.target_length


@dataclass(frozen=True)
class Operation:
    """One sublayer's work.

    Attributes:
        part: which kind of sublayer, one of this module's names.
        flops: floating-point operations.
        weights: values of weights and biases that are read.
        others: further values that are read or written.
    """

    part: str
    flops: float = 0
    weights: float = 0
    others: float = 0

    def bytes(self, precision: str) -> float:
        """All that is moved, with weights in a precision and what else there is in that which it is computed in."""
        weight_bytes, value_bytes = bytes_of(precision)
        return weight_bytes * self.weights + value_bytes * self.others


def bytes_of(precision: str) -> tuple[int, int]:
    """Bytes of a weight and of any other value: ``float32``, ``float16``, ``bfloat16``, ``int8_float32`` and others."""
    weights, _, values = precision.partition("_")
    return _BYTES[weights], _BYTES[values or weights]


_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "int8": 1}


def shape_of_arch(arch: str, vocab_size: int, ffn_dims: Mapping[str, int] | None = None) -> ModelShape:
    """The shape of a named architecture without further flags; needs neither torch nor fairseq.

    Args:
        arch: a key of ``sharing.ARCHS``.
        vocab_size: of the target language, special symbols included.
        ffn_dims: widths of the FFNs of ``encoder`` and ``decoder`` that are not the arch's own.
    """
    size, configuration = SIZES[ARCHS[arch][0]], configuration_of(arch)
    layers = {"encoder": size.encoder_layers, "decoder": size.decoder_layers}
    dims = dict.fromkeys(layers, size.ffn_dim)
    if configuration.wide:
        dims[size.stacks[0]] = size.wide_ffn_dim
    dims |= ffn_dims or {}
    one_stack = is_decoder_only(arch)

    def stack_of(stack: str) -> tuple[LayerShape, ...]:
        pattern = make_pattern(str(configuration.flags.get(f"{stack}_ffn", "individual")), layers[stack])
        return tuple(
            LayerShape(0 if number is None else dims[stack], cross_attention=stack == "decoder" and not one_stack)
            for number in pattern
        )

    return ModelShape(size.embed_dim, size.embed_dim, stack_of("encoder"), stack_of("decoder"), vocab_size, one_stack)


def shape_of_flags(args: HasFlags, vocab_size: int) -> ModelShape:
    """The shape of the model that flags describe.

    Args:
        args: fairseq's flags and ours, after the arch function has filled in what was not given.
        vocab_size: of the target language, special symbols included.

    Raises:
        InputError: the flags describe no model.
    """
    from owf_fairseq.plan import make_plan

    plan = make_plan(args)
    stacks = {}
    for stack in ("encoder", "decoder"):
        numbers, widths = plan.ffn_of(stack)
        crosses = stack == "decoder" and not (args.no_cross_attention or args.decoder_only)
        stacks[stack] = stack_shape(
            widths,
            plan.encoder_self_attn if stack == "encoder" else plan.decoder_self_attn,
            plan.decoder_cross_attn if crosses else [None] * len(widths),
            [plan.ffn.count(number) > 1 for number in numbers],
            plan.per_layer,
        )
    return ModelShape(
        args.encoder_embed_dim,
        args.decoder_embed_dim,
        stacks["encoder"],
        stacks["decoder"],
        vocab_size,
        args.decoder_only,
    )


def source_operations(shape: ModelShape, workload: Workload) -> list[Operation]:
    """What is done once for a batch: the encoder, and the keys and values that the decoder makes of its output.

    The last layer of a decoder-only model that attends makes keys and values of the source, and nothing else.
    """
    d, rows = shape.encoder_dim, workload.source_rows
    length = workload.source_length + 1
    attention, ffn = (DECODER_ATTENTION, DECODER_FFN) if shape.decoder_only else (ENCODER_ATTENTION, ENCODER_FFN)
    operations = []
    layers = shape.encoder
    if shape.decoder_only:
        layers = shape.decoder[: max(n for n, layer in enumerate(shape.decoder) if layer.self_attention)]
    scores = Operation(attention, flops=4 * rows * length * d)
    self_attention = _sum([*[_product(rows, d, d)] * 4, _layer_norm(d), scores], attention)
    for layer in layers:
        if layer.self_attention:
            operations.append(self_attention)
        if layer.ffn:
            operations.append(_ffn(rows, d, layer, ffn))
    if shape.decoder_only:
        operations.append(_sum([*[_product(rows, d, d)] * 2, _layer_norm(d)], SOURCE_KEYS))
    copies = workload.beam if workload.source_for_each_beam else 1
    product = _product(rows * copies, d, shape.decoder_dim)
    operations += [_sum([product] * 2, SOURCE_KEYS)] * sum(layer.cross_attention for layer in shape.decoder)
    return operations


def step_operations(shape: ModelShape, workload: Workload, position: float | None = None) -> list[Operation]:
    """What is done in one decoder step.

    Args:
        shape: of the model.
        workload: what is decoded.
        position: how many target positions the self-attention sees, this step's included; by default their mean over
            all steps, which gives the mean of the steps, because all costs are linear in it.
    """
    d, rows = shape.decoder_dim, workload.rows
    seen = (workload.steps + 1) / 2 if position is None else position
    source = workload.source_length + 1
    cached = rows * seen * d
    # read for the scores and the sum, read and written to append, read and written to reorder; keys and values
    self_cache = Operation("", flops=4 * cached, others=5 * 2 * cached)
    if workload.source_for_each_beam:
        # keys and values are read; two copies of the encoder's output are read and written to reorder them
        source_others = rows * source * (2 * d + 4 * shape.encoder_dim)
    else:
        source_others = workload.batch_size * source * 2 * d
    source_cache = Operation("", flops=4 * rows * source * d, others=source_others)
    if shape.decoder_only:  # the beams of a sentence share its keys and values, which stay where they are
        shared = Operation("", flops=4 * rows * source * d, others=workload.batch_size * source * 2 * d)
        self_cache = _sum([self_cache, shared], "")
    self_attention = _sum([*[_product(rows, d, d)] * 4, _layer_norm(d), self_cache], DECODER_ATTENTION)
    cross_attention = _sum([*[_product(rows, d, d)] * 2, _layer_norm(d), source_cache], CROSS_ATTENTION)
    operations = []
    for layer in shape.decoder:
        if layer.self_attention:
            operations.append(self_attention)
        if layer.cross_attention:
            operations.append(cross_attention)
        if layer.ffn:
            operations.append(_ffn(rows, d, layer, DECODER_FFN))
    logits = rows * shape.vocab_size
    output = Operation(OUTPUT, 2 * logits * d, shape.vocab_size * d, rows * d + 6 * logits)  # has no bias
    return [*operations, output]


def _product(rows: float, inputs: int, outputs: int, bias: bool = True) -> Operation:
    """A linear layer."""
    weights = inputs * outputs + (outputs if bias else 0)
    return Operation("", 2 * rows * inputs * outputs, weights, rows * (inputs + outputs))


def _layer_norm(dim: int) -> Operation:
    return Operation("", weights=2 * dim)


@lru_cache(maxsize=2**16)  # the layers of a stack are alike, as a rule, and so are those of many layouts
def _ffn(rows: float, dim: int, layer: LayerShape, part: str) -> Operation:
    width, rank = layer.ffn, layer.lora
    relu = Operation("", others=2 * rows * width)
    parts = [_product(rows, dim, width), relu, _product(rows, width, dim), _layer_norm(dim)]
    if layer.scale:
        parts.append(Operation("", weights=dim))
    if rank:
        parts += [_product(rows, *sides, bias=False) for sides in ((dim, rank), (rank, width))]
        parts += [_product(rows, *sides, bias=False) for sides in ((width, rank), (rank, dim))]
    return _sum(parts, part)


def _sum(operations: Sequence[Operation], part: str) -> Operation:
    return Operation(
        part,
        sum(operation.flops for operation in operations),
        sum(operation.weights for operation in operations),
        sum(operation.others for operation in operations),
    )


@dataclass(frozen=True)
class Cost:
    """What a model costs under a workload.

    Attributes:
        encoder_flops: of the source side, for each source token, end-of-sentence symbols included.
        encoder_bytes: weights of the source side, for each batch.
        decoder_flops: of the decoder's steps, for each generated token.
        decoder_bytes: weights of one decoder step.
        encoder_bytes_per_token, decoder_bytes_per_token: all that the source side and the steps move, activations and
            caches included, for each generated token: a piece of a best hypothesis.
        flops, bytes: of everything, for each generated token.
    """

    encoder_flops: float
    encoder_bytes: float
    decoder_flops: float
    decoder_bytes: float
    encoder_bytes_per_token: float
    decoder_bytes_per_token: float
    flops: float
    bytes: float


def cost(shape: ModelShape, workload: Workload, precision: str = "float32") -> Cost:
    """Adds up what a model computes and moves; see the module's text for what is counted."""
    weight_bytes, _ = bytes_of(precision)
    source, step = source_operations(shape, workload), step_operations(shape, workload)
    steps, tokens = workload.steps, workload.generated_tokens
    moved = (_bytes(source, precision) / tokens, steps * _bytes(step, precision) / tokens)
    return Cost(
        encoder_flops=_flops(source) / workload.source_rows,
        encoder_bytes=weight_bytes * sum(operation.weights for operation in source),
        decoder_flops=steps * _flops(step) / tokens,
        decoder_bytes=weight_bytes * sum(operation.weights for operation in step),
        encoder_bytes_per_token=moved[0],
        decoder_bytes_per_token=moved[1],
        flops=(_flops(source) + steps * _flops(step)) / tokens,
        bytes=sum(moved),
    )


def _flops(operations: Iterable[Operation]) -> float:
    return sum(operation.flops for operation in operations)


def _bytes(operations: Iterable[Operation], precision: str) -> float:
    return sum(operation.bytes(precision) for operation in operations)
