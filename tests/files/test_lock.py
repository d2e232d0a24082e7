"""A lock that ends with its holder."""

import subprocess
import sys

import pytest

from owf_fairseq.errors import InputError
from owf_fairseq.files.lock import locked


def test_one_at_a_time(tmp_path):
    path = tmp_path / ".lock"
    with locked(path, "taken"), pytest.raises(InputError, match="taken"), locked(path, "taken"):
        pass
    with locked(path, "taken"):  # the file is still there, and free
        pass


def test_a_killed_process_holds_no_lock(tmp_path):
    path = tmp_path / ".lock"
    code = f"import fcntl\nfile = open({str(path)!r}, 'a')\nfcntl.flock(file, fcntl.LOCK_EX)\n"
    command = [sys.executable, "-c", f"{code}print(flush=True)\ninput()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        holder.stdout.readline()
        with pytest.raises(InputError, match="taken"), locked(path, "taken"):
            pass
        holder.kill()
        holder.wait()
        with locked(path, "taken"):
            pass
