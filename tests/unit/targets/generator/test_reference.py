"""What the user calls GENERATOR, and -p key=value."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halide_autotune.targets.errors import GeneratorError, UsageError
from halide_autotune.targets.generator.reference import GeneratorKind, parse_generator, parse_parameters


@pytest.mark.parametrize(
    ("file", "kind"),
    [("a b.py", GeneratorKind.PYTHON), ("é.cpp", GeneratorKind.CPP), ("x.cc", GeneratorKind.CPP)],
)
@pytest.mark.parametrize("name", [None, "blur", "a.b::c"])
def test_path_and_name(tmp_path: Path, file: str, kind: GeneratorKind, name: str | None) -> None:
    path = tmp_path / file
    path.touch()
    parsed = parse_generator(str(path) if name is None else f"{path}:blur", ["radius=3"])
    assert (parsed.file, parsed.kind, parsed.parameters) == (path, kind, {"radius": "3"})
    assert parsed.name == (None if name is None else "blur")


def test_an_existing_file_with_a_colon_in_its_name_is_that_file(tmp_path: Path) -> None:
    path = tmp_path / "a:b.py"
    path.touch()
    assert parse_generator(str(path)).name is None
    assert parse_generator(f"{path}:c").name == "c"


def test_an_executable_is_a_generator_and_another_file_is_not(tmp_path: Path) -> None:
    path = tmp_path / "blur.generator"
    path.touch(mode=0o644)
    with pytest.raises(GeneratorError, match=f"chmod \\+x {path}"):
        parse_generator(str(path))
    path.chmod(0o755)
    assert parse_generator(f"{path}:blur").kind is GeneratorKind.EXECUTABLE


@pytest.mark.parametrize("text", ["", ":", "no/such.py", "no/such.py:name", "."])
def test_what_is_no_file_is_refused(text: str) -> None:
    with pytest.raises(GeneratorError, match="There is no generator file"):
        parse_generator(text)


@pytest.mark.parametrize("item", ["radius", "=3", "", "=", "radius=", "a=b=c"])
def test_what_is_no_pair_is_refused(item: str) -> None:
    with pytest.raises(UsageError, match="Generator parameter"):
        parse_parameters([item])


@pytest.mark.parametrize("item", ["target=host", "autoscheduler=Li2018", "autoscheduler.parallelism=4"])
def test_what_the_sdk_sets_itself_is_refused(item: str) -> None:
    with pytest.raises(UsageError, match="set by the SDK"):
        parse_parameters([item])


@given(st.text())
def test_any_text_is_a_pair_or_a_usage_error(item: str) -> None:
    try:
        [(key, value)] = parse_parameters([item]).items()
    except UsageError:
        return
    assert f"{key}={value}" == item and key and value
