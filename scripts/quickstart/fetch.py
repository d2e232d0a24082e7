"""Fetches the wheel with the quickstart's text through pip, unless it is there. Nothing of it is installed.

example:
  python scripts/quickstart/fetch.py runs/cache/homeassistant-2026.11.0-py3-none-any.whl
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

SHA256 = "7ca5fbde9dea879ac7723949fc84347aac5182e6309c357b2e4973fd391b00f7"


def main(argv: list[str] | None = None) -> int:
    """Fetch into a folder beside the wheel's, and move it when it is whole."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path, metavar="WHEEL", help="NAME-VERSION-py3-none-any.whl, with the folder")
    wheel = parser.parse_args(argv).wheel
    if wheel.exists():
        return 0
    wheel.parent.mkdir(parents=True, exist_ok=True)
    package, version = wheel.name.split("-")[:2]
    with tempfile.TemporaryDirectory(dir=wheel.parent) as folder:
        wanted = Path(folder) / "wanted.txt"
        wanted.write_text(f"{package}=={version} --hash=sha256:{SHA256}\n")
        # Nothing of the wheel is installed, so it may want another Python than this one.
        pip = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--no-input", "--no-deps"]
        pip += ["--ignore-requires-python", "--python-version", "3.14", "--only-binary=:all:"]
        done = subprocess.run([*pip, "--dest", folder, "-r", wanted], check=False)
        if done.returncode:
            return done.returncode
        (Path(folder) / wheel.name).rename(wheel)
    return 0


if __name__ == "__main__":
    sys.exit(main())
