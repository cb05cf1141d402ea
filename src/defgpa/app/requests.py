"""Parse and check the fields of requests: numbers, names, edits.

Specimens and landmarks are numbers in the order of the files: names of files may hold bytes that
are no character, and never have to be sent back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
from starlette.exceptions import HTTPException
from starlette.requests import Request

from defgpa.edits import Edit
from defgpa.errors import DefgpaError
from defgpa.shapes import Shapes

MAX_BODY = 4 << 20  # bytes of a request in JSON

Values = Mapping[str, object]


async def read_values(request: Request) -> dict[str, object]:
    """Return the values of a request: of its address, its path, and its JSON."""
    values: dict[str, object] = {**request.query_params, **request.path_params}
    if request.method == "POST":
        content = b""
        async for block in request.stream():
            content += block
            if len(content) > MAX_BODY:
                raise HTTPException(413, "The request is too long.")
        try:
            body = json.loads(content or b"{}")
        except (ValueError, RecursionError):
            raise HTTPException(400, "The request is no JSON.") from None
        if not isinstance(body, dict):
            raise HTTPException(400, "The request is no JSON object.")
        values |= body
    return values


def get_text(values: Values, key: str) -> str:
    """Return a text field of a request, empty if it is absent."""
    return str(values.get(key) or "")


def get_index(values: Values, key: str, count: int) -> int:
    """Return a number from 0 below a count, or refuse it."""
    value = values.get(key)
    if isinstance(value, str) and value.isdecimal() and len(value) < 12:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < count:
        raise DefgpaError(f"There is no {key} {value!r}; they are numbered 0 to {count - 1}.")
    return value


def get_number(values: Values, key: str, default: float) -> float:
    """Return a finite number, or refuse it."""
    value = values.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
        raise DefgpaError(f"{key!r} must be a number; got {value!r}.")
    return float(value)


def parse_edit(shapes: Shapes, entry: object) -> Edit:
    """Return the edit of a request, made now; its specimen and landmarks are numbers."""
    if not isinstance(entry, dict):
        raise DefgpaError("An edit must be an object.")
    fields = {key: entry[key] for key in ("action", "to", "finding", "reason") if key in entry}
    if entry.get("specimen") is not None:
        fields["specimen"] = shapes.names[get_index(entry, "specimen", shapes.n_shapes)]
    numbers = entry.get("landmarks", [])
    if not isinstance(numbers, list):
        raise DefgpaError("The landmarks of an edit must be a list of numbers.")
    fields["landmarks"] = [
        shapes.landmarks[get_index({"landmark": number}, "landmark", shapes.n_landmarks)]
        for number in numbers
    ]
    edit = Edit.from_dict(fields)
    return Edit(edit.action, edit.specimen, edit.landmarks, edit.to, edit.finding, edit.reason)
