"""Generators of several files, which read data when they run."""

from __future__ import annotations

from pathlib import Path

from halide_autotune.targets.generator.reference import GeneratorReference, parse_generator
from halide_autotune.targets.toolchain.cpp_build import CppBuild

_CPP_FILES = {
    "include/filter/gain.h": """#pragma once
#include <Halide.h>
Halide::Expr gained(Halide::Expr value);
""",
    "source/gain.cpp": """#include <filter/gain.h>
#include <fstream>
#include <stdexcept>
#include <string>
Halide::Expr gained(Halide::Expr value) {
    const std::string own = __FILE__;
    std::ifstream data(own.substr(0, own.rfind('/')) + "/../data/gain.txt");
    int gain = 0;
    if (!(data >> gain)) throw std::runtime_error("gain.txt cannot be read");
    return value * gain + OFFSET;
}
""",
    "source/filter.cpp": """#include <filter/gain.h>
#include "local.h"
struct Filter : Halide::Generator<Filter> {
    Input<Buffer<int32_t, 2>> input{"input"};
    Output<Buffer<int32_t, 2>> output{"output"};
    Halide::Var x{"x"}, y{"y"};
    void generate() {
        Halide::Func wide("wide");
        wide(x, y) = gained(input(x, y)) + BIAS;
        output(x, y) = wide(x, y) + wide(x, y + 1);
    }
    void schedule() {
        input.set_estimates({{0, 256}, {0, 257}});
        output.set_estimates({{0, 256}, {0, 256}});
    }
};
HALIDE_REGISTER_GENERATOR(Filter, filter)
""",
    "source/local.h": "#define BIAS 7\n",
    "data/gain.txt": "3\n",
    "unused/other.h": "",
}
_PYTHON_FILES = {
    "tool.py": """import halide as hl
from stages.gain import gained

@hl.generator(name="filter")
class Filter(hl.Generator):
    input = hl.InputBuffer(hl.Int(32), 2)
    output = hl.OutputBuffer(hl.Int(32), 2)

    def generate(self):
        x, y = hl.Var("x"), hl.Var("y")
        wide = hl.Func("wide")
        wide[x, y] = gained(self.input[x, y])
        self.output[x, y] = wide[x, y] + wide[x, y + 1]
        self.input.set_estimates([(0, 256), (0, 257)])
        self.output.set_estimates([(0, 256), (0, 256)])
""",
    "stages/gain.py": """from pathlib import Path

GAIN = int((Path(__file__).parents[1] / "data" / "gain.txt").read_text())

def gained(value):
    return value * GAIN
""",
    "data/gain.txt": "3\n",
}


def _written(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def cpp_project(folder: Path) -> GeneratorReference:
    """Two sources, a header in an include folder, one beside a source, a macro and a table."""
    _written(folder, _CPP_FILES)
    build = CppBuild(
        sources=(folder / "source" / "gain.cpp",),
        include_folders=(folder / "unused", folder / "source" / ".." / "include"),
        definitions=("OFFSET=5",),
        flags=("-fexceptions",),
        data_files=(folder / "data" / "gain.txt",),
    )
    return parse_generator(f"{folder}/source/filter.cpp:filter", (), build)


def python_project(folder: Path) -> GeneratorReference:
    """A package beside the generator, and a table."""
    _written(folder, _PYTHON_FILES)
    return parse_generator(f"{folder}/tool.py:filter", (), CppBuild(data_files=(folder / "data" / "gain.txt",)))
