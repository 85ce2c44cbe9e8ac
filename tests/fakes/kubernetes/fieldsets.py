"""Sets of field paths as FieldsV1 writes them, and the merges that server-side apply makes by them.

A set is a tree of path elements: `f:name` for a field, `k:{...}` for a keyed item, `v:...` for a
member of a set. An empty tree is a member; a member that has members beneath it carries `.`. All
functions are pure; none changes what it is given, apart from `prune`, which works on a fresh copy.
"""

from typing import Any

import orjson

from tests.fakes.kubernetes.shapes import KEY_DEFAULTS, Shape

Fields = dict[str, Any]


def element_of(item: Any, shape: Shape) -> str:
    """The path element of an item of a keyed list or a set."""
    if shape.is_set or not isinstance(item, dict):
        return "v:" + orjson.dumps(item).decode()
    key = {name: item.get(name, KEY_DEFAULTS.get(name)) for name in sorted(shape.keys)}
    return "k:" + orjson.dumps(key).decode()


def elements(value: Any, shape: Shape) -> dict[str, tuple[Any, Shape]] | None:
    """The parts of a value that are owned one by one; None where it is owned as a whole."""
    if isinstance(value, dict) and value and not shape.atomic:
        return {f"f:{name}": (part, shape.child(name)) for name, part in value.items()}
    if isinstance(value, list) and value and (shape.keys or shape.is_set):
        item = shape.item()
        return {element_of(part, shape): (part, item) for part in value}
    return None


def fields_of(value: Any, shape: Shape) -> Fields:
    """Every field path beneath a value; empty where the value is owned as a whole."""
    if isinstance(value, dict) and value and not shape.atomic:
        return {f"f:{name}": fields_of(part, shape.child(name)) for name, part in value.items()}
    if isinstance(value, list) and value and (shape.keys or shape.is_set):
        item = shape.item()
        return {element_of(part, shape): _item_fields(part, item) for part in value}
    return {}


def _item_fields(part: Any, shape: Shape) -> Fields:
    beneath = fields_of(part, shape)
    return {".": {}, **beneath} if beneath else {}


def _opened(node: Fields) -> Fields:
    return node or {".": {}}


def _closed(node: Fields) -> Fields:
    return {} if node.keys() == {"."} else node


def union(left: Fields, right: Fields) -> Fields:
    both = dict(left)
    for key, node in right.items():
        if key not in both:
            both[key] = node
        elif key != "." and both[key] != node:
            both[key] = _closed(union(_opened(both[key]), _opened(node)))
    return both


def minus(left: Fields, right: Fields) -> Fields:
    """The members of `left` that are not members of `right`."""
    if not right:
        return left
    rest: Fields = {}
    for key, node in left.items():
        if key not in right:
            rest[key] = node
        elif key != "." and (kept := minus(_opened(node), _opened(right[key]))):
            rest[key] = _closed(kept)
    return rest


def common(left: Fields, right: Fields) -> Fields:
    """The members of both."""
    shared: Fields = {}
    for key in left.keys() & right.keys():
        if key == ".":
            shared[key] = {}
        elif kept := common(_opened(left[key]), _opened(right[key])):
            shared[key] = _closed(kept)
    return shared


def without(left: Fields, gone: Fields) -> Fields:
    """`left` without the subtrees that `gone` ends in."""
    if not gone:
        return left
    rest: Fields = {}
    for key, node in left.items():
        if key not in gone:
            rest[key] = node
        elif gone[key] and node and (kept := without(node, gone[key])):
            rest[key] = kept
    return rest


def changes(old: Any, new: Any, shape: Shape) -> tuple[Fields, Fields]:
    """What was added or has another value, and what is gone (as the roots of what is gone)."""
    before, after = elements(old, shape) or {}, elements(new, shape) or {}
    changed: Fields = {}
    gone: Fields = {key: {} for key in before if key not in after}
    for key, (value, inner) in after.items():
        if key not in before:
            changed[key] = _item_fields(value, inner) if key[0] == "k" else fields_of(value, inner)
            continue
        previous = before[key][0]
        if previous == value:
            continue
        if elements(previous, inner) is None or elements(value, inner) is None:
            changed[key] = fields_of(value, inner)
            gone[key] = {}
            continue
        deeper, lost = changes(previous, value, inner)
        if deeper:
            changed[key] = deeper
        if lost:
            gone[key] = lost
    return changed, gone


def merged(live: Any, applied: Any, shape: Shape) -> Any:
    """`live` with every field of `applied` set to its value there."""
    if isinstance(live, dict) and isinstance(applied, dict) and not shape.atomic:
        together = dict(live)
        for name, value in applied.items():
            known = name in live
            together[name] = merged(live[name], value, shape.child(name)) if known else value
        return together
    if isinstance(live, list) and isinstance(applied, list) and (shape.keys or shape.is_set):
        return _merged_items(live, applied, shape)
    return applied


def _merged_items(live: list[Any], applied: list[Any], shape: Shape) -> list[Any]:
    wanted = {element_of(item, shape): item for item in applied}
    known = {element_of(item, shape): item for item in live}
    inner = shape.item()
    together = {key: merged(known[key], wanted[key], inner) for key in known if key in wanted}
    order = list(wanted) if known.keys() <= wanted.keys() else [*known, *wanted]
    return [
        together[key] if key in together else known[key] if key in known else wanted[key]
        for key in dict.fromkeys(order)
    ]


def prune(value: Any, before: Fields, now: Fields, others: Fields, shape: Shape) -> Any:
    """`value` without what was applied `before`, is not applied `now`, and nobody else owns."""
    parts = elements(value, shape)
    if parts is None:
        return value
    kept: dict[str, Any] = {}
    for key, (part, inner) in parts.items():
        if key not in before:
            kept[key] = part
        elif key in now or key in others:
            kept[key] = prune(part, before[key], now.get(key, {}), others.get(key, {}), inner)
    if isinstance(value, dict):
        return {key[2:]: part for key, part in kept.items()}
    return list(kept.values())


def paths(fields: Fields, prefix: str = "") -> list[str]:
    """Dotted paths as conflict messages write them: `.spec.containers[name="a"].image`."""
    found: list[str] = []
    for key, node in fields.items():
        if key == ".":
            found.append(prefix)
            continue
        here = prefix + _dotted(key)
        found.extend(paths(node, here) if node else [here])
    return found


def _dotted(key: str) -> str:
    kind, text = key[:2], key[2:]
    if kind == "f:":
        return f".{text}"
    if kind == "v:":
        return f"[={text}]"
    named = orjson.loads(text)
    return "[" + ",".join(f"{k}={orjson.dumps(v).decode()}" for k, v in named.items()) + "]"
