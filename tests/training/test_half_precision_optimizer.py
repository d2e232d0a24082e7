"""fairseq's optimizers of half precision around a model that shares: one update of each, looked at closely."""

import pytest
import torch
from fairseq import tasks
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.trainer import Trainer
from fairseq_for_tests import TRAINING
from models_for_tests import all_weights, parse, untied_flags

ARCHS = [
    "owf_tiny_one_wide_ffn", "owf_tiny_shared_enc_dec", "owf_tiny_attention_sss", "owf_tiny_cycle_2",
    "owf_decoder_only_tiny_one_wide_ffn",
]  # fmt: skip
SCALE = 64


def make_trainer(data_bin, arch, *flags, bf16=False):
    """A Trainer on the CPU, and its first batch; bf16 as a hydra config asks for it, where it does not mean a TPU."""
    args = parse(arch, *TRAINING, "--dropout", "0", "--fp16-init-scale", str(SCALE), *flags)
    args.data = str(data_bin)
    cfg = convert_namespace_to_omegaconf(args)
    cfg.common.bf16 = bf16
    task = tasks.setup_task(cfg.task)
    torch.manual_seed(1)
    trainer = Trainer(cfg, task, task.build_model(cfg.model), task.build_criterion(cfg.criterion))
    batches = trainer.get_train_iterator(1).next_epoch_itr(shuffle=False)
    trainer.begin_epoch(1)
    sample, _ = trainer._prepare_sample(next(batches))
    return trainer, sample


WAYS = {
    "flat": {"flags": ["--fp16"], "dtype": torch.float16},
    "no-flatten": {"flags": ["--fp16", "--fp16-no-flatten-grads"], "dtype": torch.float16},
    "memory-efficient": {"flags": ["--memory-efficient-fp16"], "dtype": torch.float16},
    "bf16": {"flags": [], "dtype": torch.bfloat16},
}


def float32_copies(optimizer, parameters):
    """Of each parameter its float32 copy and the copy's gradient, where the optimizer keeps them."""
    if not hasattr(optimizer, "fp32_params"):
        return [(None, parameter.grad) for parameter in parameters]
    if isinstance(optimizer.fp32_params, dict):
        [flat] = optimizer.fp32_params.values()
        assert flat.dtype == flat.grad.dtype == torch.float32
        sizes = [parameter.numel() for parameter in parameters]
        assert flat.numel() == sum(sizes)  # a shared tensor is there once
        return list(zip(flat.data.split(sizes), flat.grad.split(sizes), strict=True))
    assert len(optimizer.fp32_params) == len(parameters)
    return [(copy.data, copy.grad) for copy in optimizer.fp32_params]


def untied(trainer, arch):
    """The model in float32 that has a copy of each block for each layer, with the same weights."""
    args = parse(arch)
    if args.decoder_only:
        flags = ["owf_decoder_only_tiny", "--decoder-ffn-embed-dim", str(args.decoder_ffn_embed_dim)]
    else:
        flags = ["owf_tiny", *untied_flags(args)]
    model = trainer.task.build_model(parse(flags[0], "--share-all-embeddings", "--dropout", "0", *flags[1:]))
    model.load_state_dict({name: tensor.float() for name, tensor in all_weights(trainer.model).items()}, strict=False)
    return model.train()


@pytest.mark.parametrize(
    ("way", "arch"), [("flat", arch) for arch in ARCHS] + [(way, ARCHS[0]) for way in WAYS if way != "flat"]
)
def test_an_update_of_shared_tensors(way, arch, data_bin, monkeypatch):
    """Each is there once, its gradient is the sum over the layers that use it, and its half weight follows the copy."""
    flags, dtype = WAYS[way]["flags"], WAYS[way]["dtype"]
    # the number of the device, under which the flat copy is kept: that of a tensor in a CPU's memory is None
    monkeypatch.setattr(torch.cuda, "current_device", lambda: None)
    trainer, sample = make_trainer(data_bin, arch, *flags, bf16=dtype == torch.bfloat16)
    model, optimizer = trainer.model.train(), trainer.optimizer
    groups = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        groups.setdefault(id(parameter), (parameter, []))[1].append(name)
    parameters = [parameter for parameter, _ in groups.values()]
    assert {parameter.dtype for parameter in parameters} == {dtype}
    scale = 1 if optimizer.scaler is None else SCALE
    assert optimizer.scaler is None or optimizer.scaler.loss_scale == SCALE

    trainer.zero_grad()
    trainer.task.train_step(sample, model, trainer.criterion, optimizer, 0)
    if hasattr(optimizer, "_sync_fp16_grads_to_fp32"):
        optimizer._sync_fp16_grads_to_fp32()

    copies = untied(trainer, arch)
    trainer.criterion(copies, sample)[0].backward()
    named = dict(copies.named_parameters(remove_duplicate=False))
    assert any(len({id(named[name]) for name in names}) > 1 for _, names in groups.values())
    tolerance = 0.05 if dtype == torch.float16 else 0.2
    found = float32_copies(optimizer, parameters)
    largest = max(parameter.grad.norm() for parameter in copies.parameters())
    for (_, names), (_, gradient) in zip(groups.values(), found, strict=True):
        layers = {id(named[name]): named[name].grad for name in names}
        total = sum(layers.values())
        difference = gradient.float().view_as(total) / scale - total
        # a key's bias has a gradient of 0, which rounding makes noise
        assert difference.norm() < tolerance * total.norm() + 1e-4 * largest, names

    before = [parameter.detach().clone() for parameter in parameters]
    optimizer.multiply_grads(0.01)
    optimizer.clip_grad_norm(1.0)
    optimizer.step()
    for was, (parameter, names), (copy, _) in zip(
        before, groups.values(), float32_copies(optimizer, parameters), strict=True
    ):
        if copy is not None:
            assert torch.equal(parameter.detach().flatten(), copy.to(dtype).flatten()), names
        assert (parameter != was).any() or "k_proj.bias" in names[0], names
    assert len({tensor.data_ptr() for tensor in dict(model.named_parameters()).values()}) == len(parameters)
    after = all_weights(model)
    assert all(torch.equal(after[names[0]], after[name]) for _, names in groups.values() for name in names)
