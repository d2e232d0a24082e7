"""`owf doctor`: each problem from facts alone, and the real installation."""

import dataclasses
import json

import pytest

import owf_fairseq
from owf_fairseq import cli
from owf_fairseq.cli import doctor as command
from owf_fairseq.doctor import installation
from owf_fairseq.doctor.doctor import covers, problems
from owf_fairseq.doctor.gpus import LAST_TORCH_FOR_V100, Gpu
from owf_fairseq.doctor.installation import Facts
from owf_fairseq.sharing import ARCHS

SITE = "/venv/lib/python3.11/site-packages"
CU130 = ("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120")
V100, H200, NEW = Gpu("Tesla V100", (7, 0)), Gpu("H200", (9, 0)), Gpu("Next", (13, 0))
GOOD = Facts(
    versions={
        "pip": "25.0",
        "setuptools": "80.9.0",
        "numpy": "1.26.4",
        "sentencepiece": "0.2.0",
        "sacrebleu": "2.6.0",
        "unbabel-comet": None,
        "ctranslate2": None,
        "matplotlib": None,
    },
    fairseq_distributions={"ve-fairseq": "0.12.3"},
    fairseq_location=f"{SITE}/fairseq",
    torch_version="2.13.0+cpu",
    plugin_version="0.1.0",
    plugin_locations=(f"{SITE}/owf_fairseq",),
    archs=100,
    registered_archs=100,
)
GPU = {"torch_version": "2.13.0", "torch_cuda": "13.0", "torch_architectures": CU130, "nvidia_driver": True}
OLDER = ["`pip install -c constraints-cuda12.txt .`", f"torchaudio=={LAST_TORCH_FOR_V100}`"]
OFFICIAL = {"fairseq_distributions": {"fairseq": "0.12.2"}}
NO_FAIRSEQ = {"fairseq_distributions": {}, "fairseq_location": None}


def good_but(*, versions=None, **changes):
    return dataclasses.replace(GOOD, versions={**GOOD.versions, **(versions or {})}, **changes)


@pytest.mark.parametrize(
    "facts",
    [
        GOOD,
        good_but(python=(3, 10, 14), **OFFICIAL),
        good_but(versions={"unbabel-comet": "2.2.7", "numpy": "1.26.4"}),
        good_but(versions={"numpy": "2.1.0"}),
        good_but(**GPU, gpus=(H200, H200)),
        good_but(**{**GPU, "torch_version": "2.10.0", "torch_architectures": ("sm_70", *CU130)}, gpus=(V100,)),
        good_but(torch_version="2.10.0+rocm", gpus=(Gpu("MI300", (9, 4)),)),
        good_but(torch_version="2.4.0"),
    ],
)
def test_all_is_well(facts):
    assert problems(facts) == []


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        (good_but(python=(3, 13, 0)), ["Python 3.13.0 is not supported", "3.12"]),
        (good_but(**NO_FAIRSEQ), ["fairseq is not installed", "`pip install ve-fairseq==0.12.3`"]),
        (good_but(platform="Darwin", machine="arm64", **NO_FAIRSEQ), ["`pip install fairseq-fixed==0.12.3.1`"]),
        (good_but(machine="aarch64", **NO_FAIRSEQ), ["`pip install fairseq-fixed==0.12.3.1`"]),
        (
            good_but(python=(3, 10, 14), **NO_FAIRSEQ),
            ["`pip install 'pip<24.1'`", "and then `pip install fairseq==0.12.2`"],
        ),
        (
            good_but(fairseq_error="ValueError: mutable default <class 'X'> for field common", **OFFICIAL),
            ["fairseq 0.12.2", "Python 3.11.0", "mutable defaults", "`pip uninstall fairseq`", "ve-fairseq==0.12.3"],
        ),
        (
            good_but(
                fairseq_error="ValueError: mutable default <class 'X'>",
                fairseq_distributions={},
                fairseq_location="/home/me/fairseq/fairseq",
            ),
            ["a source checkout", "take /home/me/fairseq/fairseq off the import path", "ve-fairseq==0.12.3"],
        ),
        (
            good_but(fairseq_error="mutable default", fairseq_location="/home/me/fairseq/fairseq"),
            ["ve-fairseq 0.12.3, a source checkout", "take /home/me/fairseq/fairseq off the import path"],
        ),
        (
            good_but(fairseq_error="ImportError: no hydra"),
            ["fairseq (ve-fairseq 0.12.3) cannot be imported: ImportError: no hydra"],
        ),
        (
            good_but(fairseq_distributions={"fairseq": "0.12.2", "ve-fairseq": "0.12.3"}),
            ["fairseq and ve-fairseq are installed at once", "`pip uninstall fairseq ve-fairseq`", "`pip install ve-"],
        ),
        (good_but(versions={"numpy": "2.1.0"}, **OFFICIAL), ["numpy 2.1.0", "fairseq 0.12.2", "'numpy<2'"]),
        (good_but(versions={"numpy": "2.1.0", "unbabel-comet": "2.2.7"}), ["numpy 2.1.0", "COMET", "'numpy<2'"]),
        (good_but(versions={"setuptools": "81.0", "unbabel-comet": "2.2.7"}), ["pkg_resources", "'setuptools<81'"]),
        (good_but(versions={"sacrebleu": None}), ["sacrebleu is not installed", "`pip install sacrebleu`"]),
        (good_but(torch_version="2.3.1+cu118"), ["torch 2.3.1+cu118 is too old", "2.4"]),
        (good_but(torch_version=None), ["torch is not installed", "`pip install torch`"]),
        (good_but(torch_version=None, driver_gpus=(V100,)), [f"`pip install torch=={LAST_TORCH_FOR_V100} torchaudio="]),
        (good_but(torch_error="OSError: libcudart.so"), ["torch cannot be imported: OSError: libcudart.so"]),
        (
            good_but(**GPU, gpus=(V100, V100)),
            ["Tesla V100 (sm_70)", "torch 2.13.0 is for sm_75, sm_80", *OLDER],
        ),
        (good_but(**GPU, gpus=(Gpu("GTX 1080", (6, 1)), H200)), ["GTX 1080 (sm_61)", "an older torch"]),
        (good_but(**GPU, gpus=(NEW,)), ["Next (sm_130)", "newer", "--upgrade torch"]),
        (
            good_but(**GPU, driver_gpus=(V100, H200)),
            ["torch sees no GPU", "V100 (sm_70), H200", *OLDER],
        ),
        (good_but(**GPU), ["an NVIDIA driver, but torch sees no GPU", "CUDA 13.0", "CUDA_VISIBLE_DEVICES"]),
        (good_but(nvidia_driver=True), ["an NVIDIA driver, but torch sees no GPU", "a build for CPUs"]),
        (
            good_but(plugin_locations=(f"{SITE}/owf_fairseq", "/home/me/owf_fairseq")),
            ["more than once", f"{SITE}/owf_fairseq and in /home/me/owf_fairseq", "--user-dir"],
        ),
        (good_but(plugin_error="ImportError: x"), ["owf_fairseq cannot be imported: ImportError: x"]),
        (good_but(registered_archs=99), ["99", "100 archs"]),
    ],
)
def test_each_problem(facts, said):
    [problem] = problems(facts)
    for text in said:
        assert text in problem


def test_several_problems_are_all_told():
    facts = good_but(python=(3, 9, 1), torch_version="1.13.1", versions={"numpy": None}, **NO_FAIRSEQ)
    assert len(problems(facts)) == 4


@pytest.mark.parametrize(
    ("architectures", "capability", "runs"),
    [
        (("sm_80",), (8, 0), True),
        (("sm_80",), (8, 9), True),
        (("sm_86",), (8, 0), False),
        (("sm_80",), (9, 0), False),
        (("sm_80", "compute_80"), (9, 0), True),
        (("compute_90",), (8, 0), False),
        (("sm_90a",), (9, 0), True),
        (("sm_120",), (12, 0), True),
        (("sm_120",), (12, 1), True),
        (("sm_100",), (12, 0), False),
        ((), (7, 0), False),
    ],
)
def test_what_a_gpu_runs(architectures, capability, runs):
    assert covers(architectures, capability) is runs


def test_this_installation():
    facts = installation.installation_facts()
    assert facts.torch_version
    assert (facts.fairseq_error, facts.torch_error, facts.plugin_error) == ("", "", "")
    assert facts.fairseq_location
    assert facts.registered_archs == facts.archs == len(ARCHS)
    # a second copy may be there: the checkout beside the installed package
    assert facts.plugin_locations[0] == owf_fairseq.USER_DIR
    assert set(facts.fairseq_distributions) <= set(installation.FAIRSEQ_DISTRIBUTIONS)


@pytest.fixture
def imports_with(tmp_path, monkeypatch):
    """What the imports tell where ``fairseq`` is the given code."""

    def imports(code):
        package = tmp_path / "fairseq"
        package.mkdir()
        (package / "__init__.py").write_text(code)
        monkeypatch.syspath_prepend(tmp_path)
        return installation._imports()

    return imports


def test_an_import_that_fails_is_a_fact(imports_with):
    facts = imports_with("print('noise')\nraise ValueError('first line\\nmutable default <x>')\n")
    assert facts["fairseq_error"] == "ValueError: mutable default <x>"
    assert "plugin_error" in facts
    assert facts["torch_version"]


def test_an_import_that_crashes_is_a_fact(imports_with):
    facts = imports_with("import os, sys\nprint('why', file=sys.stderr, flush=True)\nos._exit(7)\n")
    assert facts["fairseq_error"] == "the import ended Python with status 7: why"


def test_every_copy_on_the_path_is_found(tmp_path, monkeypatch):
    for folder in ("one", "two"):
        (tmp_path / folder / "some_package").mkdir(parents=True)
        (tmp_path / folder / "some_package" / "__init__.py").touch()
    (tmp_path / "three" / "some_package").mkdir(parents=True)  # no package
    for folder in ("three", "two", "one", "one/"):
        monkeypatch.syspath_prepend(str(tmp_path / folder))
    assert installation.package_locations("some_package") == [
        str(tmp_path / "one" / "some_package"),
        str(tmp_path / "two" / "some_package"),
    ]
    assert installation.package_locations("no_such_package") == []


@pytest.mark.parametrize(("facts", "status"), [(GOOD, 0), (good_but(**NO_FAIRSEQ, torch_version=None), 1)])
def test_what_it_prints(facts, status, capsys, monkeypatch):
    monkeypatch.setattr(command, "installation_facts", lambda: facts)
    assert cli.main(["doctor"]) == status
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert lines[0].split() == ["owf_fairseq", "0.1.0,", "100", "archs", f"({SITE}/owf_fairseq)"]
    assert "unbabel-comet  not installed  (optional: extra `comet`)" in lines
    if status == 0:
        assert lines[-1] == "No problems found."
        assert any(line.startswith("fairseq") and "ve-fairseq 0.12.3" in line for line in lines)
    else:
        assert lines[-3] == "2 problems:"
        assert all(line.startswith("- ") for line in lines[-2:])


def test_gpus_are_named(capsys, monkeypatch):
    monkeypatch.setattr(command, "installation_facts", lambda: good_but(**GPU, gpus=(H200,)))
    assert cli.main(["doctor"]) == 0
    assert "13.0  (H200 sm_90; torch is built for sm_75" in capsys.readouterr().out


def test_json(capsys, monkeypatch):
    monkeypatch.setattr(command, "installation_facts", lambda: good_but(**GPU, gpus=(V100,)))
    assert cli.main(["doctor", "--json"]) == 1
    printed = json.loads(capsys.readouterr().out)
    assert printed["fairseq_distributions"] == {"ve-fairseq": "0.12.3"}
    assert len(printed["problems"]) == 1
