"""Contract 1: `individual` everywhere is fairseq's own transformer."""

import pytest
import torch
from fairseq import models
from models_for_tests import all_weights, make_batch, make_task, parse

SMALL = ["--encoder-embed-dim", "64", "--encoder-ffn-embed-dim", "128", "--decoder-ffn-embed-dim", "128"]
SMALL += ["--encoder-attention-heads", "2", "--decoder-attention-heads", "2"]
OPTIONS = {
    "default": [],
    "pre-norm": ["--encoder-normalize-before", "--decoder-normalize-before"],
    "mixed norm": ["--encoder-normalize-before"],
    "dropout": ["--dropout", "0.2", "--attention-dropout", "0.1", "--activation-dropout", "0.15"],
    "relu dropout": ["--relu-dropout", "0.2"],
    "gelu": ["--activation-fn", "gelu"],
    "learned positions": ["--encoder-learned-pos", "--decoder-learned-pos"],
    "no positions": ["--no-token-positional-embeddings"],
    "embedding norm": ["--layernorm-embedding", "--no-scale-embedding"],
    "shared embeddings": ["--share-all-embeddings"],
    "shared output": ["--share-decoder-input-output-embed"],
    "layerdrop": ["--encoder-layerdrop", "0.3", "--decoder-layerdrop", "0.3"],
    "checkpointed": ["--checkpoint-activations"],
    "no cross-attention": ["--no-cross-attention"],
    "quantisation noise": ["--quant-noise-pq", "0.1", "--quant-noise-pq-block-size", "8"],
    "adaptive softmax": ["--adaptive-softmax-cutoff", "20"],
    "widths differ": ["--encoder-embed-dim", "32", "--decoder-embed-dim", "64"],
    "output width": ["--decoder-output-dim", "32"],
    "layers": ["--encoder-layers", "3", "--decoder-layers", "2"],
}
BATCH = make_batch([7, 3, 5], [4, 6, 2])


def pair(flags):
    """fairseq's model and ours, each made with the same seed."""
    built = []
    for arch in ("transformer", "owf_tiny"):
        torch.manual_seed(5)
        built.append(models.build_model(parse(arch, *SMALL, *flags), make_task()))
    return built


def own_weights(model):
    """The state dict without the second copy of weights that fairseq 0.12.2 writes, and its uninitialised buffer."""
    copies = ("_float_tensor",)
    copies += ("in_proj_weight", "in_proj_bias", "out_proj_weight", "out_proj_bias")
    copies += ("fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias")
    return {name: value for name, value in all_weights(model).items() if not name.endswith(copies)}


def features(output):
    return output[0] if isinstance(output[0], torch.Tensor) else output[0][0]


@pytest.mark.parametrize("option", OPTIONS)
def test_same_seed_same_weights_same_training_step(option):
    theirs, ours = pair(OPTIONS[option])
    expected, found = own_weights(theirs), own_weights(ours)
    assert list(found) == list(expected)
    assert all(torch.equal(found[name], expected[name]) for name in expected)

    outputs = []
    for model in (theirs, ours):
        model.train()
        torch.manual_seed(6)
        output = features(model(**BATCH))
        output.float().pow(2).mean().backward()
        outputs.append(output)
    assert torch.equal(outputs[1], outputs[0])
    gradients = {name: p.grad for name, p in theirs.named_parameters() if p.grad is not None and name in expected}
    assert gradients
    for name, parameter in ours.named_parameters():
        if parameter.grad is not None:
            assert torch.equal(parameter.grad, gradients[name]), name


@pytest.mark.parametrize("option", OPTIONS)
def test_vanilla_checkpoint_loads_and_evaluates_the_same(option):
    theirs, ours = pair(OPTIONS[option])
    theirs.train()(**BATCH)  # after a training step 0.12.2 keeps off its fused kernel, which torch 2.13 refuses
    torch.manual_seed(7)
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, mean=0.1, std=0.2)
    ours.load_state_dict(theirs.state_dict(), strict=True)
    with torch.no_grad():
        expected, found = [features(model.eval()(**BATCH)) for model in (theirs, ours)]
    assert torch.equal(found, expected)


@pytest.mark.parametrize("option", ["default", "pre-norm", "learned positions", "no cross-attention"])
def test_incremental_decoding_is_fairseqs(option):
    theirs, ours = pair(OPTIONS[option])
    tokens = BATCH["prev_output_tokens"]
    steps = []
    for model in (theirs, ours):
        model.eval()
        with torch.no_grad():
            encoder_out = model.encoder(BATCH["src_tokens"], BATCH["src_lengths"])
            state = {}
            steps.append([model.decoder(tokens[:, : t + 1], encoder_out, state)[0] for t in range(tokens.shape[1])])
    assert len(steps[0]) == tokens.shape[1]
    assert all(torch.equal(a, b) for a, b in zip(*steps, strict=True))
