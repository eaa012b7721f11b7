"""A schedule in the form that a user asks for."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from halide_autotune.autotune_loop.schedule.model import Schedule


class ShowFormat(Enum):
    """A form of a schedule."""

    LOOPS = "loops"
    CPP = "cpp"
    PYTHON = "python"
    JSON = "json"


def show_schedule(schedule: Schedule, form: ShowFormat) -> str:
    """The schedule as text that ends with a line.

    Raises:
        GeneratorError: it is inconsistent, or Halide's Python cannot say it.
    """
    # Imported here: every command pays for what this module imports, because `sdk schedule` has the forms.
    from halide_autotune.autotune_loop.schedule.as_json import print_json
    from halide_autotune.autotune_loop.schedule.print_header import print_header
    from halide_autotune.autotune_loop.schedule.print_loops import print_loops
    from halide_autotune.autotune_loop.schedule.print_python import print_python

    match form:
        case ShowFormat.LOOPS:
            return print_loops(schedule)
        case ShowFormat.CPP:
            return print_header(schedule, schedule.function_name.rpartition("::")[2])
        case ShowFormat.PYTHON:
            return print_python(schedule)
        case ShowFormat.JSON:
            return print_json(schedule)
