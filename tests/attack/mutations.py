"""Makes hostile documents out of valid plans: changed graphs, nasty values, numbers at and beyond their bounds."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

from shardwright.tools.plan.schema import plan_schema

from .compact_mutations import compact
from .probe import Case
from .seeds import seed_names, seed_plan

DEPTH = 300
_STATEMENT = "A statement of 201 letters, none of them wrong. "


def nested(levels: int, inner: Any = 0) -> Any:
    """`inner` inside `levels` nested lists."""
    for _ in range(levels):
        inner = [inner]
    return inner


def nasty_values() -> tuple[Any, ...]:
    """Values that no place of a document expects."""
    return (
        "", " ", "\n", "\t\x0b", (_STATEMENT * 5)[:201], "x" * 10_000, "\ud800", "a\udfffb", "\x00", "{i}", "n0.g0",
        "٣", "🦀", "\u202e", "../../etc/passwd", 10**400, -(10**400), -1, 0, 1, 2, -0.0, 0.5, 1e-35, 5e-324, 1e308,
        2**31, 2**63, 2**64, math.nan, math.inf, -math.inf, True, False, None, [], {}, [[]], [None], {"": ""},
        {"\ud800": 1}, [1] * 1000, list(range(100)), [0, 10**9], [1, 0], [0, 0], {"$ref": "#"},
        nested(DEPTH), nested(30), {"tp": 0},
    )  # fmt: skip


_NUMBERS: tuple[float, ...] = (
    0, 1, 2, 3, 7, 8, 64, 1000, 10**6, 10**9, 10**12, 10**18, -1, 0.5, 1e-35, 1e-300, 5e-324, 1e-9, 1e-3, 1e12, 1e18,
    1e300, 1e308, 2**31, 2**53 + 1, 2**63,
)  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every member of `value`, at every depth."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield (*path, key)
        yield from places(member, (*path, key))


def put(document: Any, path: tuple[Any, ...], value: Any) -> None:
    """Set the place at `path`; missing objects on the way are created."""
    for key in path[:-1]:
        if isinstance(document, dict) and not isinstance(document.get(key), dict | list):
            document[key] = {}
        document = document[key]
    document[path[-1]] = value


@cache
def number_bounds() -> tuple[tuple[tuple[str, ...], tuple[float, ...]], ...]:
    """Path of every number of the header, with its bounds in the published schema."""
    schema = plan_schema()
    definitions = schema["$defs"]

    def walk(part: dict[str, Any], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], tuple[float, ...]]]:
        if "$ref" in part:
            yield from walk(definitions[part["$ref"].rpartition("/")[2]], path)
        for choice in (*part.get("anyOf", ()), *part.get("oneOf", ())):
            yield from walk(choice, path)
        if part.get("type") in ("integer", "number"):
            bound_names = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
            yield path, tuple(part[name] for name in bound_names if name in part)
        for name, member in part.get("properties", {}).items():
            yield from walk(member, (*path, name))

    blocks = ("hardware", "workload", "policy", "serving", "strategy")
    return tuple(bounds for block in blocks for bounds in walk(schema["properties"][block], (block,)))


def _edge_numbers(bounds: tuple[float, ...], rng: random.Random) -> float:
    """A number at one of the bounds, just inside or just outside; or any extreme one."""
    if not bounds or rng.random() < 0.4:
        return rng.choice(_NUMBERS)
    bound = rng.choice(bounds)
    near: list[float] = [bound, bound + 1, bound - 1, bound / 2, bound * 2, bound / 1e3]
    if isinstance(bound, float):
        near += [math.nextafter(bound, math.inf), math.nextafter(bound, -math.inf)]
    value = rng.choice(near)
    return int(value) if isinstance(bound, int) and value == int(value) else value


def header_numbers(document: dict[str, Any], rng: random.Random) -> str:
    """Set one or two numbers of the header or the model's config to extremes of the schema; returns the changes."""
    known = dict(number_bounds())
    config = [
        ("model", "config", *path)
        for path in places(document["model"]["config"])
        if isinstance(_at(document["model"]["config"], path), int | float)
    ]
    changes: list[str] = []
    for _ in range(rng.choice((1, 1, 2))):
        path = rng.choice(config) if rng.random() < 0.2 else rng.choice(list(known))
        if path[:2] == ("hardware", "accelerator") and isinstance(document["hardware"]["accelerator"], str):
            path = rng.choice([other for other in known if other[:2] != ("hardware", "accelerator")])
        value = _edge_numbers(known.get(path, ()), rng)
        put(document, path, value)
        changes.append(f"{'/'.join(map(str, path))} = {value!r:.40}")
    return ", ".join(changes)


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def _any_value(document: dict[str, Any], rng: random.Random) -> str:
    part = rng.choice((document, {k: v for k, v in document.items() if k not in ("nodes", "edges")}))
    path = rng.choice(list(places(part)))
    value = rng.choice(nasty_values())
    put(document, path, value)
    return f"{'/'.join(map(str, path))[:80]} = {value!r:.40}"


def _drop_key(document: dict[str, Any], rng: random.Random) -> str:
    path = rng.choice([path for path in places(document) if isinstance(path[-1], str)])
    del _at(document, path[:-1])[path[-1]]
    return f"without {'/'.join(map(str, path))[:80]}"


def _unknown_key(document: dict[str, Any], rng: random.Random) -> str:
    holders = [path for path in places(document) if isinstance(_at(document, path), dict)]
    path, key = rng.choice(holders), rng.choice(("extra", "", "\ud800", "__class__", "repeat", "like", "$ref"))
    _at(document, path)[key] = rng.choice(nasty_values())
    return f"{'/'.join(map(str, path))[:80]} has {key!r}"


def _element(document: dict[str, Any], rng: random.Random) -> str:
    """Delete, double, swap, shuffle or replace a node or an edge."""
    name = rng.choice(("nodes", "edges"))
    rows: list[Any] = document[name]
    if not rows:
        return "no element"
    at, other, action = rng.randrange(len(rows)), rng.randrange(len(rows)), rng.choice("dDsSrx")
    if action == "d":
        del rows[at]
    elif action == "D":
        rows.insert(other, json.loads(json.dumps(rows[at])))
    elif action == "s":
        rows[at], rows[other] = rows[other], rows[at]
    elif action == "S":
        rng.shuffle(rows)
    elif action == "r" and isinstance(rows[at], dict) and isinstance(rows[other], dict):
        key = rng.choice(list(rows[at]) or ["id"])
        rows[at][key] = rows[other].get(key)
    else:
        rows[at] = rng.choice(nasty_values())
    return f"{name}: {action} {at}"


def _renamed(document: dict[str, Any], rng: random.Random) -> str:
    """Change an id everywhere, which changes no meaning, or only in some places."""
    new = rng.choice(("", " ", "\n", "{i}", "x" * 5000, "\ud800", "/", "0", "null", "🦀", document["nodes"][0]["id"]))
    old = rng.choice(document["nodes"])["id"]
    everywhere = rng.random() < 0.7
    for row in (*document["nodes"], *document["edges"]):
        for key in ("id", "parent", "source", "target"):
            if isinstance(row, dict) and row.get(key) == old and (everywhere or rng.random() < 0.5):
                row[key] = new
    return f"{old} is called {new!r:.20}" + ("" if everywhere else " in places")


def _rewired(document: dict[str, Any], rng: random.Random) -> str:
    """Replace a parent or an end of an edge by another node: loops, children of others, edges across."""
    ids = [node["id"] for node in document["nodes"] if isinstance(node, dict) and "id" in node]
    rows, keys = rng.choice(((document["nodes"], ("parent", "id")), (document["edges"], ("source", "target"))))
    row, key = rng.choice(rows or [{}]), rng.choice(keys)
    if isinstance(row, dict):
        row[key] = rng.choice((*ids[:1], rng.choice(ids), row.get("id"), row.get("source"), "nobody"))
    return f"{key} is another"


def _devices(document: dict[str, Any], rng: random.Random) -> str:
    """Name devices that are far away, duplicate, or very long."""
    rows = [node for node in document["nodes"] if isinstance(node, dict) and isinstance(node.get("devices"), list)]
    new = rng.choice(
        ("n0.g0", "n0.g7", "n0.g8", "n999999999.g999999999", "n1.g0", "n00.g0", "N0.G0", "n0.g0\n", "n0.g٣")
    )
    if rng.random() < 0.4:
        text, old = json.dumps(document), rng.choice(rng.choice(rows)["devices"])
        document.update(json.loads(text.replace(json.dumps(old), json.dumps(new))))
        return f"{old} is {new} everywhere"
    row = rng.choice(rows)
    row["devices"] = [new] * rng.choice((1, 2, 300))
    return f"devices of a node are {new}"


def _layers(document: dict[str, Any], rng: random.Random) -> str:
    """Set ranges of layers or experts to huge, reversed or shifted ones."""
    rows = [node for node in document["nodes"] if isinstance(node, dict) and ({"layers", "experts"} & node.keys())]
    if not rows:
        return "no ranges"
    row = rng.choice(rows)
    key = "experts" if "experts" in row else "layers"
    pair = rng.choice(([0, 10**9], [5, 2], [0, 0], [10**9, 10**9], [1, 7], [0, 8], [0]))
    row[key] = [pair] * rng.choice((1, 1, 1000)) if key == "experts" else pair
    if rng.random() < 0.3:
        row["period"] = rng.choice((0, 1, 2, 3, 10**9))
    return f"{key} = {pair}"


_OPERATIONS: tuple[Callable[[dict[str, Any], random.Random], str], ...] = (
    _any_value, _any_value, _drop_key, _unknown_key, _element, _element, _renamed, _rewired, _devices, _layers,
)  # fmt: skip


def _operation(document: dict[str, Any], rng: random.Random) -> str:
    """Make a random change; an earlier change may have left no place for it."""
    try:
        return rng.choice(_OPERATIONS)(document, rng)
    except (AttributeError, IndexError, KeyError, TypeError):
        return "no place for a change"


def _spoilt_text(text: str, rng: random.Random) -> tuple[str, str]:
    """The text of a document, spoilt in a way that no object could be."""
    at = rng.randrange(len(text))
    old = rng.choice(("1", "2", "8", "512", "null", "true"))
    for value in rng.sample(
        ("9" * 5000, "1e999", "-1e999", "NaN", "Infinity", "0x10", "01", "1" * 4301, "+1", "1.", ".5"), 1
    ):
        if rng.random() < 0.5 and f": {old}" in text:
            return text.replace(f": {old}", f": {value}", 1), f"{old} is {value[:20]}"
    deep = rng.choice((300, 900, 5000, 100_000))
    choices = (
        (text[:at], "cut off"),
        ("\ufeff" + text, "a byte order mark"),
        (text[:at] + "\x00" + text[at:], "a NUL inside"),
        (text.replace('"model":', '"model": {}, "model":', 1), "a key twice"),
        (text.replace('"config": {', '"config": {"deep": ' + "[" * deep + "]" * deep + ",", 1), f"config {deep} deep"),
        (text.replace('"nodes": [', '"nodes": [' + '{"a":' * deep + "1" + "}" * deep + ",", 1), f"a node {deep} deep"),
        ("[" * deep + text + "]" * deep, f"{deep} lists around"),
        (text + text, "twice"),
        (text.replace("dense", "\\ud800").replace("tp0", "\\udc00"), "half letters, escaped"),
    )
    return rng.choice(choices)


def document_case(seed: int, number: int, names: Sequence[str] = (), *, in_full: bool = False) -> Case:
    """The hostile document that `seed` and `number` determine.

    `names` are the plans it may be made out of (all if empty); `in_full`: never in the compact form.
    """
    rng = random.Random(f"documents:{seed}:{number}")
    name = rng.choice(names or seed_names())
    document = seed_plan(name)
    drawn = rng.random()
    if drawn < 0.3:
        about = header_numbers(document, rng)
    elif drawn < 0.4 and not in_full:
        about = compact(document, rng)
    else:
        about = "; ".join(_operation(document, rng) for _ in range(rng.choice((1, 1, 1, 2, 4))))
    text = json.dumps(document)
    if drawn > 0.9:
        text, spoilt = _spoilt_text(text, rng)
        about = f"{about}; {spoilt}"
    return Case("documents", text, about, name)
