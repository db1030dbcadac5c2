"""llama.cpp: makes a grammar of a schema (`common/json-schema-to-grammar.cpp`, build 8000 and later).

A pattern without a grammar leaves the answer unconstrained, with status 200 (its issue 19051); `not`, `if`, `contains`
and the like are refused or ignored. Chat templates and the grammar read tools in full.
"""

from __future__ import annotations

import re

from .dialect import Dialect

GRAMMAR_KEYWORDS = frozenset(
    {
        "$defs", "$ref", "type", "enum", "const", "anyOf", "oneOf", "allOf", "properties", "required",
        "additionalProperties", "items", "prefixItems", "minItems", "maxItems", "minLength", "maxLength", "minimum",
        "maximum", "exclusiveMinimum", "exclusiveMaximum", "title", "description",
    }
)  # fmt: skip

# Its build: `b6123-ab12cd34`.
LLAMA_CPP = Dialect(
    "llama.cpp",
    signature=re.compile(r"b\d{1,9}-[0-9a-f]{6,40}"),
    tool_keywords=GRAMMAR_KEYWORDS,
    answer_keywords=GRAMMAR_KEYWORDS,
)
