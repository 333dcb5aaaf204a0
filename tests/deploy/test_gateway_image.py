"""The gateway's image: what its steps need is in the repository."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_requirements_have_hashes():
    """Each of them: the image installs nothing that the lock does not know."""
    text = (ROOT / "requirements/run.txt").read_text()
    pinned = re.findall(r"^[A-Za-z][^\n]*==(?:[^\n]*\\\n)+[^\n]*", text, re.MULTILINE)
    assert len(pinned) == len(re.findall(r"^[A-Za-z]", text, re.MULTILINE))
    assert all("--hash=sha256:" in each for each in pinned)
