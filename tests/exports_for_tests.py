"""What an exported model computes beside what it was made from."""

from pathlib import Path
from typing import Any

import ctranslate2
import torch
from models_for_tests import EOS, VOCABULARY, make_task

from owf_fairseq.decoding.forced import token_log_probabilities
from owf_fairseq.export.ctranslate2_spec import ModelConverter


def difference(model: Any, folder: Path) -> float:
    """The largest difference of a log-probability, over sentences of several lengths."""
    model.eval()
    dictionary = make_task().source_dictionary
    ModelConverter(model, dictionary, dictionary).convert(str(folder))
    translator = ctranslate2.Translator(str(folder), intra_threads=1)
    generator = torch.Generator().manual_seed(5)
    largest = 0.0
    for lengths in ((1, 3), (4, 1), (11, 13)):
        source, target = (
            torch.cat([torch.randint(4, VOCABULARY, (n,), generator=generator), torch.tensor([EOS])]) for n in lengths
        )
        pieces = [[dictionary[number] for number in numbers[:-1]] for numbers in (source, target)]
        (scored,) = translator.score_batch([pieces[0]], [pieces[1]])
        expected = token_log_probabilities(model, source, target)
        assert len(scored.log_probs) == len(target)
        assert expected.std() > 0.01 or len(target) < 3
        largest = max(largest, (expected - torch.tensor(scored.log_probs)).abs().max().item())
    return largest
