/* A libnvidia-ml.so.1 that answers from the environment, for the real pynvml.
 *
 * STUB_COUNT, STUB_NAME, STUB_CC, STUB_TOTAL_MIB, STUB_FREE_MIB, STUB_MIG, STUB_ECC, STUB_ERRORS,
 * STUB_PERSISTENCE, STUB_EXCLUSIVE, STUB_POWER_W, STUB_DEFAULT_W, STUB_BRAKES, STUB_WIDTH, STUB_NVLINKS, STUB_P2P,
 * STUB_PID, STUB_PID_MIB, STUB_DRIVER, STUB_CUDA; a number of -1: not supported here.
 * STUB_DRAW_W, STUB_CLOCK_MHZ; STUB_SEQUENCE=1: each look at the power adds 10 W and takes 5 MHz, and every other
 * one finds the power cap braking. STUB_GONE_AFTER=N: every GPU is lost after N looks at the power.
 * STUB_FAIL=FUNCTION:CODE makes one function fail, STUB_LOST=INDEX one GPU.
 * Signatures: https://docs.nvidia.com/deploy/nvml-api/
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int nvmlReturn_t;
typedef void *nvmlDevice_t;
typedef unsigned long long u64;
enum { OK = 0, NOT_SUPPORTED = 3, NO_PERMISSION = 4, TOO_SMALL = 7, GPU_IS_LOST = 15 };

static const char *text(const char *name, const char *otherwise) {
    const char *found = getenv(name);
    return found ? found : otherwise;
}
static long number(const char *name, long otherwise) {
    const char *found = getenv(name);
    return found ? atol(found) : otherwise;
}
static int failing(const char *function) {
    const char *wanted = getenv("STUB_FAIL");
    size_t n = strlen(function);
    return wanted && !strncmp(wanted, function, n) && wanted[n] == ':' ? atoi(wanted + n + 1) : OK;
}
#define CHECK(name) do { int bad = failing(#name); if (bad) return bad; } while (0)
static int index_of(nvmlDevice_t device) { return (int)(long)device - 1; }
static long looks = 0;
static int gone(void) { long after = number("STUB_GONE_AFTER", -1); return after >= 0 && looks > after; }

nvmlReturn_t nvmlInitWithFlags(unsigned flags) { (void)flags; CHECK(Init); return OK; }
nvmlReturn_t nvmlInit_v2(void) { CHECK(Init); return OK; }
nvmlReturn_t nvmlShutdown(void) { return OK; }
const char *nvmlErrorString(nvmlReturn_t code) {
    return code == GPU_IS_LOST ? "GPU is lost" : code == NO_PERMISSION ? "Insufficient Permissions"
         : code == 9 ? "Driver Not Loaded" : code == 18 ? "Driver/library version mismatch" : "Unknown Error";
}
nvmlReturn_t nvmlSystemGetDriverVersion(char *to, unsigned n) {
    CHECK(Driver);
    snprintf(to, n, "%s", text("STUB_DRIVER", "570.124.06"));
    return OK;
}
nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *to) {
    CHECK(Cuda);
    *to = (int)number("STUB_CUDA", 12080);
    return OK;
}
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *to) {
    CHECK(Count);
    *to = (unsigned)number("STUB_COUNT", 1);
    return OK;
}
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *to) {
    if ((long)index == number("STUB_LOST", -1)) return GPU_IS_LOST;
    *to = (nvmlDevice_t)(long)(index + 1);
    return OK;
}
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t d, char *to, unsigned n) {
    (void)d; CHECK(Name);
    snprintf(to, n, "%s", text("STUB_NAME", "NVIDIA H200"));
    return OK;
}
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t d, char *to, unsigned n) {
    snprintf(to, n, "GPU-%08d", index_of(d));
    return OK;
}
struct memory { u64 total, free, used; };
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t d, struct memory *to) {
    (void)d; CHECK(Memory); if (gone()) return GPU_IS_LOST;
    to->total = (u64)number("STUB_TOTAL_MIB", 143771) << 20;
    to->free = (u64)number("STUB_FREE_MIB", number("STUB_TOTAL_MIB", 143771) - 500) << 20;
    to->used = to->total - to->free;
    return OK;
}
nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t d, int *major, int *minor) {
    (void)d; CHECK(Capability);
    return sscanf(text("STUB_CC", "9.0"), "%d.%d", major, minor) == 2 ? OK : NOT_SUPPORTED;
}
#define ANSWER(value) do { long found = (value); if (found < 0) return NOT_SUPPORTED; *to = (unsigned)found; return OK; } while (0)
nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t d, unsigned *to, unsigned *pending) {
    (void)d; CHECK(Mig); *pending = 0; ANSWER(number("STUB_MIG", 0));
}
nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t d, unsigned *to, unsigned *pending) {
    (void)d; CHECK(Ecc); *pending = 1; ANSWER(number("STUB_ECC", 1));
}
nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t d, int kind, int counter, u64 *to) {
    (void)d; (void)kind; (void)counter; CHECK(Errors); ANSWER(number("STUB_ERRORS", 0));
}
nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t d, unsigned *to) {
    (void)d; CHECK(Persistence); ANSWER(number("STUB_PERSISTENCE", 1));
}
nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t d, unsigned *to) {
    (void)d; CHECK(Mode); ANSWER(number("STUB_EXCLUSIVE", 0) ? 3 : 0);
}
nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t d, unsigned *to) {
    (void)d; CHECK(Power); ANSWER(number("STUB_POWER_W", 700) * 1000);
}
nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t d, unsigned *to) {
    (void)d; CHECK(Draw);
    looks++;
    if (gone()) return GPU_IS_LOST;
    ANSWER((number("STUB_DRAW_W", 100) + (number("STUB_SEQUENCE", 0) ? 10 * looks : 0)) * 1000);
}
nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t d, unsigned *to) {
    (void)d; CHECK(Enforced); if (gone()) return GPU_IS_LOST;
    ANSWER(number("STUB_POWER_W", 700) * 1000);
}
nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t d, int kind, unsigned *to) {
    (void)d; (void)kind; CHECK(Clock); if (gone()) return GPU_IS_LOST;
    ANSWER(number("STUB_CLOCK_MHZ", 1980) - (number("STUB_SEQUENCE", 0) ? 5 * looks : 0));
}
nvmlReturn_t nvmlDeviceGetPowerManagementDefaultLimit(nvmlDevice_t d, unsigned *to) {
    (void)d; ANSWER(number("STUB_DEFAULT_W", 700) * 1000);
}
nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t d, unsigned *low, unsigned *to) {
    (void)d; *low = 200000; ANSWER(number("STUB_DEFAULT_W", 700) * 1000);
}
nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t d, u64 *to) {
    (void)d; CHECK(Clocks); if (gone()) return GPU_IS_LOST;
    if (number("STUB_SEQUENCE", 0)) { *to = looks % 2 ? 0x4 : 0x1; return OK; }
    ANSWER(number("STUB_BRAKES", 0));
}
nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t d, unsigned *to) { (void)d; ANSWER(5); }
nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t d, unsigned *to) { (void)d; ANSWER(5); }
nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t d, unsigned *to) {
    (void)d; CHECK(Pcie); ANSWER(number("STUB_WIDTH", 16));
}
nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t d, unsigned *to) { (void)d; ANSWER(16); }
nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t d, unsigned link, unsigned *to) {
    (void)d;
    long up = number("STUB_NVLINKS", 18);
    if (up < 0) return NOT_SUPPORTED;
    *to = (long)link < up;
    return OK;
}
nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t a, nvmlDevice_t b, int what, int *to) {
    (void)a; (void)b; (void)what; CHECK(P2P);
    *to = number("STUB_P2P", 1) ? 0 : 1;
    return OK;
}
struct process { unsigned pid; u64 memory; unsigned gpu, compute; };
static nvmlReturn_t processes(unsigned *count, struct process *to) {
    long pid = number("STUB_PID", 0);
    if (!pid) { *count = 0; return OK; }
    if (*count < 1) { *count = 1; return TOO_SMALL; }
    *count = 1;
    to[0].pid = (unsigned)pid;
    to[0].memory = (u64)number("STUB_PID_MIB", 1000) << 20;
    to[0].gpu = to[0].compute = 0xFFFFFFFFu;
    return OK;
}
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t d, unsigned *n, struct process *to) {
    (void)d; CHECK(Processes); if (gone()) return GPU_IS_LOST; return processes(n, to);
}
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t d, unsigned *n, struct process *to) {
    (void)d; (void)to; *n = 0; return OK;
}
