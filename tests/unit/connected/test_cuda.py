import pytest

from bundler.build.cuda import cuda_of_driver, driver_for, gpu_floor, runtime_of


@pytest.mark.parametrize(
    ("packages", "libraries", "runtime", "driver"),
    [
        ({"nvidia-cuda-runtime-cu12": "12.8.90"}, {}, "12.8", "525.60.13"),
        ({"nvidia-cuda-runtime": "13.0.48"}, {"libcudart.so.13": "x"}, "13.0", "580.65.06"),
        ({"nvidia-cuda-runtime": "13.0.1", "nvidia-cuda-runtime-cu12": "12.9.1"},
         {"libcudart.so.12": "x"}, "12.9", "525.60.13"),
        ({}, {"libcudart.so.13": "x"}, "13.0", "580.65.06"),
        ({"nvidia-cuda-runtime-cu11": "11.8.89"}, {}, "11.8", "450.80.02"),
        ({"torch": "2.10.0+cu129"}, {}, "12.9", "525.60.13"),
        ({"torch": "2.10.0+cu130", "nvidia-cuda-runtime-cu12": "12.9.1"}, {"libcudart.so.13": "x"},
         "13.0", "580.65.06"),
        ({"numpy": "2.1"}, {"libgomp.so.1": "x"}, "", ""),
        ({"torch": "2.13.0+cpu", "nvidia-cuda-runtime": "13.0.1"}, {"libcudart.so.13": "x"}, "", ""),
    ],
)  # fmt: skip
def test_runtime_and_driver(
    packages: dict[str, str], libraries: dict[str, str], runtime: str, driver: str
) -> None:
    assert runtime_of(packages, libraries) == runtime
    assert driver_for(runtime) == driver


@pytest.mark.parametrize(
    ("driver", "cuda"),
    [
        ("580.65.06", (13, 0)),
        ("570.124.06", (12, 8)),
        ("535.183.01", (12, 2)),
        ("390.1", None),
        ("610.43.02", None),
    ],
)
def test_what_a_driver_states(driver: str, cuda: tuple[int, int] | None) -> None:
    assert cuda_of_driver(driver) == cuda


@pytest.mark.parametrize(
    ("capability", "driver"), [("8.9", ""), ("9.0", ""), ("10.0", "570"), ("12.0", "570")]
)
def test_the_oldest_driver_that_knows_a_gpu(capability: str, driver: str) -> None:
    assert gpu_floor(capability)[0] == driver
