import pytest

from bundler.deploy.needs import check_glibc
from bundler.domain.needs import HostNeeds
from bundler.errors import HostError

NEEDS = HostNeeds(glibc="2.31", because={"glibc": "vllm.whl: vllm/_C.abi3.so"})


@pytest.mark.parametrize("glibc", ["2.31", "2.39", "3.0", ""])
def test_a_glibc_that_will_do(glibc: str) -> None:
    check_glibc(NEEDS, glibc)


@pytest.mark.parametrize("glibc", ["2.17", "2.9", "2.30"])
def test_a_glibc_that_is_too_old(glibc: str) -> None:
    with pytest.raises(HostError, match=rf"glibc {glibc}, vllm.whl: vllm/_C.abi3.so needs 2.31"):
        check_glibc(NEEDS, glibc)


def test_this_very_host_is_asked_when_nothing_is_given() -> None:
    check_glibc(HostNeeds())
    check_glibc(HostNeeds(glibc="2.17"))
    with pytest.raises(HostError):
        check_glibc(HostNeeds(glibc="9.99"))
