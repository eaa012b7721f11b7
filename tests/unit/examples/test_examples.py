"""Every example, in Python and in C++, against numpy and against each other, under several schedules."""

from __future__ import annotations

import ctypes
import importlib.util
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import halide as hl
import numpy as np
import pytest

from halide_autotune.targets.halide_install import find_halide_install
from tests.unit.examples.conftest import BuildCppGenerators
from tests.unit.examples.numpy_references import CASES, Array, ExampleCase

pytestmark = pytest.mark.toolchain

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples"
HOST = str(hl.get_host_target())
SEARCH_PARAMETERS: dict[str, dict[str, str]] = {
    "": {},
    # A Python generator loses autoscheduler.* on its command line (Halide 21): nothing here may depend on them.
    "Mullapudi2016": {},
    "Adams2019": {"parallelism": "2", "beam_size": "1", "random_dropout": "1", "random_dropout_seed": "7"},
}

case_of = cache(lambda name: CASES[name]())


def search_arguments(scheduler: str) -> list[str]:
    """What a generator's command line needs to run an autoscheduler."""
    extra = [f"autoscheduler.{key}={value}" for key, value in SEARCH_PARAMETERS[scheduler].items()]
    plugin = find_halide_install().plugin_path(scheduler)
    return ["-p", str(plugin), f"autoscheduler={scheduler}", *extra]


@cache
def load_example(name: str) -> ModuleType:
    """Import examples/<name>.py; Halide allows a generator's name to be registered once only."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def python_pipeline(case: ExampleCase, scheduler: str) -> tuple[Any, bytes]:
    """The Python example with its arguments bound and scheduled, and the search's featurization."""
    classes: list[Any] = [value for value in vars(load_example(case.name)).values() if isinstance(value, type)]
    generator = next(cls for cls in classes if issubclass(cls, hl.Generator))
    target = hl.Target(HOST)
    parameters = hl.AutoschedulerParams(scheduler, SEARCH_PARAMETERS[scheduler])
    with hl.GeneratorContext(target, parameters):
        arguments = [hl.Buffer(a) if isinstance(a, np.ndarray) else a for a in case.arguments]
        output = generator.call(*arguments, generator_params=case.parameters)
    pipeline = hl.Pipeline(output)
    if not scheduler:
        return pipeline, b""
    hl.load_plugin(str(find_halide_install().plugin_path(scheduler)))
    return pipeline, bytes(pipeline.apply_autoscheduler(target, parameters).featurization)


@cache
def python_output(name: str, scheduler: str) -> Array:
    """What the Python example computes."""
    case = case_of(name)
    pipeline, _ = python_pipeline(case, scheduler)
    result = np.zeros_like(case.expected)
    pipeline.realize(hl.Buffer(result), hl.Target(HOST))
    return result


class HalideDimension(ctypes.Structure):
    """halide_dimension_t of HalideRuntime.h."""

    _fields_ = [(name, ctypes.c_int32) for name in ("min", "extent", "stride")] + [("flags", ctypes.c_uint32)]


class HalideBuffer(ctypes.Structure):
    """halide_buffer_t of HalideRuntime.h."""

    _fields_ = [
        ("device", ctypes.c_uint64),
        ("device_interface", ctypes.c_void_p),
        ("host", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("type_code", ctypes.c_uint8),
        ("type_bits", ctypes.c_uint8),
        ("type_lanes", ctypes.c_uint16),
        ("dimensions", ctypes.c_int32),
        ("dim", ctypes.POINTER(HalideDimension)),
        ("padding", ctypes.c_void_p),
    ]


def halide_buffer(array: Array) -> HalideBuffer:
    """A view of array, whose last axis becomes Halide's dimension 0."""
    sizes = zip(array.shape[::-1], array.strides[::-1], strict=True)
    dims = [HalideDimension(0, extent, stride // array.itemsize, 0) for extent, stride in sizes]
    kind = {"i": 0, "u": 1, "f": 2}[array.dtype.kind]
    bits = 8 * array.itemsize
    return HalideBuffer(
        0, None, array.ctypes.data, 0, kind, bits, 1, array.ndim, (HalideDimension * array.ndim)(*dims), None
    )


def call_kernel(library: ctypes.CDLL, name: str, case: ExampleCase, scalar_types: list[Any]) -> Array:
    """Call a compiled kernel through its argv entry point."""
    result = np.zeros_like(case.expected)
    scalars = iter(scalar_types)
    values: list[Any] = [
        halide_buffer(a) if isinstance(a, np.ndarray) else next(scalars)(a) for a in (*case.arguments, result)
    ]
    argv = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
    assert library[f"{name}_argv"](argv) == 0
    return result


@pytest.fixture(scope="module")
def cpp_generator(build_cpp_generators: BuildCppGenerators) -> Path:
    """All C++ examples in one generator executable."""
    return build_cpp_generators([EXAMPLES / f"{name}.cpp" for name in CASES])


@pytest.fixture(scope="module")
def cpp_kernels(cpp_generator: Path, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The C++ examples compiled for this machine with their own schedules, in one library."""
    folder = tmp_path_factory.mktemp("kernels")
    for name in CASES:
        run_generator([str(cpp_generator)], name, folder, "object", "")
    runtime = ["-r", "runtime", "-e", "object", "-o", str(folder), f"target={HOST}"]
    subprocess.run([str(cpp_generator), *runtime], check=True, timeout=240)
    objects = [folder / f"{name}.o" for name in (*CASES, "runtime")]
    library = folder / "libkernels.so"
    subprocess.run(["g++", "-shared", *objects, "-o", library, "-ldl", "-lpthread"], check=True, timeout=240)
    return ctypes.CDLL(str(library))


def run_generator(program: list[str], name: str, folder: Path, emit: str, scheduler: str) -> None:
    """Run a generator at the small size of the example's case, without Halide's runtime."""
    folder.mkdir(exist_ok=True)
    parameters = [f"{key}={value}" for key, value in case_of(name).parameters.items()]
    arguments = ["-g", name, "-o", ".", "-e", emit, f"target={HOST}-no_runtime", *parameters]
    if scheduler:
        arguments += search_arguments(scheduler)
    # From inside the folder: a header's include guard is made from the path it is written to.
    subprocess.run([*program, *arguments], check=True, timeout=240, cwd=folder)


def assert_close(actual: Array, case: ExampleCase, expected: Array) -> None:
    """Equal for integers; within rounding of the largest value for floats."""
    if case.is_exact:
        np.testing.assert_array_equal(actual, expected)
    else:
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6 * float(np.abs(expected).max()))


@pytest.mark.parametrize("scheduler", list(SEARCH_PARAMETERS))
@pytest.mark.parametrize("name", list(CASES))
def test_output_is_what_numpy_computes(name: str, scheduler: str) -> None:
    case = case_of(name)
    assert_close(python_output(name, scheduler), case, case.expected)


SCALAR_TYPES: dict[str, list[Any]] = {
    "corner_detector": [ctypes.c_float],
    "bilateral_grid": [ctypes.c_float],
    "camera_pipeline": [*[ctypes.c_uint16] * 4, ctypes.c_uint8],
    "matrix_product": [ctypes.c_float],
}


@pytest.mark.parametrize("name", list(CASES))
def test_cpp_gives_the_same_output_as_python(name: str, cpp_kernels: ctypes.CDLL) -> None:
    case = case_of(name)
    output = call_kernel(cpp_kernels, name, case, SCALAR_TYPES.get(name, []))
    assert_close(output, case, python_output(name, ""))


@pytest.mark.parametrize("name", list(CASES))
def test_cpp_has_the_same_stages_as_python(name: str, cpp_generator: Path, tmp_path: Path) -> None:
    """Equal stages, loads and estimates: the featurization of the same search."""
    run_generator([str(cpp_generator)], name, tmp_path, "featurization", "Adams2019")
    _, featurization = python_pipeline(case_of(name), "Adams2019")
    assert (tmp_path / f"{name}.featurization").read_bytes() == featurization


@pytest.mark.parametrize("name", list(CASES))
def test_cpp_has_the_same_arguments_and_func_names_as_python(name: str, cpp_generator: Path, tmp_path: Path) -> None:
    """So that a schedule found for one is the schedule of the other."""
    programs = {"cpp": [str(cpp_generator)], "python": [sys.executable, str(EXAMPLES / f"{name}.py")]}
    for language, program in programs.items():
        run_generator(program, name, tmp_path / language, "c_header,schedule", "Mullapudi2016")
    for suffix in (".h", ".schedule.h"):
        cpp, python = ((tmp_path / language / f"{name}{suffix}").read_text() for language in programs)
        assert cpp == python


OUT_OF_RANGE = {
    "bilateral_grid": ("cell=33", "cell is 33; it must be from 2 to 32"),
    "corner_detector": ("radius=0", "radius is 0; it must be 1 or more"),
    "edge_detector": ("thickness=4", "thickness is 4; it must be from 0 to 3"),
    "separable_filter": ("radius=5", "radius is 5; it must be from 1 to 4"),
    "stencil_chain": ("stages=0", "stages is 0; it must be 1 or more"),
}


@pytest.mark.parametrize("language", ["python", "cpp"])
@pytest.mark.parametrize("name", list(OUT_OF_RANGE))
def test_parameter_out_of_range_is_refused(name: str, language: str, cpp_generator: Path, tmp_path: Path) -> None:
    program = [sys.executable, str(EXAMPLES / f"{name}.py")] if language == "python" else [str(cpp_generator)]
    parameter, message = OUT_OF_RANGE[name]
    command = [*program, "-g", name, "-o", str(tmp_path), "-e", "c_header", f"target={HOST}", parameter]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode != 0
    assert f"{name}: {message}" in done.stderr


def test_settings_name_every_example() -> None:
    settings = tomllib.loads((ROOT / "sdk.toml").read_text())
    generators = settings["generators"]
    assert {Path(path).stem for path in generators.values()} == set(CASES)
    assert settings["default_generator"] in generators.values()
    for path in generators.values():
        assert (ROOT / path).is_file() and (ROOT / path).with_suffix(".cpp").is_file()
