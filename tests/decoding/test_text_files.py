"""Texts that are translated as they come, and files that go on where they were; a backend repeats its input."""

import io
import os
import tracemalloc

import pytest

from owf_fairseq.data.segmentation import NoSegmentation
from owf_fairseq.decoding.search import Hypothesis
from owf_fairseq.decoding.text_files import Text, translate_to_file, translate_to_stream
from owf_fairseq.decoding.translator import Batching, Translator
from owf_fairseq.errors import InputError
from owf_fairseq.files.job import Job, OutputFile
from owf_fairseq.progress import Progress


class Echo:
    """A backend that can be interrupted at a sentence."""

    max_source_length = max_target_length = 20

    def __init__(self, until=None):
        self.until = until
        self.seen = []

    def search(self, batch, options):
        for pieces in batch:
            if pieces == [self.until]:
                raise KeyboardInterrupt
            self.seen.append(pieces[0])
        return [[Hypothesis(tuple(pieces), -1.0, -2.0)] for pieces in batch]


class Forgetful(Echo):
    """One that holds nothing of its input."""

    def search(self, batch, options):
        found = super().search(batch, options)
        self.seen.clear()
        return found


def translator(backend, buffer=2, **settings):
    return Translator(backend, NoSegmentation("en", "de"), batching=Batching(buffer=buffer), **settings)


def rows(first, found):
    return [f"{number} {one.text}" for number, (one, *_) in enumerate(found, first)]


def to_file(folder, backend, beam=5, buffer=2):
    """Translates the file `in` to the file `out`, as the command does; what it had to translate."""
    output = folder / "out"
    job = Job("owf test", {"--beam": beam}, {"--input": [folder / "in"]}, [OutputFile("--output", output)])
    with Progress("sentences", None) as progress:
        translate_to_file(translator(backend, buffer), Text.open(folder / "in"), job, output, rows, progress)
    return output.read_text()


@pytest.mark.parametrize("buffer", [1, 2, 3, 100])
def test_an_interrupted_file_goes_on_and_gets_the_same_bytes(buffer, tmp_path, capsys):
    lines = [f"w{n}" if n % 3 else "" for n in range(11)]
    (tmp_path / "in").write_text("".join(f"{line}\n" for line in lines))
    first = Echo(until="w8")
    with pytest.raises(KeyboardInterrupt):
        to_file(tmp_path, first)
    assert not (tmp_path / "out").exists()
    with open(tmp_path / ".out.partial/text", "a") as file:
        file.write("9 half a li")  # the run was killed while it wrote
    second = Echo()
    made = to_file(tmp_path, second, buffer=buffer)
    assert made == "".join(f"{number} {line}\n" for number, line in enumerate(lines, 1))
    assert sorted(second.seen) == ["w10", "w8"]
    assert "going on where a run was interrupted" in capsys.readouterr().err
    assert sorted(os.listdir(tmp_path)) == ["in", "out"]


@pytest.mark.parametrize("change", ["settings", "input"])
def test_it_starts_afresh_with_other_settings_or_another_text(change, tmp_path):
    (tmp_path / "in").write_text("a\nb\nc\nd\n")
    with pytest.raises(KeyboardInterrupt):
        to_file(tmp_path, Echo(until="d"))
    if change == "input":
        (tmp_path / "in").write_text("A\nb\nc\nd\n")
    other = Echo()
    to_file(tmp_path, other, beam=4 if change == "settings" else 5)
    assert len(other.seen) == 4


def test_capped_lines_are_remembered_over_an_interruption(tmp_path):
    (tmp_path / "in").write_text("a\nb\nc\nd\n")
    output, job = tmp_path / "out", Job("owf test", {}, {"--input": [tmp_path / "in"]})

    def run(backend):
        one = translator(backend)
        one._is_capped = lambda source, best: best.pieces[0] in "ac"
        with Progress("sentences", None) as progress:
            translate_to_file(one, Text.open(tmp_path / "in"), job, output, rows, progress)
        return one.capped

    with pytest.raises(KeyboardInterrupt):
        run(Echo(until="d"))
    assert run(Echo()) == [1, 3]


def test_a_line_is_answered_before_the_next_is_written():
    reading, writing = os.pipe()
    answers, answered = os.pipe()
    one = translator(Echo(), buffer=1)
    with open(reading, "rb") as source, open(answered, "wb") as target:
        text = Text(source, None, "strict")
        results = text.buffers(1)
        for line in ("\ufeffa", "b"):
            os.write(writing, f"{line}\n".encode())
            translate_to_stream(one, FirstOf(results), target, rows)
            assert os.read(answers, 100).decode() == f"{one.lines} {line[-1]}\n"
        os.close(writing)
        assert list(results) == []
    os.close(answers)


class FirstOf:
    """The next buffer of a text, and no more of it."""

    def __init__(self, results):
        self.results = results

    def buffers(self, size, warn):
        yield next(self.results)


def test_text_from_a_pipe(tmp_path):
    reading, writing = os.pipe()
    os.write(writing, b"a\n\nb")
    os.close(writing)
    text = Text.open(f"/dev/fd/{reading}")
    os.close(reading)
    output = io.BytesIO()
    assert text.lines is None
    translate_to_stream(translator(Echo()), text, output, rows)
    assert output.getvalue() == b"1 a\n2 \n3 b\n"


def test_a_wrong_byte_in_a_pipe_stops_before_its_buffer():
    text = Text(io.BytesIO(b"a\nb\nc\n\xff\n"), None, "strict")
    output = io.BytesIO()
    with pytest.raises(InputError, match="line 4: not UTF-8"):
        translate_to_stream(translator(Echo()), text, output, rows)
    assert output.getvalue() == b"1 a\n2 b\n"


def test_a_wrong_byte_in_a_file_is_found_before_the_work(tmp_path):
    (tmp_path / "in").write_bytes(b"a\n\xff\nb\n\xfe\n")
    with pytest.raises(InputError, match="line 2.*\n.*line 4"):
        Text.open(tmp_path / "in")
    warnings = []
    text = Text.open(tmp_path / "in", "blank")
    assert list(text.buffers(3, 1, warnings.append)) == [["", "b", ""]]
    assert [warning.split(":")[0] for warning in warnings] == [f"{tmp_path / 'in'}, line {n}" for n in (2, 4)]


def test_memory_does_not_grow_with_the_text(tmp_path):
    (tmp_path / "in").write_text(("word " * 15 + "\n") * 20_000)
    tracemalloc.start()
    with open(os.devnull, "wb") as output:
        one = translator(Forgetful(), buffer=100)
        translate_to_stream(one, Text.open(tmp_path / "in"), output, rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert one.lines == 20_000
    assert peak < 1.5e6  # the text has 1.5 MB
