"""What is installed: Python, fairseq, torch, the GPUs and the optional parts. ``doctor.py`` judges it.

Nothing here fails where something cannot be imported: imports are tried in another process, and their error is a fact.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from owf_fairseq import __version__
from owf_fairseq.doctor.gpus import Gpu, driver_gpus
from owf_fairseq.sharing import ARCHS

FAIRSEQ_DISTRIBUTIONS = ("fairseq", "ve-fairseq", "fairseq-fixed")
"""What pip can install under the import name ``fairseq``."""

REQUIRED_PARTS = ("numpy", "sentencepiece", "sacrebleu")

OPTIONAL_PARTS = {"unbabel-comet": "comet", "ctranslate2": "export", "matplotlib": "plot", "eflomal": "shortlist"}
"""Distributions that single subcommands need, and the extra of this package that installs each."""

IMPORT_TIMEOUT_S = 300
"""Seconds that the imports may take; a cold disk needs a minute."""


@dataclass(frozen=True)
class Facts:
    """An installation. An error is the import's last line, empty if it worked; what is not there is empty or None.

    Attributes:
        python: version. platform: ``Linux``, ``Darwin``, ... machine: ``x86_64``, ...
        versions: of installed distributions, None for those that are not.
        fairseq_distributions: those that install a package ``fairseq``, with their versions.
        fairseq_location: the folder that ``import fairseq`` finds.
        torch_cuda: the CUDA version that torch was built with.
        torch_architectures: the GPUs that torch was built for: ``sm_70``, ``compute_90``, ...
        gpus: that torch sees.
        driver_gpus: that NVIDIA's driver knows, which torch may not see.
        nvidia_driver: whether the machine has NVIDIA's driver.
        plugin_locations: every copy of this package on the import path.
        archs, registered_archs: how many this package names, and how many fairseq knows.
    """

    python: tuple[int, int, int] = (3, 11, 0)
    platform: str = "Linux"
    machine: str = "x86_64"
    versions: dict[str, str | None] = field(default_factory=dict)
    fairseq_distributions: dict[str, str] = field(default_factory=dict)
    fairseq_location: str | None = None
    fairseq_error: str = ""
    torch_version: str | None = None
    torch_error: str = ""
    torch_cuda: str | None = None
    torch_architectures: tuple[str, ...] = ()
    gpus: tuple[Gpu, ...] = ()
    driver_gpus: tuple[Gpu, ...] = ()
    nvidia_driver: bool = False
    plugin_version: str = ""
    plugin_locations: tuple[str, ...] = ()
    plugin_error: str = ""
    archs: int = 0
    registered_archs: int = 0

    @property
    def fairseq_is_checkout(self) -> bool:
        """Whether ``import fairseq`` finds a folder that pip has not made."""
        parts = set(Path(self.fairseq_location or "").parts)
        return self.fairseq_location is not None and not parts & {"site-packages", "dist-packages"}

    @property
    def fairseq_source(self) -> str:
        """Which fairseq this is: the distribution and its version, or a checkout that pip knows nothing of."""
        if self.fairseq_location is None:
            return "not installed"
        names = [f"{name} {version}" for name, version in self.fairseq_distributions.items()]
        if self.fairseq_is_checkout:
            names.append("a source checkout")
        return ", ".join(names) or "of unknown origin"


def installation_facts() -> Facts:
    """Looks at the Python that runs this."""
    gpus = driver_gpus()
    facts: dict[str, Any] = {
        "python": tuple(sys.version_info[:3]),
        "platform": platform.system(),
        "machine": platform.machine(),
        "versions": {name: _version(name) for name in ("pip", "setuptools", *REQUIRED_PARTS, *OPTIONAL_PARTS)},
        "fairseq_distributions": {
            name: version for name in FAIRSEQ_DISTRIBUTIONS if (version := _version(name)) is not None
        },
        "fairseq_location": next(iter(package_locations("fairseq")), None),
        "torch_version": _version("torch"),
        "driver_gpus": gpus,
        # where a container hides the one, there is the other
        "nvidia_driver": bool(gpus) or Path("/proc/driver/nvidia/version").exists(),
        "plugin_version": __version__,
        "plugin_locations": tuple(package_locations("owf_fairseq")),
        "archs": len(ARCHS),
    }
    imported = _imports()
    facts["gpus"] = tuple(Gpu(name, (major, minor)) for name, major, minor in imported.pop("gpus", ()))
    facts["torch_architectures"] = tuple(imported.pop("torch_architectures", ()))
    return Facts(**{**facts, **imported})


def package_locations(name: str) -> list[str]:
    """The folder of every copy of a package on the import path, the one that ``import`` takes first."""
    spec = importlib.util.find_spec(name)  # of a package: finds it without importing it
    found = [Path(folder) for folder in (spec.submodule_search_locations or () if spec else ())]
    found += [Path(entry or ".", name) for entry in sys.path]
    return list(dict.fromkeys(str(folder.resolve()) for folder in found if (folder / "__init__.py").is_file()))


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _imports() -> dict[str, Any]:
    """What only importing tells, from a process of its own: an import may crash, and it prints."""
    code = (
        f"import sys; sys.path[:] = {sys.path!r}; "
        "from owf_fairseq.doctor.installation import print_imports; print_imports()"
    )
    try:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=IMPORT_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return {"torch_error": f"importing it and fairseq took more than {IMPORT_TIMEOUT_S} s"}
    facts: dict[str, Any] = {}
    for line in done.stdout.splitlines():
        if line.startswith(FACTS_MARK):
            facts |= json.loads(line.removeprefix(FACTS_MARK))
    if done.returncode:
        next_import = "fairseq_error" if "torch_version" in facts else "torch_error"
        facts[next_import] = f"the import ended Python with status {done.returncode}: {_last_line(done.stderr)}"
    return facts


FACTS_MARK = "owf doctor: "


def print_imports() -> None:
    """Imports torch, fairseq and this package, one after the other, and prints what each tells as a line of JSON."""
    for look in (_look_at_torch, _look_at_fairseq, _look_at_plugin):
        facts: dict[str, Any] = {}
        try:
            look(facts)
        except Exception as error:  # whatever stands in the way is what the user wants to know
            part = look.__name__.removeprefix("_look_at_")
            facts[f"{part}_error"] = f"{type(error).__name__}: {_last_line(str(error))}"
        print(f"\n{FACTS_MARK}{json.dumps(facts)}", flush=True)


def _look_at_torch(facts: dict[str, Any]) -> None:
    if _version("torch") is None:
        return
    import torch

    facts |= {"torch_version": str(torch.__version__), "torch_cuda": torch.version.cuda}
    if torch.cuda.is_available():
        facts["torch_architectures"] = torch.cuda.get_arch_list()
        facts["gpus"] = [
            (torch.cuda.get_device_name(gpu), *torch.cuda.get_device_capability(gpu))
            for gpu in range(torch.cuda.device_count())
        ]


def _look_at_fairseq(facts: dict[str, Any]) -> None:
    if importlib.util.find_spec("fairseq") is not None:
        importlib.import_module("fairseq.models")


def _look_at_plugin(facts: dict[str, Any]) -> None:
    if importlib.util.find_spec("fairseq") is None:
        return
    importlib.import_module("owf_fairseq.models")
    known = importlib.import_module("fairseq.models").ARCH_MODEL_REGISTRY
    facts["registered_archs"] = sum(arch in known for arch in ARCHS)


def _last_line(text: str) -> str:
    """Where Python puts the reason."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return re.sub(r"\s+", " ", lines[-1])[:300] if lines else "no message"


def machine_facts(device: str) -> dict[str, Any]:
    """Versions and the machine, without names of hosts, users or folders.

    Args:
        device: what models run on, as users know it.
    """
    installed = {found.metadata["Name"]: found.version for found in importlib.metadata.distributions()}
    names = [name for name in ("torch", *FAIRSEQ_DISTRIBUTIONS, "ctranslate2") if name in installed]
    versions = {"owf_fairseq": __version__, "python": platform.python_version()}
    return {
        "versions": {**versions, **{name: installed[name] for name in names}},
        "machine": {
            "system": platform.system(),
            "architecture": platform.machine(),
            "cpus": os.cpu_count(),
            "device": device,
        },
    }
