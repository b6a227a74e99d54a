"""Settings that say what they may be: dataclasses whose annotations are the schema.

A field is a text, a bool, a :data:`Count`, a :data:`Seed`, a :data:`Positive` or another number, one of some names
(``Literal``), several of a kind (``tuple[kind, ...]``), None where it may be left out, or a dataclass of its own.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from anechoic.errors import BadInput, shown, unknown

Kind = TypeVar("Kind")


class Limits(NamedTuple):
    """The smallest and the largest number that is allowed, and how a sentence says so."""

    low: float = -math.inf
    high: float = math.inf
    words: str = ""


DEEPEST = 8
"""No setting lies deeper."""

LARGEST = sys.float_info.max
"""No number in settings is larger, so that whole ones can become floats too."""

Count = Annotated[int, Limits(low=1, words="of at least 1")]
Seed = Annotated[int, Limits(low=0, words="of at least 0")]
Positive = Annotated[float, Limits(low=math.ulp(0.0), words="above 0")]
NotNegative = Annotated[float, Limits(low=0.0, words="of at least 0")]
Share = Annotated[float, Limits(0.0, 1.0, "from 0 to 1")]


def build(form: type[Kind], values: Mapping[str, Any], prefix: str = "") -> Kind:
    """Return the settings of that form with these values, or refuse the first that does not fit.

    ``values`` may nest as the form does, or name what lies deeper with dots.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Form:
    ...     rounds: Count = 1
    >>> build(Form, {"rounds": 5})
    Form(rounds=5)
    >>> build(Form, {"round": 5})
    Traceback (most recent call last):
    anechoic.errors.BadInput: there is no setting 'round'; did you mean 'rounds'? There are: rounds
    >>> build(Form, {"rounds": "many"})
    Traceback (most recent call last):
    anechoic.errors.BadInput: rounds must be a whole number of at least 1, not 'many'
    """
    if not isinstance(values, Mapping):
        raise BadInput(f"{prefix.rstrip('.') or 'settings'} must be a table of settings, not {shown(values)}")
    kinds, checked = _kinds(form), {}
    for key, value in _nested(values).items():
        if key not in kinds:
            raise unknown("setting", prefix + key, [prefix + name for name in kinds])
        checked[key] = fitted(prefix + key, value, kinds[key])
    for field in fields(form):  # type: ignore[arg-type]
        if field.name not in checked and field.default is field.default_factory is MISSING:
            raise BadInput(f"{prefix}{field.name} must be given")
    return form(**checked)


def check(settings: Any, prefix: str = "") -> None:
    """Hold every field of a dataclass of settings against its annotation, and make whole numbers floats where due."""
    kinds = _kinds(type(settings))
    for field in fields(settings):
        value = fitted(prefix + field.name, getattr(settings, field.name), kinds[field.name])
        object.__setattr__(settings, field.name, value)


def fitted(name: str, value: Any, kind: Any) -> Any:
    """Return the value as one of its kind, or refuse it with a sentence that names it."""
    if get_origin(kind) in (Union, UnionType):
        return _either(name, value, get_args(kind))
    if get_origin(kind) is Literal:
        if value not in get_args(kind):
            raise unknown(name, value, get_args(kind))
        return value
    if get_origin(kind) is tuple:
        if not isinstance(value, list | tuple) or not value:
            raise BadInput(f"{name} must be a list of one or more, not {shown(value)}")
        return tuple(fitted(f"{name}[{place}]", item, get_args(kind)[0]) for place, item in enumerate(value))
    if is_dataclass(kind):
        return _part(name, value, kind)
    base, limits = get_args(kind) if get_origin(kind) is Annotated else (kind, Limits())
    if base in (int, float):
        return _number(name, value, base, limits)
    if type(value) is not base:
        raise BadInput(f"{name} must be {'true or false' if base is bool else 'a text'}, not {shown(value)}")
    return value


def _either(name: str, value: Any, kinds: tuple[Any, ...]) -> Any:
    """Return the value as one of the first kind that it fits."""
    if value is None and NoneType in kinds:
        return None
    refusals = []
    for kind in (kind for kind in kinds if kind is not NoneType):
        try:
            return fitted(name, value, kind)
        except BadInput as refusal:
            refusals.append(refusal)
    raise refusals[-1 if isinstance(value, list | tuple) else 0]


def _part(name: str, value: Any, kind: Any) -> Any:
    if isinstance(value, Mapping):
        return build(kind, value, f"{name}.")
    if not isinstance(value, kind):
        raise BadInput(f"{name} must be a table of settings, not {shown(value)}")
    check(value, f"{name}.")
    return value


def _number(name: str, value: Any, base: type[int] | type[float], limits: Limits) -> int | float:
    words = "whole number" if base is int else "finite number"
    right = isinstance(value, (int, np.integer) if base is int else (int, float, np.integer, np.floating))
    right = right and not isinstance(value, bool) and (abs(value) <= LARGEST)
    if not (right and limits.low <= value <= limits.high):
        raise BadInput(f"{name} must be a {' '.join((words, limits.words)).strip()}, not {shown(value)}")
    return base(value)


def _kinds(form: Any) -> dict[str, Any]:
    return _hints(form)


@cache
def _hints(form: Hashable) -> dict[str, Any]:
    return get_type_hints(form, include_extras=True)


def _nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values in which ``{"table.label": x}`` has become ``{"table": {"label": x}}``."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        if key.count(".") > DEEPEST:
            raise BadInput(f"there is no setting {shown(key)}: it has too many dots")
        head, dot, rest = key.partition(".")
        if dot:
            before = found.get(head)
            found[head] = _nested({**(before if isinstance(before, Mapping) else {}), rest: value})
        else:
            found[head] = value
    return found


def to_toml(settings: Mapping[str, Any]) -> str:
    """Return settings as TOML, from which :func:`build` gives the same again; what is None is left out.

    >>> print(to_toml({"rho": 4.0, "clip": None, "table": {"label": "y", "classes": ("no", "yes")}}))
    rho = 4.0
    <BLANKLINE>
    [table]
    label = "y"
    classes = ["no", "yes"]
    <BLANKLINE>
    """
    return "\n".join(_lines(settings)) + "\n"


def _lines(settings: Mapping[str, Any]) -> Iterator[str]:
    for key, value in settings.items():
        if value is not None and not isinstance(value, Mapping):
            yield f"{key} = {_literal(value)}"
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield f"\n[{key}]"
            yield from _lines(value)


def _literal(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, str):
        # JSON's text is TOML's, but for one character that TOML wants escaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value).lower() if isinstance(value, bool) else repr(value)
