"""`sdk.toml`: what a project says, and what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halide_autotune.sdk.project.file import FILE_NAME, find_project
from halide_autotune.targets.errors import UsageError

GOOD = """
default_generator = "blur"
default_target = "arm64"
budget = "5m"
[generators]
blur = "src/blur.py:fast_blur"
sharpen = "src/sharpen.cpp"
"""


def write(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE_NAME).write_text(text)
    return folder


def test_the_nearest_file_counts(tmp_path: Path) -> None:
    write(tmp_path / "a", GOOD)
    write(tmp_path / "a" / "b", 'default_generator = "other.py"')
    (tmp_path / "a" / "c" / "d").mkdir(parents=True)
    deep = find_project(tmp_path / "a" / "c" / "d")
    assert (deep.folder, deep.default_target, deep.budget) == (tmp_path / "a", "arm64", "5m")
    assert find_project(tmp_path / "a" / "b").default_generator == "other.py"


def test_names_and_paths_are_told_apart(tmp_path: Path) -> None:
    project = find_project(write(tmp_path, GOOD))
    assert project.resolve(None) == str(tmp_path / "src/blur.py:fast_blur") == project.resolve("blur")
    assert project.resolve("sharpen") == str(tmp_path / "src/sharpen.cpp")
    assert project.resolve("elsewhere/x.py") == "elsewhere/x.py"
    assert find_project(write(tmp_path / "p", 'default_generator = "x.py:y"')).resolve(None) == str(
        tmp_path / "p/x.py:y"
    )


def test_without_a_generator_the_known_ones_are_named(tmp_path: Path) -> None:
    project = find_project(write(tmp_path, '[generators]\nblur = "b.py"\nother = "o.py"\n'))
    with pytest.raises(UsageError, match="No GENERATOR was given.*blur, other"):
        project.resolve(None)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("default_generator = 3", "key 'default_generator' must be a string"),
        ('generators = "x"', "key 'generators' must be a table"),
        (
            "[[generators]]\ngenerator = 'a.py'\ntune = { x = '9..8' }",
            "key 'generators[0].tune': --tune x=9..8 is empty: 9 is above 8.",
        ),
        ("[[generators]]\ngenerator = 'a.py'\ntune = { x = 8 }", "key 'generators[0].tune.x' must be a string"),
        ("[generators]\nblur = 3", "key 'generators.blur' must be a string"),
        ("[generators.blur]\nfile = 'x'", "key 'generators.blur' must be a string"),
        ("defualt_target = 'x'", "unknown key 'defualt_target'; the nearest is 'default_target'"),
        ("a = ", "not valid TOML"),
        ("= 3", "not valid TOML"),
        ("generators = [3]", "key 'generators[0]' must be a table"),
        ("[[generators]]\nname = 'x'", "the key 'generators[0].generator' is missing"),
        ("[[generators]]\ngenerator = 'x'\nparameters = 'a=1'", "key 'generators[0].parameters' must be a list"),
        ("[[generators]]\ngenerator = 'x'\nincumbnt = 'y'", "the nearest is 'generators[0].incumbent'"),
        ("[[generators]]\ngenerator = 'x'\n[[generators]]\ngenerator = 'x'", "'x' is there twice"),
        ("[farm]\nscheduler = 3", "key 'farm.scheduler' must be a string"),
        ("farm = 3", "key 'farm' must be a table"),
        ("scheduler = 'x'", "the nearest is 'farm.scheduler'"),
    ],
)
def test_what_is_wrong_is_named_with_its_file(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_project(write(tmp_path, text))
    assert words in str(caught.value) and str(tmp_path / FILE_NAME) in str(caught.value)


@given(st.binary(max_size=100))
def test_any_file_is_a_project_or_a_usage_error(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    folder = tmp_path_factory.getbasetemp()
    (folder / FILE_NAME).write_bytes(content)
    try:
        find_project(folder)
    except UsageError as error:
        assert FILE_NAME in str(error)
    finally:
        (folder / FILE_NAME).unlink()
