"""What is wrong with an installation, in plain words, and what to do about it."""

from __future__ import annotations

import re

from owf_fairseq.doctor.gpus import LAST_TORCH_FOR_V100, OLDER_GPUS_CONSTRAINTS, needs_older_torch
from owf_fairseq.doctor.installation import REQUIRED_PARTS, Facts

OLDEST_TORCH = "2.4"

OLDER_TORCH = f"torch=={LAST_TORCH_FOR_V100} torchaudio=={LAST_TORCH_FOR_V100}"
HOW_FOR_OLDER_GPUS = (
    f"{LAST_TORCH_FOR_V100} is the last torch for GPUs of the V100's age (CUDA 13 has dropped them): `pip install -c "
    f"{OLDER_GPUS_CONSTRAINTS} .` in a checkout of this package, or `pip install {OLDER_TORCH}`"
)


def recommended_fairseq(facts: Facts) -> str:
    """What to install on this Python and platform, as pip takes it."""
    if facts.python < (3, 11):
        return "fairseq==0.12.2"
    if facts.platform == "Linux" and facts.machine == "x86_64":
        return "ve-fairseq==0.12.3"
    return "fairseq-fixed==0.12.3.1"


def problems(facts: Facts) -> list[str]:
    """Everything that is wrong, with what to do; empty if all is well."""
    return [
        *_python_problems(facts),
        *_fairseq_problems(facts),
        *_torch_problems(facts),
        *_gpu_problems(facts),
        *_part_problems(facts),
        *_plugin_problems(facts),
    ]


def _python_problems(facts: Facts) -> list[str]:
    if (3, 10) <= facts.python < (3, 13):
        return []
    return [f"Python {_dotted(facts.python)} is not supported, because no fairseq is: use Python 3.10, 3.11 or 3.12"]


def _fairseq_problems(facts: Facts) -> list[str]:
    found = []
    install = f"`pip install {recommended_fairseq(facts)}`"
    if facts.python < (3, 11) and _release(facts.versions.get("pip")) >= (24, 1):
        install = f"`pip install 'pip<24.1'` (newer ones refuse what fairseq 0.12.2 needs) and then {install}"
    if facts.fairseq_location is None:
        found.append(f"fairseq is not installed: {install}")
    elif "mutable default" in facts.fairseq_error:
        remove = f"take {facts.fairseq_location} off the import path"
        if facts.fairseq_distributions and not facts.fairseq_is_checkout:
            remove = f"`pip uninstall {' '.join(facts.fairseq_distributions)}`"
        found.append(
            f"this fairseq ({facts.fairseq_source}) cannot be imported on Python {_dotted(facts.python)}: its "
            "dataclasses have mutable defaults, which Python refuses since 3.11. Either use Python 3.10, or "
            f"{remove} and then {install}, a build for this Python"
        )
    elif facts.fairseq_error:
        found.append(f"fairseq ({facts.fairseq_source}) cannot be imported: {facts.fairseq_error}")
    if len(facts.fairseq_distributions) > 1:
        names = list(facts.fairseq_distributions)
        found.append(
            f"{' and '.join(names)} are installed at once and overwrite each other's files: `pip uninstall "
            f"{' '.join(names)}` and then {install}"
        )
    return found


def _torch_problems(facts: Facts) -> list[str]:
    if facts.torch_error:
        return [f"torch cannot be imported: {facts.torch_error}"]
    if facts.torch_version is None:
        torch = OLDER_TORCH if needs_older_torch(facts.driver_gpus) else "torch"
        return [f"torch is not installed: `pip install {torch}`"]
    if _release(facts.torch_version) < _release(OLDEST_TORCH):
        return [
            f"torch {facts.torch_version} is too old, {OLDEST_TORCH} or later is needed: `pip install --upgrade torch`"
        ]
    return []


def _gpu_problems(facts: Facts) -> list[str]:
    found = []
    for gpu in dict.fromkeys(facts.gpus):
        if facts.torch_cuda is None or covers(facts.torch_architectures, gpu.capability):
            continue
        built = ", ".join(facts.torch_architectures) or "no GPU"
        message = f"the GPU {gpu.name} ({gpu.architecture}) cannot be used: torch {facts.torch_version} is for {built}"
        oldest = min((number for kind, number in map(_architecture, facts.torch_architectures)), default=0)
        if needs_older_torch([gpu]) and oldest > 70:
            message += f". {HOW_FOR_OLDER_GPUS}"
        elif 10 * gpu.capability[0] + gpu.capability[1] < oldest:
            message += ". It is older than that: install an older torch, or use another GPU"
        else:
            message += ". It is newer than that: `pip install --upgrade torch`"
        found.append(message)
    if facts.nvidia_driver and facts.torch_version and not facts.torch_error and not facts.gpus:
        reason = (
            f"is built for CUDA {facts.torch_cuda}, too new for the driver perhaps, or CUDA_VISIBLE_DEVICES hides all"
            if facts.torch_cuda
            else "is a build for CPUs"
        )
        message = f"there is an NVIDIA driver, but torch sees no GPU: torch {facts.torch_version} {reason}"
        if needs_older_torch(facts.driver_gpus) and _release(facts.torch_version) > _release(LAST_TORCH_FOR_V100):
            names = ", ".join(dict.fromkeys(f"{gpu.name} ({gpu.architecture})" for gpu in facts.driver_gpus))
            message += f". The driver names {names}. {HOW_FOR_OLDER_GPUS}"
        found.append(message)
    return found


def _part_problems(facts: Facts) -> list[str]:
    def release(name: str) -> tuple[int, ...]:
        return _release(facts.versions.get(name))

    found = [
        f"{name} is not installed: `pip install {name}`" for name in REQUIRED_PARTS if facts.versions.get(name) is None
    ]
    if release("numpy") >= (2,):
        official = facts.fairseq_distributions.get("fairseq")
        users = [f"fairseq {official}"] if official else []
        users += ["COMET"] if release("unbabel-comet") else []
        if users:
            found.append(
                f"numpy {facts.versions['numpy']} is newer than {' and '.join(users)} can be trusted with: "
                "`pip install 'numpy<2'`"
            )
    if release("unbabel-comet") and release("setuptools") >= (81,):
        found.append(
            f"setuptools {facts.versions['setuptools']} has no pkg_resources any more, which COMET imports: "
            "`pip install 'setuptools<81'`"
        )
    return found


def _plugin_problems(facts: Facts) -> list[str]:
    found = []
    if len(facts.plugin_locations) > 1:
        found.append(
            f"owf_fairseq is on the import path more than once, in {' and in '.join(facts.plugin_locations)}: fairseq "
            "refuses one as `--user-dir` where Python has loaded the other. Uninstall one, or take it from PYTHONPATH"
        )
    if facts.fairseq_location is None or facts.fairseq_error or facts.torch_error:
        return found  # the plugin cannot work, and the reason has been told
    if facts.plugin_error:
        found.append(f"owf_fairseq cannot be imported: {facts.plugin_error}")
    elif facts.registered_archs != facts.archs:
        found.append(f"fairseq knows {facts.registered_archs} of this package's {facts.archs} archs: install it anew")
    return found


def covers(architectures: tuple[str, ...], capability: tuple[int, int]) -> bool:
    """Whether code built for these runs on a GPU: ``sm_80`` on 8.x from 8.0 on, ``compute_80`` on all later ones."""
    number = 10 * capability[0] + capability[1]
    return any(
        built <= number and (kind == "compute" or built // 10 == capability[0])
        for kind, built in map(_architecture, architectures)
    )


def _architecture(name: str) -> tuple[str, int]:
    """``sm_90`` as ("sm", 90); ``sm_90a``, which runs on nothing else, as ("sm", 90) too."""
    match = re.match(r"(sm|compute)_(\d+)", name)
    return (match[1], int(match[2])) if match else ("", 0)


def _release(version: str | None) -> tuple[int, ...]:
    """``2.13.0+cpu`` as (2, 13, 0); empty, and so below every version, where nothing is installed."""
    match = re.match(r"\d+(\.\d+)*", version or "")
    return tuple(map(int, match[0].split("."))) if match else ()


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
