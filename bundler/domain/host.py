"""Observed: what a closed host is, before anything is installed on it.

Whatever could not be read is None (or empty) and stands in `unread` with the reason: preflight says
"could not check" then, and never "ok".
"""

from pydantic import Field

from bundler.domain.record import Record


class GpuProcess(Record):
    """A process that holds GPU memory."""

    pid: int
    name: str = Field("", description="Its command; empty when it is another user's or gone.")
    bytes: int | None = Field(None, description="GPU memory; the driver does not always tell.")
    alive: bool = Field(True, description="Whether /proc has it: if not, the memory is stranded.")


class GpuState(Record):
    """One GPU as NVML tells. None: this GPU or driver does not say."""

    index: int
    name: str
    uuid: str = ""
    compute_capability: str = Field("", description="For example `9.0`.")
    memory_bytes: int = 0
    free_bytes: int = 0
    processes: tuple[GpuProcess, ...] = ()
    mig: bool | None = None
    ecc: bool | None = None
    ecc_errors: int | None = Field(None, description="Uncorrected since the driver was loaded.")
    persistence: bool | None = None
    exclusive: bool | None = Field(None, description="Compute mode other than default.")
    power_limit_w: float | None = None
    power_default_w: float | None = None
    power_max_w: float | None = None
    slowed_by: tuple[str, ...] = Field((), description="Reasons why clocks are held down now.")
    pcie_generation: int | None = None
    pcie_max_generation: int | None = None
    pcie_width: int | None = None
    pcie_max_width: int | None = None
    nvlinks: int | None = Field(None, description="Links that are up.")
    peers: tuple[int, ...] | None = Field(None, description="GPUs that it reaches directly.")
    unread: dict[str, str] = Field({}, description="What could not be read -> why.")


class Devices(Record):
    """The GPUs. `fault` says why none could be asked; then nothing else is known."""

    fault: str = ""
    driver: str = ""
    cuda: str = Field("", description="Newest CUDA that the driver supports.")
    gpus: tuple[GpuState, ...] = ()


class Mount(Record):
    """The file system that holds a path."""

    path: str
    mount: str
    file_system: str = ""
    free_bytes: int = 0
    read_only: bool = False
    noexec: bool = False
    network: bool = False


class Host(Record):
    """Everything about the machine but its GPUs."""

    os: str = ""
    arch: str = ""
    kernel: str = ""
    glibc: str = ""
    glibcxx: str = Field("", description="Newest GLIBCXX version of the host's libstdc++.")
    cxxabi: str = ""
    libraries: frozenset[str] | None = Field(None, description="What the loader finds.")
    pythons: dict[str, str] = Field({}, description="Version 3.x -> program.")
    headers: dict[str, str] = Field({}, description="Version 3.x -> folder with Python.h.")
    programs: dict[str, str] = Field({}, description="gcc, g++, nvcc, ninja -> where they are.")
    memory_bytes: int | None = None
    available_bytes: int | None = None
    swap_bytes: int | None = None
    shm_bytes: int | None = Field(None, description="Size of /dev/shm.")
    hugepages: str = Field("", description="Transparent huge pages: always, madvise or never.")
    limits: dict[str, int | None] = Field({}, description="nofile, memlock, nproc; None: no limit.")
    mounts: tuple[Mount, ...] = ()
    ports_taken: dict[int, str] = Field({}, description="TCP port -> who listens, if it shows.")
    selinux: str = ""
    apparmor: str = Field("", description="Profile that confines this process; empty: none.")
    now: str = Field("", description="UTC time by this host's clock.")
    synchronised: bool | None = Field(None, description="Whether a time service keeps the clock.")
    proxies: tuple[str, ...] = Field((), description="Names of proxy variables that are set.")
    container: str = Field(
        "", description="docker, podman, lxc, kubernetes, wsl; empty: none seen."
    )
    cgroup_memory_bytes: int | None = Field(None, description="This process's memory limit.")
    cores: int = 0
    user: str = ""
    unread: dict[str, str] = Field({}, description="What could not be read -> why.")


class Row(Record):
    """One line of the preflight table."""

    name: str
    state: str = Field(pattern="^(ok|warn|fail|unknown)$")
    found: str
    wanted: str = ""
    fix: str = ""
