"""The wheel that the target itself would choose."""

import pytest

from bundler.build.tags import best_wheel, glibc_of
from bundler.domain.target import Target

TARGET = Target(python="3.12", glibc="2.31")


def choose(*names: str, target: Target = TARGET) -> str | None:
    return best_wheel([(name, name) for name in names], target)


def test_a_native_wheel_beats_a_pure_one() -> None:
    assert choose("x-1-py3-none-any.whl", "x-1-cp312-cp312-manylinux_2_28_x86_64.whl") == (
        "x-1-cp312-cp312-manylinux_2_28_x86_64.whl"
    )


def test_a_wheel_for_a_newer_glibc_is_not_taken() -> None:
    new = "x-1-cp38-abi3-manylinux_2_35_x86_64.whl"
    assert choose(new) is None
    assert choose(new, target=Target(python="3.12", glibc="2.35")) == new


def test_abi3_of_an_older_python_is_taken() -> None:
    assert choose("vllm-0.17.1-cp38-abi3-manylinux_2_31_x86_64.whl")


@pytest.mark.parametrize("other", ["win_amd64", "macosx_11_0_arm64", "musllinux_1_2_x86_64",
                                   "manylinux_2_17_aarch64"])  # fmt: skip
def test_other_systems_are_not_taken(other: str) -> None:
    assert choose(f"x-1-cp312-cp312-{other}.whl") is None


def test_the_higher_build_tag_wins() -> None:
    assert choose("x-1-py3-none-any.whl", "x-1-2-py3-none-any.whl", "x-1-10-py3-none-any.whl") == (
        "x-1-10-py3-none-any.whl"
    )


def test_legacy_names_of_manylinux_are_known() -> None:
    assert choose("x-1-cp312-cp312-manylinux2014_x86_64.whl")
    assert choose("x-1-cp38-abi3-manylinux1_x86_64.whl")


def test_a_name_that_is_no_wheel_is_passed_over() -> None:
    assert choose("x-1.tar.gz", "nonsense.whl") is None


VLLM = "vllm-0.23.0-cp38-abi3-manylinux_2_28_x86_64.whl"
VLLM_BUILD_2 = "vllm-0.23.0-2-cp38-abi3-manylinux_2_28_x86_64.whl"


def test_a_real_build_tag_wins_over_the_same_file_without() -> None:
    assert choose(VLLM, VLLM_BUILD_2) == choose(VLLM_BUILD_2, VLLM) == VLLM_BUILD_2


def test_the_tag_counts_more_than_the_build() -> None:
    closer = "vllm-0.23.0-cp312-cp312-manylinux_2_31_x86_64.whl"
    assert choose(VLLM_BUILD_2, closer) == closer


@pytest.mark.parametrize(
    ("names", "glibc"),
    [
        ([], "2.0"),
        (["x-1-py3-none-any.whl", "x-1-cp312-cp312-linux_x86_64.whl"], "2.0"),
        (["x-1-cp312-cp312-manylinux2014_x86_64.whl"], "2.17"),
        (["x-1-cp312-cp312-manylinux_2_17_x86_64.manylinux_2_28_x86_64.whl"], "2.17"),
        (["x-1-cp38-abi3-manylinux_2_31_x86_64.whl", "y-1-cp38-abi3-manylinux1_x86_64.whl"], "2.31"),
        (["nonsense", "x-1-cp38-abi3-manylinux_2_35_x86_64.whl"], "2.0"),
    ],
)  # fmt: skip
def test_the_glibc_that_tags_ask_for(names: list[str], glibc: str) -> None:
    assert glibc_of(names, TARGET) == glibc
