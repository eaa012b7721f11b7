"""Lists of operators: what they may have, and what is said of what they may not."""

from __future__ import annotations

from pathlib import Path

import pytest

from halide_autotune.autotune_loop.network.operator_list import read_operator_list
from halide_autotune.autotune_loop.network.operators import OperatorKind
from halide_autotune.autotune_loop.network.tasks import tasks_of
from halide_autotune.targets.errors import NetworkError


def listed(folder: Path, text: str) -> Path:
    path = folder / "own.toml"
    path.write_text(text)
    return path


def test_each_table_is_an_operator(tmp_path: Path) -> None:
    network = read_operator_list(
        listed(
            tmp_path,
            """
            [[convolution]]
            name = "stem"
            input = [33, 32, 3]
            channels_out = 8
            kernel = [5, 3]
            stride = 2
            activation = "relu"
            [[convolution]]
            input = [9, 9, 4]
            channels_out = 6
            padding = 0
            groups = 2
            dilation = 2
            has_bias = false
            [[depthwise_convolution]]
            input = [8, 8, 6]
            multiplier = 2
            [[product]]
            rows = 64
            depth = 32
            columns = 48
            [[product]]
            depth = 32
            columns = 48
            """,
        )
    )
    assert network.name == "own" and not network.unsupported
    titles = [tasks_of([operator])[0].title for operator in network.operators]
    assert titles == [
        "convolution 5x3 /2 of 33x32x3 to 17x16x8, relu",
        "convolution 3x3 of 9x9x4 to 5x5x6",
        "depthwise_convolution 3x3 of 8x8x6 to 8x8x12",
        "convolution 1x1 of 1x64x32 to 1x64x48",
        "dense of 32 to 48",
    ]
    stem, grouped, *_ = network.operators
    names = [name for each in network.operators for name in each.places]
    assert names == ["stem", "convolution_2", "depthwise_convolution_1", "product_1", "product_2"]
    # The last column of an even picture is not read at stride 2 beyond its edge.
    assert [stem.settings[f"pad_{axis}_{end}"] for axis in ("rows", "columns") for end in ("before", "after")] == [
        *(2, 2),
        *(1, 0),
    ]
    assert grouped.settings["groups"] == 2 and not grouped.settings["has_bias"]
    assert network.operators[-1].kind is OperatorKind.DENSE


@pytest.mark.parametrize(
    ("kernel", "stride", "expected"), [(4, 4, 14), (16, 16, 4), (2, 2, 28), (2, 1, 56), (3, 1, 56), (3, 2, 28)]
)
def test_without_padding_the_size_is_kept_at_stride_1(tmp_path: Path, kernel: int, stride: int, expected: int) -> None:
    text = f"[[convolution]]\ninput = [56, 56, 3]\nchannels_out = 4\nkernel = [{kernel}, {kernel}]\nstride = {stride}"
    (operator,) = read_operator_list(listed(tmp_path, text)).operators
    assert operator.output.shape == (expected, expected, 4)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "own.toml: there are no operators; expected tables such as [[convolution]]."),
        (
            "[[convolution]]\nchannels_out = 4",
            "the key 'convolution[0].input' is missing; expected input = [56, 56, 64]",
        ),
        ("[[convolutions]]", "unknown key 'convolutions'; the nearest is 'convolution'."),
        ("[[product]]\ndepth = 0\ncolumns = 3", "key 'product[0].depth' must be an integer"),
        ("[[convolution]]\ninput = [4, 4, 3]\nchannels_out = 4\ngroups = 2", "cannot be divided into 2 groups"),
        ("[[convolution]]\ninput = [2, 2, 3]\nchannels_out = 4\npadding = 0", "is larger than its picture"),
        ("[[product]]\nname = 'a'\ndepth = 2\ncolumns = 3\n" * 2, "two operators have the name 'a'"),
        ("[[product", "not valid TOML"),
    ],
)
def test_what_is_wrong_is_one_sentence_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(NetworkError) as raised:
        read_operator_list(listed(tmp_path, text))
    assert said in str(raised.value) and "\n" not in str(raised.value)


def test_a_list_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match="There is no list of operators"):
        read_operator_list(tmp_path / "none.toml")
