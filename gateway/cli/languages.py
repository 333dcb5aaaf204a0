"""The languages in which a worker can be begun."""

from typing import Final

LANGUAGES: Final = {"go": "Go", "python": "Python", "node": "JavaScript", "rust": "Rust", "java": "Java"}
"""What ``--lang`` takes, and what people call it."""
