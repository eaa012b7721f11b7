"""Shows `Annotated[int, …]` as `int` in the pages of the Python API: flags and checks are the commands' matter."""

from __future__ import annotations

from typing import Any

import griffe


class PlainAnnotations(griffe.Extension):
    """An extension of griffe, which reads the code for mkdocstrings."""

    def on_attribute_instance(self, *, attr: griffe.Attribute, **_: Any) -> None:
        """Keep the type of a field, before a dataclass gets its signature from it."""
        annotation = attr.annotation
        if isinstance(annotation, griffe.ExprSubscript) and annotation.canonical_name == "Annotated":
            details = annotation.slice
            attr.annotation = details.elements[0] if isinstance(details, griffe.ExprTuple) else details
