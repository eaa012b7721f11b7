"""Tuned parameters as files to commit: for `sdk.toml`, for CMake, and for a command line."""

from __future__ import annotations

import re
from collections.abc import Mapping

from halide_autotune.autotune_loop.shipping.provenance import Provenance, provenance_comment
from halide_autotune.autotune_loop.store.parameters_file import parameters_text


def print_parameter_files(name: str, profile_name: str, values: Mapping[str, str], facts: Provenance) -> dict[str, str]:
    """File name → text; each begins with where the parameters come from, in a comment."""
    words = [f"{key}={value}" for key, value in values.items()]
    stem = f"{name}.{profile_name}.parameters"
    variable = f"{name}_{re.sub(r'[^A-Za-z0-9]', '_', profile_name)}_PARAMS"
    use = {
        "toml": f"A table of [[generators]] in sdk.toml takes it, for the generator {facts['generator']}.",
        "cmake": f"After include(): add_halide_library({name} FROM generator PARAMS ${{{variable}}})",
        "txt": "After the generator's other arguments on a command line: $(grep -v '^#' FILE)",
    }
    text = {
        "toml": parameters_text(values),
        "cmake": f"set({variable} {' '.join(words)})\n",
        "txt": " ".join(words) + "\n",
    }
    comment = "\n".join(f"# {line}".rstrip() for line in provenance_comment(facts))
    return {f"{stem}.{suffix}": f"# {use[suffix]}\n#\n{comment}\n\n{text[suffix]}" for suffix in text}
