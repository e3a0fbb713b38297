"""Packages of npm for tests that need them, installed once and kept in the cache."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

CACHE = Path.home() / ".cache" / "kbroker" / "node"


def node_packages(*packages: str) -> Path:
    """A directory with node_modules; skips the test where they cannot be had."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("node and npm are not installed")
    directory = CACHE / hashlib.sha256(" ".join(packages).encode()).hexdigest()[:16]
    if directory.exists():
        return directory
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as temporary:
        command = [npm, "install", "--no-audit", "--no-fund", "--silent", *packages]
        try:
            done = subprocess.run(
                command, cwd=temporary, capture_output=True, text=True, timeout=120, check=False
            )
        except subprocess.TimeoutExpired:
            pytest.skip("npm gets no answer from its registry here")
        if done.returncode != 0:
            pytest.skip(f"npm cannot install {', '.join(packages)} here: {done.stderr.strip()[:200]}")
        made = Path(temporary)
        if not directory.exists():
            shutil.copytree(made, directory, symlinks=True)
    return directory
