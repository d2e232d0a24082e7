"""What pyproject.toml requires, constraints.txt pins, `owf doctor` recommends and the documents say is one decision."""

import re
import sys

import pytest
from fairseq_for_tests import REPOSITORY
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from owf_fairseq.doctor.doctor import OLDEST_TORCH, problems, recommended_fairseq
from owf_fairseq.doctor.gpus import CONSTRAINTS, LAST_TORCH_FOR_V100, OLDER_GPUS_CONSTRAINTS
from owf_fairseq.doctor.installation import FAIRSEQ_DISTRIBUTIONS, OPTIONAL_PARTS, REQUIRED_PARTS, Facts

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
REQUIREMENTS = [Requirement(line) for line in PROJECT["dependencies"]]
ALL_REQUIREMENTS = REQUIREMENTS + [Requirement(line) for lines in EXTRAS.values() for line in lines]
PYTHONS = SpecifierSet(PROJECT["requires-python"])
MINORS = [minor for minor in range(6, 20) if f"3.{minor}.1" in PYTHONS]
PLATFORMS = [("Linux", "x86_64"), ("Linux", "aarch64"), ("Darwin", "arm64"), ("Darwin", "x86_64")]
INSTALLATION = "docs/installation.md"
FAIRSEQS = {each.name: str(each.specifier).removeprefix("==") for each in REQUIREMENTS if "fairseq" in each.name}


def read_constraints(name):
    """The versions of a file, and of those that it names."""
    for line in text(name).splitlines():
        if line.startswith("-c "):
            yield from read_constraints(line.removeprefix("-c "))
        elif line and not line.startswith("#"):
            yield Requirement(line)


each_environment = pytest.mark.parametrize(
    ("minor", "platform", "machine"), [(minor, *place) for minor in MINORS for place in PLATFORMS]
)


def applying(requirements, minor, platform, machine):
    """The requirements whose markers hold there."""
    environment = {
        "python_version": f"3.{minor}",
        "python_full_version": f"3.{minor}.1",
        "platform_system": platform,
        "platform_machine": machine,
        "sys_platform": platform.lower(),
    }
    return [each for each in requirements if each.marker is None or each.marker.evaluate(environment)]


def text(name):
    return (REPOSITORY / name).read_text(encoding="utf-8")


@each_environment
def test_the_doctor_recommends_the_fairseq_that_is_required(minor, platform, machine):
    [required] = [each for each in applying(REQUIREMENTS, minor, platform, machine) if "fairseq" in each.name]
    facts = Facts(python=(3, minor, 1), platform=platform, machine=machine)
    assert recommended_fairseq(facts) == f"{required.name}{required.specifier}"


@pytest.mark.parametrize("constraints", [CONSTRAINTS, OLDER_GPUS_CONSTRAINTS])
@each_environment
def test_the_constraints_pin_what_is_required(minor, platform, machine, constraints):
    pinned = {}
    for each in applying(list(read_constraints(constraints)), minor, platform, machine):
        [version] = each.specifier
        assert version.operator == "=="
        assert each.name not in pinned
        pinned[each.name] = version.version
    for required in applying(ALL_REQUIREMENTS, minor, platform, machine):
        if required.name not in FAIRSEQS:  # pinned in pyproject.toml itself
            assert pinned[required.name] in required.specifier
    # fairseq 0.12.2 needs omegaconf < 2.1 and hydra < 1.1; fairseq-fixed just these
    hydra = ("1.0.7", "2.0.6") if minor < 11 else ("1.3.2", "2.3.0")
    assert (pinned["hydra-core"], pinned["omegaconf"]) == hydra


def test_the_constraints_differ_in_torch_only():
    usual, older = (
        dict(str(each).split("==") for each in read_constraints(name) if not each.marker)
        for name in (CONSTRAINTS, OLDER_GPUS_CONSTRAINTS)
    )
    assert {name for name in {**usual, **older} if usual.get(name) != older.get(name)} == {"torch", "torchaudio"}
    assert older["torch"] == older["torchaudio"] == LAST_TORCH_FOR_V100
    assert f"pip install -c {OLDER_GPUS_CONSTRAINTS} ." in text(INSTALLATION)


def test_the_doctor_knows_the_oldest_torch():
    [torch] = [each for each in REQUIREMENTS if each.name == "torch"]
    assert str(torch.specifier) == f">={OLDEST_TORCH}"


def test_the_builds_of_fairseq_have_one_version_everywhere():
    assert set(FAIRSEQS) == set(FAIRSEQ_DISTRIBUTIONS)
    names = "|".join(sorted(FAIRSEQS, key=len, reverse=True))
    files = (
        *(INSTALLATION, "constraints-common.txt", "scripts/lib.sh", "scripts/test_matrix.sh"),
        "owf_fairseq/doctor/doctor.py",
    )
    # `fairseq` 0.12.2, fairseq==0.12.2, or with a line break in a comment between the two
    said = {file: re.findall(rf"(?<![\w-])({names})`?(?:==|[\s#]+)(\d+(?:\.\d+)+)", text(file)) for file in files}
    for file, versions in said.items():
        assert all(version == FAIRSEQS[name] for name, version in versions), file
    for file in (INSTALLATION, "owf_fairseq/doctor/doctor.py"):
        assert set(FAIRSEQS) <= {name for name, _ in said[file]}
    assert "fairseq-fixed" in {name for name, _ in said["scripts/test_matrix.sh"]}


def test_the_documented_table_of_fairseqs():
    lines = text(INSTALLATION).split("| Python | fairseq that is installed | |\n")[1].split("\n\n")[0].splitlines()[1:]
    seen = set()
    for line in lines:
        where, what, _ = (cell.strip() for cell in line.strip("|").split("|"))
        name, version = re.match(r"`([\w-]+)` ([\d.]+)", what).groups()
        for minor in map(int, re.findall(r"\b3\.(\d+)", where)):
            for platform, machine in PLATFORMS:
                on_x86 = (platform, machine) == ("Linux", "x86_64")
                if ("Linux x86-64" in where and not on_x86) or ("elsewhere" in where and on_x86):
                    continue
                facts = Facts(python=(3, minor, 1), platform=platform, machine=machine)
                assert recommended_fairseq(facts) == f"{name}=={version}"
                seen.add((minor, platform, machine))
    assert seen == {(minor, *place) for minor in MINORS for place in PLATFORMS}


@pytest.mark.parametrize("minor", range(8, 16))
def test_the_doctor_knows_the_supported_pythons(minor):
    refused = any("is not supported" in problem for problem in problems(Facts(python=(3, minor, 1))))
    assert refused == (minor not in MINORS)


def test_the_supported_pythons_are_named():
    classifiers = [line for line in PROJECT["classifiers"] if "Python :: 3." in line]
    assert classifiers == [f"Programming Language :: Python :: 3.{minor}" for minor in MINORS]
    named = ", ".join(f"3.{minor}" for minor in MINORS[:-1]) + f" or 3.{MINORS[-1]}"
    for file in ("README.md", INSTALLATION, "scripts/lib.sh", "owf_fairseq/doctor/doctor.py"):
        assert named in text(file), file


@pytest.mark.parametrize("version", ["1.13.1", "2.0.1", "2.1.0", "2.10.0"])
def test_the_doctor_refuses_the_torch_that_is_too_old(version):
    [required] = [each for each in REQUIREMENTS if each.name == "torch"]
    too_old = any("too old" in problem for problem in problems(Facts(torch_version=version)))
    assert too_old == (version not in required.specifier)
    assert f"torch=={LAST_TORCH_FOR_V100}" in text(INSTALLATION)


def test_the_doctor_looks_at_what_is_required():
    assert set(REQUIRED_PARTS) <= {each.name for each in REQUIREMENTS}
    for name, extra in OPTIONAL_PARTS.items():
        assert name in {Requirement(line).name for line in EXTRAS[extra]}


def test_the_extras_that_documents_name_exist():
    documents = [REPOSITORY / "README.md", *(REPOSITORY / "docs").rglob("*.md")]
    named = [names for path in documents for names in re.findall(r"'\.\[([\w,]+)\]'", path.read_text("utf-8"))]
    assert named
    assert {name for names in named for name in names.split(",")} <= set(EXTRAS)
