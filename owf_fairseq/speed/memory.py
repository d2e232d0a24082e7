"""Peak memory of a search, measured in a process of its own for every model.

On a GPU it is the most that torch had allocated there: weights and all that the search makes. On a CPU it is the most
resident memory of the process during the search, less what it had before the model was loaded: weights, what the search
makes, and what the libraries keep for it. What loading needs for a moment is not counted.
"""

from __future__ import annotations

import gc
import re
import resource
import sys
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

from owf_fairseq.decoding.search import SearchOptions
from owf_fairseq.speed.measurement import Sentences, is_lack_of_memory

if TYPE_CHECKING:
    from owf_fairseq.speed.benchmark_models import Candidate, Loading

_STATUS, _CLEAR_REFS = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def peak_memory(
    candidate: Candidate,
    batch: Sentences,
    options: SearchOptions,
    loading: Loading,
) -> int | None:
    """Bytes at the peak of one search for a batch.

    Args:
        candidate: the model.
        batch, options: what to search.
        loading: of the model.

    Returns:
        None if there was not enough memory.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        try:
            return pool.submit(_in_this_process, candidate, batch, options, loading).result()
        except BrokenProcessPool:  # ended by the system for its memory
            return None
        except (MemoryError, RuntimeError) as error:
            if not is_lack_of_memory(error):
                raise
            return None


def _in_this_process(
    candidate: Candidate,
    batch: Sentences,
    options: SearchOptions,
    loading: Loading,
) -> int:
    import torch

    # what is imported now is not the model's
    with suppress(ImportError):
        import ctranslate2  # noqa: F401
    from owf_fairseq.decoding.fairseq_backend import FairseqBackend

    torch.set_num_threads(loading.threads)
    gc.collect()
    before = _resident()
    backend = candidate.load(loading)
    if isinstance(backend, FairseqBackend) and backend.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(backend.device)
        backend.search(batch, options)
        backend.synchronize()
        return int(torch.cuda.max_memory_allocated(backend.device))
    gc.collect()
    forget_peak()
    backend.search(batch, options)
    return peak_resident() - before


def _resident() -> int:
    """Resident bytes of this process now; where the system does not tell, the most that they have been."""
    return _status("VmRSS") or peak_resident()


def peak_resident() -> int:
    """The most resident bytes of this process since ``forget_peak``."""
    kilobyte = 1 if sys.platform == "darwin" else 1024
    return _status("VmHWM") or kilobyte * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def forget_peak() -> None:
    """Starts the peak afresh at what is resident now, on Linux; elsewhere it goes on to hold what loading needed."""
    if _CLEAR_REFS.exists():
        _CLEAR_REFS.write_text("5")


def _status(name: str) -> int:
    """Bytes in an entry of Linux's status of this process; 0 where there is none."""
    text = _STATUS.read_text() if _STATUS.exists() else ""
    found = re.search(rf"^{name}:\s+(\d+) kB$", text, re.MULTILINE)
    return 1024 * int(found[1]) if found else 0
