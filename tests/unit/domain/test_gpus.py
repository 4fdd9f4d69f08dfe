"""The table of GPUs: names as nvidia-smi and people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundler.domain.gpus import GPUS, gpu


@pytest.mark.parametrize("entry", GPUS, ids=lambda entry: entry.name)
def test_every_product_is_found_by_the_name_that_nvidia_smi_prints(entry) -> None:
    assert gpu(entry.name) == entry
    assert gpu(f"  {entry.name.lower()} ") == entry


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("H200", "NVIDIA H200"),
        ("NVIDIA H200 141GB HBM3e", "NVIDIA H200"),
        ("H100", "NVIDIA H100 80GB HBM3"),
        ("H100 80 GB", "NVIDIA H100 80GB HBM3"),
        ("H100-SXM5-80GB", "NVIDIA H100 80GB HBM3"),
        ("H100 NVL 94GB", "NVIDIA H100 NVL"),
        ("A100 40GB PCIe", "NVIDIA A100-PCIE-40GB"),
        ("A100 80GB", "NVIDIA A100-SXM4-80GB"),
        ("A100-SXM4-80GB", "NVIDIA A100-SXM4-80GB"),
        ("RTX 3090", "NVIDIA GeForce RTX 3090"),
        ("3090 Ti", "NVIDIA GeForce RTX 3090 Ti"),
        ("GeForce RTX 3090 Ti 24 GB", "NVIDIA GeForce RTX 3090 Ti"),
        ("rtx 2080 super", "NVIDIA GeForce RTX 2080 SUPER"),
        ("RTX PRO 6000 Blackwell", "NVIDIA RTX PRO 6000 Blackwell Server Edition"),
        ("NVIDIA RTX PRO 6000 Blac...", "NVIDIA RTX PRO 6000 Blackwell Server Edition"),
        ("NVIDIA RTX 6000 Ada Gene...", "NVIDIA RTX 6000 Ada Generation"),
    ],
)
def test_a_name_that_means_one_product_is_found(written: str, name: str) -> None:
    found = gpu(written)
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize(
    "written",
    [
        "", "NVIDIA", "A100", "A100 SXM", "RTX 6000", "NVIDIA GeForce ...", "H100 94GB",
        "RTX 3090 48GB", "H1000", "Radeon RX 7900 XTX", "GH200 144G HBM3e", "x" * 10_000, "...",
    ],
)  # fmt: skip
def test_a_name_that_may_mean_another_product_is_not_guessed(written: str) -> None:
    assert gpu(written) is None


def test_the_link_is_left_open_where_the_name_leaves_it_open() -> None:
    assert gpu("H100").link == ""
    assert gpu("H100 SXM").link == "nvlink"
    assert gpu("L40S").link == "pcie"


def test_memory_is_what_nvidia_smi_reports() -> None:
    by_name = {entry.name: entry for entry in GPUS}
    assert by_name["NVIDIA H200"].memory_bytes == 143771 * 2**20
    assert by_name["NVIDIA H100 80GB HBM3"].memory_bytes == 81559 * 2**20
    assert by_name["NVIDIA GeForce RTX 2080 SUPER"].compute_capability == "7.5"


@given(st.text(max_size=60))
def test_any_text_gives_a_product_or_none(text: str) -> None:
    found = gpu(text)
    assert found is None or found.name in {entry.name for entry in GPUS}
