"""A file of the knowledge base is read by its format; any other text is refused with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from shardwright.knowledge.generated import GENERATORS, generator, regenerated
from shardwright.knowledge.index import FOLDER, knowledge_files, read_base
from shardwright.knowledge.reader import KnowledgeError, read_document, without_comments

METADATA = """<!-- section
id: {id}
keywords: [one, two]
rules: [TP003]
when: [core, moe+multi-node]
sources: ["000 §3.1", R2]
asked: [what is it for]
-->
"""
HEAD = "# Title\n\nWhat it answers.\n\n"


def document(body: str) -> str:
    """A file with one section, whose text is `body`."""
    return f"{HEAD}## Heading\n{METADATA.format(id='topic.sub')}{body}"


def test_a_section_is_its_heading_and_passage_without_comments() -> None:
    code = "```text\n## no heading <!-- gone -->\n```"
    body = f"Each holds 320<!--= kv llama --> bytes.\n\n{code}\n<!-- example: valid -->\nEnd."
    read = read_document("file.md", document(body))
    (section,) = read.sections
    assert (read.title, read.introduction) == ("Title", "What it answers.")
    assert section.text == "## Heading\n\nEach holds 320 bytes.\n\n```text\n## no heading \n```\nEnd."
    assert (section.id, section.line, section.rules) == ("topic.sub", 5, ("TP003",))
    assert section.citation == "file.md § Heading"
    assert section.tokens > 10


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("", "file.md:1: the first line"),
        ("\n# Title\n", "file.md:1: the first line"),
        (f"# Title\n## H\n{METADATA.format(id='a.b')}x", "file.md:1: a paragraph"),
        (HEAD, "file.md:1: no section"),
        (f"{HEAD}## H\ntext", "file.md:5: '## H' must be followed"),
        (f"{HEAD}## H\n\ntext\n<!-- section\nid: a.b\n-->\n", "file.md:5: '## H' must be followed"),
        (f"{HEAD}## H\n{METADATA.format(id='a.b')}", "file.md:5: '## H' says nothing"),
        (f"{HEAD}## H\n{METADATA.format(id='a.b')}x\n### Deeper\n", "file.md:15: heading of level 3"),
        (f"{HEAD}## H\n{METADATA.format(id='a.b')}Under\n---\n", "file.md:14: a heading underlined"),
        (f"{HEAD}## H\n{METADATA.format(id='Upper')}x", "file.md:5: id 'Upper'"),
        (f"{HEAD}## H\n{METADATA.format(id='a.b').replace('TP003', 'tp3')}x", "'tp3' is not a rule id"),
        (f"{HEAD}## H\n{METADATA.format(id='a.b').replace('core', 'sometimes')}x", "'sometimes' is no condition"),
        (f"{HEAD}## H\n{METADATA.format(id='a.b').replace('moe+', 'core+')}x", "'core+multi-node' is no condition"),
        (f"{HEAD}## H\n{METADATA.format(id='a.b').replace('rules:', 'rule:')}x", "field 'rule' is none of"),
        (f"{HEAD}## H\n{METADATA.format(id='a.b').replace('rules: [TP003]', '')}x", "field 'rules' is missing"),
        (f"{HEAD}## H\n{METADATA.format(id='a.b').replace('[one, two]', '[]')}x", "field 'keywords' is empty"),
        (f"{HEAD}## H\n{METADATA.format(id='a.b').replace('[what is it for]', '[]')}x", "field 'asked' is empty"),
        (f"{HEAD}## H\n{METADATA.format(id='a.b').replace('[one, two]', '[one: 1]')}x", "must be a list of words"),
        (f"{HEAD}## H\n{METADATA.format(id='a.b').replace('[one, two]', '[one')}x", "is not YAML in line"),
        (f"{HEAD}## H\n{METADATA.format(id='a.b')}x <!-- open", "a comment does not end"),
    ],
)
def test_what_is_not_of_the_form_is_refused_with_its_place(source: str, says: str) -> None:
    with pytest.raises(KnowledgeError) as error:
        read_document("file.md", source)
    assert says in str(error.value)
    assert str(error.value).startswith("file.md:")


def test_an_id_that_is_used_twice_is_refused_with_both_places() -> None:
    with pytest.raises(KnowledgeError, match=r"'topic.sub' is used twice: a\.md:5 and b\.md:5"):
        read_base([("a.md", document("x")), ("b.md", document("y"))])


def test_a_file_outside_the_reading_order_is_refused(tmp_path: Path) -> None:
    (tmp_path / "99_other.md").write_text("# Title\n")
    with pytest.raises(KnowledgeError, match=r"99_other\.md is not in the reading order"):
        knowledge_files(tmp_path)


def test_many_comments_are_taken_out_in_linear_time() -> None:
    assert without_comments("<!-- a -->" * 20_000 + "x") == "x"
    with pytest.raises(KnowledgeError):
        without_comments("<!--" * 20_000)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("file", knowledge_files())
def test_generated_parts_are_what_the_code_gives_today(file: str) -> None:
    source = (FOLDER / file).read_text(encoding="utf-8")
    assert regenerated(file, source) == source


@pytest.mark.parametrize(
    ("name", "arguments"),
    [(name, ()) for name in GENERATORS if name not in ("rules", "model-table")]
    + [("rules", ("TP", "EN")), ("model-table", ("llama-3.1-70b", "deepseek-v3")), ("accelerators", ("h100-sxm",))],
)
def test_a_generator_writes_lines_that_are_stable(name: str, arguments: tuple[str, ...]) -> None:
    text = generator(name)(*arguments)
    assert text == generator(name)(*arguments)
    assert text.count("\n") >= 2
    assert "<!--" not in text


@pytest.mark.parametrize(
    "part",
    [
        "<!-- generated: nonsense -->\n<!-- end generated -->",
        "<!-- generated: rules ZZ -->\n<!-- end generated -->",
        "<!-- generated: rules TP -->\n| a |",
        "<!-- generated: node-types extra -->\n<!-- end generated -->",
        "<!-- generated: model-table -->\n<!-- end generated -->",
    ],
)
def test_a_part_that_nothing_generates_is_refused(part: str) -> None:
    with pytest.raises(KnowledgeError, match=r"file\.md"):
        regenerated("file.md", f"{HEAD}{part}\n")


def test_a_generated_part_replaces_what_stood_there() -> None:
    before = f"{HEAD}<!-- generated: relaxations -->\nstale\n<!-- end generated -->\n"
    after = regenerated("file.md", before)
    assert "stale" not in after
    assert "`tp_in_expert`" in after
    assert regenerated("file.md", after) == after
