"""What the README says is true: its commands run as printed, its names exist, its tables are the code's."""

import re
import shlex

import pytest
from fairseq_for_tests import REPOSITORY, spawn

from owf_fairseq import USER_DIR, cli
from owf_fairseq.paper.rows import VOCAB_SIZES
from owf_fairseq.parameters import count_parameters
from owf_fairseq.sharing import (
    ARCHS,
    CONFIGURATIONS,
    DECODER_ONLY_CONFIGURATIONS,
    SIZES,
    STRATEGIES,
    arch_name,
    make_pattern,
)

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
COMMANDS = [
    shlex.split(command, comments=True)
    for block in re.findall(r"```bash\n(.*?)```", README, re.DOTALL)
    for command in block.replace("\\\n", " ").strip().split("\n")
]
ON_A_MODEL = [command for command in COMMANDS if command[0] == "owf" and any("runs/" in word for word in command)]
PYTHON = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def rows(header):
    """The cells of the table with this header."""
    lines = README.split(header)[1].split("\n\n")[0].strip().splitlines()[1:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.fixture(scope="module")
def quickstart_folder(tmp_path_factory):
    """A folder as it is after the quickstart: the package, and toy text prepared where the README looks for it."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "owf_fairseq").symlink_to(USER_DIR)
    corpus = folder / "runs/quickstart-en-de/raw"
    corpus.mkdir(parents=True)
    for split, sentences in (("train", 200), ("valid", 10), ("test", 10)):
        english = [f"turn on light number {number} in room {number % 7}" for number in range(sentences)]
        (corpus / f"{split}.en").write_text("\n".join(english) + "\n")
        (corpus / f"{split}.de").write_text("\n".join(line.upper() for line in english) + "\n")
    prefixes = [argument for split in ("train", "valid", "test") for argument in (f"--{split}", str(corpus / split))]
    data = str(folder / "runs/quickstart-en-de/data")
    assert cli.main(["prepare", *prefixes, "--langs", "en-de", "--vocab-size", "120", "--output", data]) == 0
    return folder


def test_nothing_is_left_to_fill_in():
    assert "@@" not in README


def test_every_link_into_the_repository_leads_somewhere():
    links = re.findall(r"\]\(([^)#:]+)\)", README)
    assert links
    for link in links:
        assert (REPOSITORY / link).exists(), link
    for picture in re.findall(r"!\[[^]]*\]\(([^)]+)\)", (REPOSITORY / "docs/warm_start/README.md").read_text()):
        assert (REPOSITORY / "docs/warm_start" / picture).is_file()


def test_every_kind_of_command_is_there():
    programs = [command[0] for command in COMMANDS]
    assert {"bash", "owf", "pip", "fairseq-train", "fairseq-generate"} == set(programs)


@pytest.mark.parametrize("command", [c for c in COMMANDS if c[0] == "owf" and c not in ON_A_MODEL], ids=" ".join)
def test_owf_command(command, capsys):
    assert cli.main(command[1:]) in ((0,) if command[1] != "doctor" else (0, 1))
    assert capsys.readouterr().out


@pytest.mark.parametrize("command", [c for c in COMMANDS if c[0] == "bash"], ids=" ".join)
def test_script_is_there(command):
    assert (REPOSITORY / command[1]).is_file()


def test_install_command_names_the_constraints():
    (command,) = [c for c in COMMANDS if c[0] == "pip"]
    assert command == ["pip", "install", "-c", "constraints.txt", "."]
    assert (REPOSITORY / "constraints.txt").is_file()


def test_train_generate_python_and_tools_run_as_printed(quickstart_folder, monkeypatch, capsys):
    train, generate = ([c for c in COMMANDS if c[0] == f"fairseq-{name}"] for name in ("train", "generate"))
    assert len(generate) == len(PYTHON) == 1
    assert ["decoder_only" in " ".join(command) for command in train] == [False, True]
    for command in train:
        trained = spawn("train", *command[1:], cwd=quickstart_folder)
        assert trained.returncode == 0, trained.stderr[-2000:]
    generated = spawn("generate", *generate[0][1:], cwd=quickstart_folder)
    assert generated.returncode == 0, generated.stderr[-2000:]
    assert sum(line.startswith("H-") for line in generated.stdout.splitlines()) == 10
    monkeypatch.chdir(quickstart_folder)
    exec(compile(PYTHON[0], "README.md", "exec"), {})
    assert capsys.readouterr().out.strip()
    tools = {"inspect", "average", "convert", "translate", "evaluate", "benchmark", "report", "export", "similarity"}
    assert {command[1] for command in ON_A_MODEL} == tools
    for command in ON_A_MODEL:
        assert cli.main(command[1:]) == 0, command
        assert command[1] == "translate" or capsys.readouterr().out.strip()
    translated = (quickstart_folder / "runs/my-model/test.de").read_text()
    assert len(translated.splitlines()) == 10
    assert (quickstart_folder / "runs/my-model/served.de").read_text() == translated


def test_every_arch_and_file_that_is_named_exists():
    archs = set(re.findall(rf"--arch (\S+)|\b(owf_(?:{'|'.join(SIZES)})\w*)", README))
    names = {name for pair in archs for name in pair if name}
    assert len(names) >= 3
    assert names <= set(ARCHS)
    map_of_the_code = README.split("## Where things are")[1].split("The way of the data")[0]
    paths = re.findall(r"^\| (`[^|]*`) \|", map_of_the_code, re.MULTILINE)
    listed = [path for cell in paths for path in re.findall(r"`([^`]+)`", cell)]
    assert len(listed) >= 12
    for path in listed:
        assert (REPOSITORY / path).exists() or (REPOSITORY / "owf_fairseq" / path).exists(), path


def test_every_module_is_on_the_map():
    map_of_the_code = README.split("## Where things are")[1].split("The way of the data")[0]
    package = REPOSITORY / "owf_fairseq"
    folders = [path for path in package.iterdir() if (path / "__init__.py").exists()]
    assert len(folders) >= 8
    for path in package.glob("*.py"):
        assert (
            path.name == "__init__.py" or f"`{path.name}`" in map_of_the_code or f"/{path.name}`" in map_of_the_code
        ), path
    for folder in folders:
        rows = [line for line in map_of_the_code.splitlines() if line.startswith(f"| `owf_fairseq/{folder.name}/`")]
        assert rows, folder
        for path in folder.glob("*.py") if folder.name != "cli" else ():
            assert path.name == "__init__.py" or any(f"`{path.name}`" in row for row in rows), path


def test_tables_of_patterns_sizes_and_configurations_are_the_codes():
    patterns = rows("| pattern | 6 layers | meaning | source |")
    assert [row[0].strip("`") for row in patterns] == [strategy.spelling for strategy in STRATEGIES.values()]
    for name, layers, *_ in patterns:
        pattern = make_pattern(name.strip("`").replace("-M", "-2"), 6)
        assert layers == " ".join("–" if number is None else str(number) for number in pattern)

    sizes = [row[:5] for row in rows("| size | layers | d_model | d_ff | heads | |")]
    expected = [
        [
            f"`{n}`",
            " + ".join(str(getattr(s, f"{stack}_layers")) for stack in s.stacks),
            *(f"{s.embed_dim:,}", f"{s.ffn_dim:,}", str(s.heads)),
        ]
        for n, s in SIZES.items()
    ]
    assert sizes == expected

    one_stack = rows("| the paper | configuration | flags that it stands for | parameters (`owf_decoder_only`) |")
    assert [row[:2] for row in one_stack] == [[c.paper, f"`{n}`"] for n, c in DECODER_ONLY_CONFIGURATIONS.items()]
    for name, row in zip(DECODER_ONLY_CONFIGURATIONS, one_stack, strict=True):
        assert row[3] == f"{count_parameters(arch_name('decoder_only', name), VOCAB_SIZES['en-de']).total:,}"

    configurations = rows("| the paper | configuration | flags that it stands for |\n")
    assert [row[:2] for row in configurations] == [[c.paper, f"`{name}`"] for name, c in CONFIGURATIONS.items()]
    for (*_, flags), configuration in zip(configurations, CONFIGURATIONS.values(), strict=True):
        words = {
            "--" + name.replace("_", "-") + ("" if value is True else f" {value}")
            for name, value in configuration.flags.items()
            if value != "individual"
        }
        assert set(re.findall(r"`([^`]+)`", flags)) == words
