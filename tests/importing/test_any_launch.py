"""Any text gets a plan from `import`, or one line with the reason why there is none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import shardwright
from shardwright.tools.errors import InputError
from shardwright.tools.importing.launch import is_launch, read_launch

from ..export.plans import exported

pytestmark = pytest.mark.thorough

_TARGETS = ("vllm", "sglang", "kubernetes")
_PIECES = st.sampled_from([
    "$", "${", "}", "'", '"', "\\\n", "<<EOF\n", "\nEOF\n", "```\n", "#", ";", "&&", "(", ")", "<", ">", "{{", "}}",
    "-tp", "--", "=", "0", "99999999999", "-1", "[", "&a", "*a", ": ", "- ", "\t", "\0", "é", "kind: X\n",
    "vllm serve ", "case x in\n",
])  # fmt: skip
# Texts that would take long if work were not bounded: many openings without an end, and values that double.
_HOSTILE = {
    "texts to files that never end": "cat > a <<EOF\n" * 20_000 + "vllm serve x -tp 2",
    "fences": "x\n```a\n" * 20_000 + "vllm serve x -tp 2",
    "names of files": "# a.yml\n" * 30_000 + "vllm serve x -tp 2",
    "variables that double": "A=" + "x" * 4000 + "\n" + "A=$A$A\n" * 2_000 + "vllm serve $A -tp 2",
    "one long line": "vllm serve " + "$A " * 90_000,
    "quotes": "vllm serve '" + '"\'' * 100_000,
    "aliases": "kind: &b0 [x]\n" + "".join(f"b{n}: &b{n} [*b{n - 1}, *b{n - 1}]\n" for n in range(1, 40)),
    "arrays that never end": "A=(\n" * 60_000 + "vllm serve x -tp 2",
    "arrays that double": "A=(x x x)\n" + 'A+=("${A[@]}" "${A[@]}")\n' * 2_000 + 'vllm serve "${A[@]}" -tp 2',
    "functions that never end": "a() {\n" * 60_000 + "vllm serve x -tp 2",
    "functions that call each other": "a() {\n" + 'a "$@" "$@"\n' * 150 + "}\n" + "a x y z\n" * 5_000,
    "lists": "['a'," * 60_000 + "vllm serve x -tp 2",
    "depth": "kind: X\nspec: " + "[" * 3_000 + "]" * 3_000,
    "scripts in scripts": "bash -c \"" * 500 + "vllm serve x",
    "placeholders": "<a" * 60_000 + " vllm serve x -tp 2",
}  # fmt: skip


@given(st.sampled_from(_TARGETS), st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 40), _PIECES), max_size=6))
def test_a_damaged_text_is_answered(target: str, edits: list[tuple[int, int, str]]) -> None:
    text = exported("groups of two", target).text or ""
    for place, length, piece in edits:
        text = text[:place] + piece + text[place + length :]
    try:
        imported = shardwright.import_plan(text, hardware="2x8:h100-sxm")
    except InputError as error:
        assert "\n" not in str(error) and len(str(error)) < 2000
    else:
        assert imported.plan.strategy.gpu_count > 0


@pytest.mark.parametrize("name", _HOSTILE)
def test_hostile_texts_are_read_in_bounded_work(name: str) -> None:
    text = _HOSTILE[name][:300_000]
    is_launch(text)
    try:
        read_launch(text)
    except InputError as error:
        assert "\n" not in str(error)


def test_a_text_beyond_the_limit_is_refused() -> None:
    with pytest.raises(InputError, match="at most 300,000"):
        read_launch("vllm serve x -tp 2\n" * 20_000)
