"""Models given as files, folders and objects."""

import json
from pathlib import Path

import pytest

from shardwright.tools.catalog.config_file import MAX_CONFIG_BYTES, parse_config
from shardwright.tools.catalog.models import find_model, load_model
from shardwright.tools.errors import InputError, UnknownNameError

CONFIG = dict(find_model("Qwen3-8B").config)


def test_a_name_a_file_a_folder_and_an_object_give_the_same_model(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG), encoding="utf-8")
    expected = find_model("Qwen3-8B").architecture()
    for reference in ("Qwen3-8B", str(path), path, str(tmp_path), tmp_path, CONFIG):
        assert load_model(reference).architecture() == expected


def test_an_object_may_state_its_name() -> None:
    assert load_model({**CONFIG, "_name_or_path": "mine/own-8b"}).name == "mine/own-8b"
    assert load_model(CONFIG).name == "qwen3"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "not JSON"),
        ("[]", "must be a JSON object"),
        ('{"a": NaN}', "NaN is not JSON"),
        ('{"a": 1, "a": 2}', "stands twice"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a": ' + "9" * 10_000 + "}", "digits"),
        (b"\xff\xfe\x00", "UTF-8|not valid JSON"),
    ],
)
def test_hostile_json_is_refused_in_one_line(text: str, why: str) -> None:
    with pytest.raises(InputError, match=why) as caught:
        parse_config(text, "somewhere")
    assert str(caught.value).startswith("somewhere") and "\n" not in str(caught.value)


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(b" " * (MAX_CONFIG_BYTES + 1))
    with pytest.raises(InputError, match="larger than"):
        load_model(path)


def test_a_path_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        load_model(str(tmp_path / "missing.json"))
    with pytest.raises(UnknownNameError):
        load_model("no/such/folder")
