"""What the text of a C++ generator says: what it registers, which stubs it includes, and how old its style is.

Macros and conditions are not followed: what is found serves messages, and stubs that would be missing otherwise.
"""

from __future__ import annotations

import re

_REGISTERED = re.compile(r"^[ \t]*HALIDE_REGISTER_GENERATOR\s*\(\s*[\w:]+\s*,\s*(\w+)", re.MULTILINE)
_STUB = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<](?P<path>(?:\w[\w.-]*/)*(?P<name>\w+)\.stub\.h)[">]', re.MULTILINE)
_OLD = re.compile(r"\b(Func|Pipeline)\s+build\s*\(\s*(void)?\s*\)|\bRegisterGenerator\s*<")
OLD_STYLE_STEP = (
    "Declare Input<…> members in place of Param<…> and ImageParam, an Output<…> member for each Func that build()"
    " returned, define void generate() in place of build(), and register with HALIDE_REGISTER_GENERATOR(Class, name)."
)

# Names of earlier Halides, and what they are called now.
_RENAMED = {
    "auto_schedule": "using_autoscheduler()",
    "get_auto_schedule": "using_autoscheduler",
    "tuple_select": "select",
}


def renamed_step(compiler_log: str) -> str:
    """What to add where a source uses names of an earlier Halide; empty if the log tells of none."""
    found = [f"--define '{old}={new}'" for old, new in _RENAMED.items() if f"‘{old}’ was not declared" in compiler_log]
    return f"Halide has another name for it now. Add {' and '.join(found)}." if found else ""


def registered_generators(text: str) -> tuple[str, ...]:
    """The names of the generators that a source registers, in order."""
    return tuple(_REGISTERED.findall(text))


def included_stubs(text: str) -> dict[str, str]:
    """The stubs that a source includes, such as 'stubs/blur.stub.h', each with its generator's name."""
    return {found["path"]: found["name"] for found in _STUB.finditer(text)}


def is_old_style(text: str) -> bool:
    """Whether a generator is written as before Halide 10, with `Func build()`."""
    return _OLD.search(text) is not None
