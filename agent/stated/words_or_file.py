"""Whether a text is words, or the path of a file: one answer for every call that takes either."""

from __future__ import annotations

from ...tools.input.files import is_there
from ...tools.plan.reader import is_json_text

# A name that ends like this is a file's, whether there is one or not.
_FILES = (".json", ".yaml", ".yml", ".txt", ".md", ".sh", ".bash", ".sbatch", ".slurm", ".conf")


def is_words(text: str) -> bool:
    """Whether `text` is a strategy in words or a command line: neither JSON nor the path of a file."""
    if is_json_text(text) or (text.lower().endswith(_FILES) and " " not in text.strip()):
        return False
    return not is_there(text, or_no_file=True)
