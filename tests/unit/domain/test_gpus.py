import pytest

from bundler.domain.gpus import gpu

GIB = 2**30


@pytest.mark.parametrize(
    ("name", "product", "capability"),
    [
        ("NVIDIA H200", "NVIDIA H200", "9.0"),
        ("h100", "NVIDIA H100 80GB HBM3", "9.0"),
        ("NVIDIA H100 PCIe", "NVIDIA H100 PCIe", "9.0"),
        ("NVIDIA H100 NVL", "NVIDIA H100 NVL", "9.0"),
        ("NVIDIA A100-SXM4-40GB", "NVIDIA A100-SXM4-40GB", "8.0"),
        ("NVIDIA A100 80GB PCIe", "NVIDIA A100-SXM4-80GB", "8.0"),
        ("NVIDIA L40S", "NVIDIA L40S", "8.9"),
        ("NVIDIA L4", "NVIDIA L4", "8.9"),
        ("NVIDIA RTX 6000 Ada Generation", "NVIDIA RTX 6000 Ada Generation", "8.9"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "NVIDIA RTX PRO 6000 Blackwell", "12.0"),
        ("NVIDIA GeForce RTX 3090 Ti", "NVIDIA GeForce RTX 3090 Ti", "8.6"),
        ("RTX3090Ti", "NVIDIA GeForce RTX 3090 Ti", "8.6"),
        ("RTX 3090", "NVIDIA GeForce RTX 3090", "8.6"),
        ("RTX 4090", "NVIDIA GeForce RTX 4090", "8.9"),
        ("RTX 2080 Super", "NVIDIA GeForce RTX 2080 SUPER", "7.5"),
        ("NVIDIA B200", "NVIDIA B200", "10.0"),
    ],
)
def test_names_as_people_and_nvidia_smi_write_them(
    name: str, product: str, capability: str
) -> None:
    found = gpu(name)
    assert found is not None
    assert (found.name, found.compute_capability) == (product, capability)
    assert 7 * GIB < found.memory_bytes < 200 * GIB
    assert found.source


@pytest.mark.parametrize("name", ["", "GPU", "GTX 1080", "NVIDIA GB200", "H1000", "Radeon 7900"])
def test_what_is_not_known_is_not_guessed(name: str) -> None:
    assert gpu(name) is None
