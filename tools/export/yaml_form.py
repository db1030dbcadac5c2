"""Values as YAML: keys in the order in which they were put, no line folded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

_WIDEST_LINE = 10_000


def as_yaml(value: Mapping[str, Any], *, flat_leaves: bool = False) -> str:
    """`value` as a YAML document; `flat_leaves`: lists and objects that hold no further ones stand on one line."""
    style = None if flat_leaves else False
    return yaml.dump(  # pyright: ignore[reportUnknownMemberType] - some releases of the stubs leave `width` unknown
        dict(value), Dumper=_Dumper, default_flow_style=style, sort_keys=False, width=_WIDEST_LINE
    )


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks, and everything where it stands."""

    def represent_str(self, data: str) -> yaml.ScalarNode:
        """A text; as a block where it has several lines."""
        return (
            yaml.ScalarNode("tag:yaml.org,2002:str", data, style="|") if "\n" in data else super().represent_str(data)
        )

    def ignore_aliases(self, data: object) -> bool:
        """Whether a value that stands twice is written twice."""
        return True


_Dumper.add_representer(str, _Dumper.represent_str)
