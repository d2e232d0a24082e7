"""The cost model against the models themselves: their weights, and torch's own count of FLOPs."""

from collections import Counter

import pytest
import torch
from models_for_tests import TINY_ARCHS, VOCABULARY, make_batch, make_model, parse
from torch.utils.flop_counter import FlopCounterMode

from owf_fairseq.checkpoints.stored_model import build_model
from owf_fairseq.cost_model.cost import (
    DECODER_FFN,
    OUTPUT,
    SOURCE_KEYS,
    LayerShape,
    ModelShape,
    Workload,
    cost,
    shape_of_arch,
    shape_of_flags,
    source_operations,
    step_operations,
)
from owf_fairseq.decoding.fairseq_backend import FairseqBackend
from owf_fairseq.decoding.search import SearchOptions
from owf_fairseq.parameters import SizedDictionary
from owf_fairseq.sharing import ARCHS, is_decoder_only
from owf_fairseq.speed.measurement import draw_batches, first_token_only

ONE_STACK = sorted(arch for arch in ARCHS if ARCHS[arch][0] == "decoder_only_tiny")
EMBEDDINGS = ["--share-all-embeddings"]
VARIANTS = [
    ["--encoder-embed-dim", "32", "--decoder-embed-dim", "48"],
    ["--encoder-layers", "3", "--decoder-layers", "2", "--decoder-ffn-embed-dim", "70"],
    ["--encoder-ffn", "none", "--decoder-ffn", "sequence-2", "--decoder-self-attn", "shared"],
    ["--encoder-ffn", "0,0,1,-,1,2", "--encoder-ffn-widths", "16,70,8", "--encoder-self-attn", "middle-4"],
    ["--decoder-self-attn", "0,-,0,1,-,-", "--decoder-cross-attn=-,0,1,-,0,-", "--decoder-ffn", "last"],
    [*"--encoder-ffn shared --decoder-ffn cycle-4 --ffn-per-layer norm,bias,scale,lora-3".split()],
]
ONE_STACK_VARIANTS = [
    ["--decoder-self-attn", "0,1,-,0,-,-", "--decoder-ffn", "cycle-2", "--decoder-ffn-widths", "40,24"],
    ["--decoder-ffn", "shared", "--ffn-per-layer", "scale,lora-2"],
]


def weights_read(layers, kind=lambda name: True):
    """Values of all weights that a pass through the layers reads: a shared one is read in each layer that has it."""
    return sum(p.numel() for layer in layers for name, p in layer.named_parameters() if kind(name))


def is_source_key(name):
    return name.startswith(("encoder_attn.k_proj", "encoder_attn.v_proj"))


def assert_weights(shape, model):
    source = Counter()
    for operation in source_operations(shape, Workload(7, 3, 11, 13)):
        source[operation.part] += operation.weights
    keys = weights_read(model.decoder.layers, is_source_key)
    assert source[SOURCE_KEYS] == keys > 0
    assert sum(source.values()) - keys == weights_read(model.encoder.layers)
    step = step_operations(shape, Workload(7, 3, 11, 13))
    decoder = weights_read(model.decoder.layers, lambda name: not is_source_key(name))
    assert sum(operation.weights for operation in step) == decoder + model.decoder.output_projection.weight.numel()
    ffn = weights_read(model.decoder.layers, lambda name: name.startswith(("fc1", "fc2", "final_layer_norm")))
    assert sum(operation.weights for operation in step if operation.part == DECODER_FFN) == ffn
    in_float32 = cost(shape, Workload(7, 3, 11, 13))
    assert in_float32.decoder_bytes == 4 * (decoder + model.decoder.output_projection.weight.numel())
    assert in_float32.encoder_bytes == 4 * (weights_read(model.encoder.layers) + keys)


@pytest.mark.parametrize("arch", ARCHS)
def test_weights_of_every_arch(arch):
    args = parse(arch, *EMBEDDINGS)
    dictionary = SizedDictionary(1000)
    with torch.device("meta"):
        model = build_model(args, dictionary, dictionary)
    shape = shape_of_arch(arch, 1000)
    assert shape == shape_of_flags(args, 1000)
    (assert_weights_of_one_stack if is_decoder_only(arch) else assert_weights)(shape, model)


def assert_weights_of_one_stack(shape, model):
    workload = Workload(7, 3, 11, 13)
    *layers, last = model.decoder.layers
    keys = weights_read(
        [last], lambda name: ".k_proj." in name or ".v_proj." in name or name.startswith("self_attn_lay")
    )
    source = sum(operation.weights for operation in source_operations(shape, workload))
    assert source == weights_read(layers) + keys
    step = sum(operation.weights for operation in step_operations(shape, workload))
    assert step == weights_read(model.decoder.layers) + model.decoder.output_projection.weight.numel()


@pytest.mark.parametrize("flags", VARIANTS, ids=" ".join)
def test_weights_of_a_model_with_further_flags(flags):
    assert_weights(shape_of_flags(parse("owf_tiny", *flags), VOCABULARY), make_model("owf_tiny", *flags))


@pytest.fixture
def plain_attention():
    """torch's counter knows matrix products, and not the fused attention of CPUs."""
    was = torch.backends.cuda.flash_sdp_enabled()
    torch.backends.cuda.enable_flash_sdp(False)
    yield
    torch.backends.cuda.enable_flash_sdp(was)


def counted(function):
    with FlopCounterMode(display=False) as counter, torch.inference_mode():
        result = function()
    return counter.get_total_flops(), result


@pytest.mark.parametrize(
    ("arch", "flags"),
    [
        *((arch, []) for arch in TINY_ARCHS + ONE_STACK),
        *(("owf_tiny", flags) for flags in VARIANTS),
        *(("owf_decoder_only_tiny", flags) for flags in ONE_STACK_VARIANTS),
    ],
)
@pytest.mark.usefixtures("plain_attention")
def test_flops_are_those_that_torch_counts(arch, flags):
    """To the last one: torch counts matrix products, those of the attention included, and so do we."""
    shape = shape_of_flags(parse(arch, *flags), VOCABULARY)
    model = make_model(arch, *flags).eval()
    sentences, beam, length = 2, 3, 9
    batch = make_batch([length] * sentences, [length] * sentences)
    workload = Workload(sentences, beam, length - 1, 4)
    source = source_operations(shape, workload)

    flops, encoded = counted(lambda: model.encoder(batch["src_tokens"], batch["src_lengths"]))
    once = shape.decoder_only  # fairseq makes the source's keys and values in the first step, our one stack at once
    assert flops == sum(operation.flops for operation in source if once or operation.part != SOURCE_KEYS) > 0

    beams = torch.arange(sentences).repeat_interleave(beam)
    encoded = model.encoder.reorder_encoder_out(encoded, beams)
    target = batch["prev_output_tokens"][beams]
    state = {}
    for position in range(1, int(workload.steps) + 1):
        flops, _ = counted(lambda n=position: model.decoder(target[:, :n], encoded, incremental_state=state))
        expected = sum(operation.flops for operation in step_operations(shape, workload, position))
        if position == 1 and not once:
            expected += sum(operation.flops for operation in source if operation.part == SOURCE_KEYS)
        assert flops == expected


@pytest.mark.usefixtures("plain_attention")
@pytest.mark.parametrize("arch", ["owf_tiny", "owf_tiny_one_wide_ffn", *ONE_STACK])
def test_flops_of_a_whole_search(arch):
    """What `owf benchmark` times does what the cost model says, no more and no less."""
    backend = FairseqBackend.from_arch(arch, vocab_size=VOCABULARY, cpu=True, packed=False)
    workload = Workload(batch_size=2, beam=3, source_length=8, target_length=5)
    [batch] = draw_batches(backend.source_symbols, 8, 2, 1)
    options = SearchOptions(beam=3, max_len_a=0, max_len_b=5, min_len=5)
    flops, found = counted(lambda: backend.search(batch, options))
    assert [len(hypotheses[0].pieces) for hypotheses in found] == [5, 5]
    assert flops / workload.generated_tokens == cost(shape_of_arch(arch, VOCABULARY), workload).flops
    first, _ = counted(lambda: backend.search(batch, first_token_only(options)))
    assert first == sum(
        operation.flops
        for operation in (
            *source_operations(shape_of_arch(arch, VOCABULARY), workload),
            *step_operations(shape_of_arch(arch, VOCABULARY), workload, position=1),
        )
    )


def test_beams_that_share_the_source():
    shape = shape_of_arch("owf_big", 32_000)
    each, once = Workload(4, 5), Workload(4, 5, source_for_each_beam=False)
    keys = [
        sum(operation.flops for operation in source_operations(shape, workload) if operation.part == SOURCE_KEYS)
        for workload in (each, once)
    ]
    assert keys[0] == 5 * keys[1] == 5 * 6 * 2 * 2 * (4 * 27) * 1024**2
    assert cost(shape, once).encoder_bytes == cost(shape, each).encoder_bytes
    assert cost(shape, once).bytes < cost(shape, each).bytes


def test_mean_position_gives_the_mean_of_all_steps():
    shape, workload = shape_of_arch("owf_tiny", 1000), Workload(2, 3, 5, 7)
    each = [step_operations(shape, workload, position) for position in range(1, 9)]
    for mean, steps in zip(step_operations(shape, workload), zip(*each, strict=True), strict=True):
        assert mean.flops == pytest.approx(sum(step.flops for step in steps) / 8)
        assert mean.others == pytest.approx(sum(step.others for step in steps) / 8)


def test_cost_by_hand():
    """One layer each, d = 10, no decoder FFN: every number written out."""
    shape = ModelShape(10, 10, (LayerShape(30),), (LayerShape(0),), 100)
    found = cost(shape, Workload(batch_size=2, beam=3, source_length=4, target_length=6), precision="float16")
    attention, ffn = 4 * (100 + 10) + 20, 2 * 300 + 30 + 10 + 20
    assert found.encoder_bytes == 2 * (attention + ffn + 2 * 110)
    assert found.decoder_bytes == 2 * (attention + 2 * 110 + 20 + 1000)
    # a source token: 4 projections, scores and sums over 5 positions, 2 FFN products, keys and values of 3 beams
    encoder_flops = 2 * (4 * 100 + 2 * 5 * 10 + 2 * 300 + 3 * 2 * 100)
    assert found.encoder_flops == encoder_flops
    # a step of one of 6 rows: 4 + 2 projections, 4 positions in the mean, 5 source positions, the output
    step = 2 * (6 * 100 + 2 * 4 * 10 + 2 * 5 * 10 + 1000)
    assert found.decoder_flops == 7 * 6 * step / (2 * 6)
    assert found.flops == pytest.approx((10 * encoder_flops + 7 * 6 * step) / 12)
    source_others = 10 * 20 * 4 + 10 * (40 + 40 + 2 * 30) + 2 * 3 * 10 * 20
    step_others = 6 * (6 * 20 + 5 * 2 * 4 * 10 + 5 * (20 + 40) + 10 + 6 * 100)
    moved = 2 * (source_others + 7 * step_others) + found.encoder_bytes + 7 * found.decoder_bytes
    assert found.bytes == pytest.approx(moved / 12)


def test_the_wide_ffn_costs_more_for_every_source_token_and_less_for_every_generated_one():
    big, wide = (cost(shape_of_arch(arch, 50_408), Workload()) for arch in ("owf_big", "owf_big_one_wide_ffn"))
    layers, extra = 6, 2 * 2 * 1024 * (49_152 - 4_096)
    assert wide.encoder_flops - big.encoder_flops == layers * extra
    assert big.decoder_flops - wide.decoder_flops == pytest.approx(5 * 31 / 30 * layers * 2 * 2 * 1024 * 4_096)
    assert big.decoder_bytes - wide.decoder_bytes == 4 * layers * (2 * 1024 * 4_096 + 4_096 + 3 * 1024)


def test_output_projection_grows_with_the_vocabulary():
    small, large = (
        [
            operation
            for operation in step_operations(shape_of_arch("owf_base", size), Workload())
            if operation.part == OUTPUT
        ]
        for size in (1000, 2000)
    )
    assert large[0].weights == 2 * small[0].weights == 2000 * 512
    assert len(small) == 1
