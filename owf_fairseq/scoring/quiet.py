"""Other people's libraries, kept quiet, safe and impatient."""

from __future__ import annotations

import logging
import os
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

_SECONDS_TO_ANSWER = 20.0
_ENVIRONMENT = {
    "TORCH_FORCE_WEIGHTS_ONLY_LOAD": "1",
    "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": None,
    "TOKENIZERS_PARALLELISM": "false",
}


@contextmanager
def quietly() -> Iterator[None]:
    """Keeps what libraries advertise and warn of off the terminal, and bounds the wait for a server's answer.

    It also has torch read under ``weights_only`` where a library does not say.
    """
    seconds, disabled = socket.getdefaulttimeout(), logging.root.manager.disable
    before = {name: os.environ.pop(name, None) for name in _ENVIRONMENT}
    os.environ.update({name: value for name, value in _ENVIRONMENT.items() if value is not None})
    socket.setdefaulttimeout(_SECONDS_TO_ANSWER)
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        socket.setdefaulttimeout(seconds)
        logging.disable(disabled)
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def reason(error: object) -> str:
    """An error in one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:300] if lines else type(error).__name__
