"""Links of pieces: counted by whole words, added up, and the best of each source symbol."""

import numpy as np
import pytest

from owf_fairseq.shortlist.alignment import LinkCounts, count_links
from owf_fairseq.shortlist.sentences import NumberedSentences, Vocabulary

SYMBOLS = ["<s>", "<pad>", "</s>", "<unk>", "▁a", "b", "▁c", "▁d", "e", "▁f"]
A, B, C, D, E, F = range(4, 10)


def counted(monkeypatch, source, target, forward, reverse, langs=("en", "de"), symbols=SYMBOLS):
    """The counts of links that an aligner gives, as a dictionary of pairs of numbers."""

    class Aligner:
        def __init__(self, **settings):
            pass

        def align(self, sources, targets, *paths):
            assert [len(line.split()) for line in sources] == [len(line) for line in source]
            assert [line.split() for line in targets] == [[str(n) for n in line] for line in target]
            for path, lines in zip(paths, (forward, reverse), strict=True):
                with open(path, "w") as file:
                    file.writelines(f"{line}\n" for line in lines)

    monkeypatch.setattr("eflomal.Aligner", Aligner)
    vocabularies = Vocabulary(symbols, langs[0]), Vocabulary(symbols, langs[1])
    found = count_links(NumberedSentences.of(source), NumberedSentences.of(target), vocabularies)
    return {divmod(int(key), len(symbols)): int(n) for key, n in zip(found.keys, found.counts, strict=True)}


def test_links_of_both_directions_are_counted(monkeypatch):
    pairs = [[A], [A, C], [C]], [[D], [F, D], [F]]
    assert counted(monkeypatch, *pairs, ["0-0", "0-1 1-0", ""], ["0-0", "0-1", "0-0"]) == {(A, D): 4, (C, F): 2}


def test_all_pieces_of_linked_words_count_once(monkeypatch):
    """Of the words "ab c" and "de f", pieces of the first of each are linked in two ways."""
    found = counted(monkeypatch, [[A, B, C]], [[D, E, F]], ["0-1 1-0"], [""])
    assert found == {(A, D): 1, (A, E): 1, (B, D): 1, (B, E): 1}


def test_a_word_does_not_go_on_in_the_next_sentence(monkeypatch):
    found = counted(monkeypatch, [[A], [B, C]], [[D], [E, F]], ["0-0", "0-0"], ["", ""])
    assert found == {(A, D): 1, (B, E): 1}


def test_words_of_bpe(monkeypatch):
    symbols = ["<s>", "<pad>", "</s>", "<unk>", "a@@", "b", "c", "d@@", "e@@", "f"]
    found = counted(monkeypatch, [[A, B, C]], [[F, D, E, F]], ["0-2"], [""], symbols=symbols)
    assert set(found) == {(source, target) for source in (A, B) for target in (D, E, F)}


def test_without_spaces_each_piece_is_a_word(monkeypatch):
    found = counted(monkeypatch, [[A, B, C]], [[D, E, F]], ["0-1"], [""], langs=("ja", "zh"))
    assert found == {(A, E): 1}


def test_the_pieces_of_an_address_are_not_joined(monkeypatch):
    found = counted(monkeypatch, [[A, *[B] * 30]], [[D, *[E] * 30]], ["0-0 3-3"], [""])
    assert found == {(A, D): 1, (B, E): 1}


def test_the_best_of_each_source_symbol():
    counts = {(4, 7): 3, (4, 8): 5, (4, 9): 3, (5, 1): 1, (6, 2): 2}
    keys = np.array([source * 10 + target for source, target in counts])
    found = LinkCounts(keys, np.array(list(counts.values()))).best(10, 2)
    assert dict(zip(found.keys.tolist(), found.counts.tolist(), strict=True)) == {47: 3, 48: 5, 51: 1, 62: 2}
    assert len(LinkCounts.of(np.empty(0, np.int64)).best(10, 2).keys) == 0


def test_counts_together():
    parts = [LinkCounts.of(np.array([3, 3, 5])), LinkCounts.of(np.array([5, 9]))]
    found = LinkCounts.together(parts)
    assert (found.keys.tolist(), found.counts.tolist()) == ([3, 5, 9], [2, 2, 1])


@pytest.mark.parametrize("case", [1, 2])
def test_the_aligner_finds_what_belongs_together(case):
    """Real alignments, of a language whose words are those of the other, in another order."""
    draw = np.random.default_rng(case)
    source = [draw.integers(4, 40, draw.integers(2, 7)) for _ in range(400)]
    target = [line[::-1] + 40 for line in source]
    symbols = [f"▁{n}" for n in range(80)]
    vocabulary = Vocabulary(symbols, "en")
    best = count_links(NumberedSentences.of(source), NumberedSentences.of(target), (vocabulary, vocabulary)).best(80, 1)
    assert {divmod(key, 80) for key in best.keys.tolist()} == {(n, n + 40) for n in range(4, 40)}
