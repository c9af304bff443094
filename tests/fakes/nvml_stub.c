/* STUB of libnvidia-ml.so.1, for machines without a GPU, under the real nvidia-ml-py: the functions that FlagPerf's
 * monitor calls, with the signatures of NVIDIA's nvml.h. Device i draws 300 + i W since the library was loaded, and its
 * counters count accordingly.
 *
 * STUB_NVML_DEVICES says how many devices there are (2). stub_answer() makes a function, or a field `field 185`, answer
 * with an error. Compiled with -DOLD_DRIVER it lacks what drivers before R530 lack.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, INSUFFICIENT_SIZE = 7 };
enum { MOST_ANSWERS = 64, GIB = 1 << 30 };

typedef int nvmlReturn_t;
typedef struct device *nvmlDevice_t;
typedef struct { unsigned fieldId, scopeId; int64_t timestamp, latencyUsec; int valueType; nvmlReturn_t nvmlReturn;
                 union { double dVal; unsigned uiVal; unsigned long long ullVal; } value; } nvmlFieldValue_t;
typedef struct { unsigned long long total, free, used; } nvmlMemory_t;
typedef struct { unsigned gpu, memory; } nvmlUtilization_t;
typedef struct { unsigned pid; unsigned long long usedGpuMemory; unsigned gpuInstanceId, computeInstanceId; } nvmlProcessInfo_t;
typedef struct { char busIdLegacy[16]; unsigned domain, bus, device, pciDeviceId, pciSubSystemId; char busId[32]; } nvmlPciInfo_t;

static struct { char function[64]; unsigned device; nvmlReturn_t status; } answers[MOST_ANSWERS];
static unsigned answer_count;
static struct timespec loaded;

__attribute__((constructor)) static void start(void) { clock_gettime(CLOCK_MONOTONIC, &loaded); }

void stub_answer(const char *function, unsigned device, nvmlReturn_t status)
{
    snprintf(answers[answer_count].function, sizeof answers[0].function, "%s", function);
    answers[answer_count].device = device;
    answers[answer_count++].status = status;
}

void stub_reset(void) { answer_count = 0; }

static nvmlReturn_t status_of(const char *function, unsigned device)
{
    for (unsigned i = 0; i < answer_count; i++)
        if (answers[i].device == device && !strcmp(answers[i].function, function))
            return answers[i].status;
    return SUCCESS;
}

static unsigned number(nvmlDevice_t device) { return (unsigned)(uintptr_t)device - 1; }
static unsigned watts(nvmlDevice_t device) { return 300 + number(device); }

static unsigned long long elapsed_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec - loaded.tv_sec) * 1000ULL + (now.tv_nsec - loaded.tv_nsec) / 1000000;
}

#define CHECK(device) do { nvmlReturn_t s = status_of(__func__, number(device)); if (s) return s; } while (0)
#define NUMBER(name, answer) \
    nvmlReturn_t name(nvmlDevice_t device, unsigned *value) { CHECK(device); *value = (answer); return SUCCESS; }
#define KIND(name, answer) \
    nvmlReturn_t name(nvmlDevice_t device, int kind, unsigned *value) { CHECK(device); *value = (answer); return SUCCESS; }
#define TEXT(name, text) \
    nvmlReturn_t name(nvmlDevice_t device, char *buffer, unsigned size) \
    { CHECK(device); snprintf(buffer, size, "%s", text); return SUCCESS; }
#define MODES(name, now) \
    nvmlReturn_t name(nvmlDevice_t device, int *current, int *pending) \
    { CHECK(device); *current = (now); *pending = 0; return SUCCESS; }

nvmlReturn_t nvmlInitWithFlags(unsigned flags) { (void)flags; return status_of(__func__, 0); }
nvmlReturn_t nvmlShutdown(void) { return SUCCESS; }
nvmlReturn_t nvmlSystemGetDriverVersion(char *text, unsigned size) { snprintf(text, size, "570.86.15"); return SUCCESS; }
nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version) { *version = 12080; return SUCCESS; }

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count)
{
    const char *wanted = getenv("STUB_NVML_DEVICES");
    *count = wanted ? (unsigned)atoi(wanted) : 2;
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device)
{
    *device = (nvmlDevice_t)(uintptr_t)(index + 1);
    return status_of(__func__, index);
}

NUMBER(nvmlDeviceGetPowerUsage, watts(device) * 1000 + 400)
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, 4)
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, 16)
NUMBER(nvmlDeviceGetEnforcedPowerLimit, 400000)
KIND(nvmlDeviceGetTemperature, 33 + kind)
KIND(nvmlDeviceGetClockInfo, kind == 1 ? 1395 : 1215)
KIND(nvmlDeviceGetMaxClockInfo, kind == 1 ? 1410 : 1215)
TEXT(nvmlDeviceGetName, "NVIDIA A100-SXM4-40GB")
TEXT(nvmlDeviceGetVbiosVersion, "92.00.45.00.03")
TEXT(nvmlDeviceGetInforomImageVersion, "G506.0200.00.04")
MODES(nvmlDeviceGetEccMode, 1)
MODES(nvmlDeviceGetMigMode, 0)

nvmlReturn_t nvmlDeviceGetGspFirmwareVersion(nvmlDevice_t device, char *text) { CHECK(device); strcpy(text, "570.86.15"); return SUCCESS; }

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *info)
{
    CHECK(device);
    snprintf(info->busId, sizeof info->busId, "00000000:%02X:00.0", number(device) + 7);
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long *mj)
{
    CHECK(device);
    *mj = 1000000 + elapsed_ms() * watts(device);
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    CHECK(device);
    memory->total = 40ULL * GIB;
    memory->used = GIB;
    memory->free = memory->total - memory->used;
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *rates)
{
    CHECK(device);
    rates->gpu = 98;
    rates->memory = 40;
    return SUCCESS;
}

/* KiB/s, counted over 20 ms */
nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device, int way, unsigned *rate)
{
    CHECK(device);
    usleep(20000);
    *rate = way ? 2048 : 1024;
    return SUCCESS;
}

static nvmlReturn_t reasons(nvmlDevice_t device, unsigned long long *bits) { *bits = number(device) ? 0x1 : 0x4 | 0x20; return SUCCESS; }

nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device, unsigned long long *bits)
{
    CHECK(device);
    return reasons(device, bits);
}

#ifndef OLD_DRIVER
nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device, unsigned long long *bits)
{
    CHECK(device);
    return reasons(device, bits);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count, nvmlProcessInfo_t *processes)
{
    CHECK(device);
    unsigned space = *count;
    *count = 2 - number(device) % 2;
    for (unsigned i = 0; processes && i < *count && i < space; i++)
        processes[i] = (nvmlProcessInfo_t){1000 + i, GIB, 0, 0};
    return space < *count ? INSUFFICIENT_SIZE : SUCCESS;
}

static nvmlReturn_t field(nvmlDevice_t device, nvmlFieldValue_t *field)
{
    char name[32];
    snprintf(name, sizeof name, "field %u", field->fieldId);
    nvmlReturn_t status = status_of(name, number(device));
    if (status)
        return status;
    unsigned long long *value = &field->value.ullVal;
    int is_all_links = field->scopeId == 0xFFFFFFFFu;
    field->valueType = 3; /* unsigned long long; and 1 for an unsigned int */
    switch (field->fieldId) {
    case 3: *value = 7; return SUCCESS;   /* corrected ECC errors since the driver was loaded */
    case 4: *value = 0; return SUCCESS;   /* uncorrected ones */
    case 138: *value = elapsed_ms() * 100; return is_all_links ? SUCCESS : INVALID_ARGUMENT; /* NVLink, sent, KiB */
    case 139: *value = elapsed_ms() * 200; return is_all_links ? SUCCESS : INVALID_ARGUMENT; /* received */
    }
    field->valueType = 1;
    *value = ~0ULL; /* what stands beside a narrower value is none of it */
    switch (field->fieldId) {
    case 82: field->value.uiVal = 48; return SUCCESS;      /* temperature of the memory */
    case 142: field->value.uiVal = 2; return SUCCESS;      /* rows remapped for corrected errors */
    case 143: field->value.uiVal = 1; return SUCCESS;      /* and for uncorrected ones */
    case 185: field->value.uiVal = watts(device) * 1000; return SUCCESS;           /* average power, mW */
    case 186: field->value.uiVal = (watts(device) + 50) * 1000; return SUCCESS;    /* instantaneous */
    }
    return NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *fields)
{
    CHECK(device);
    for (int i = 0; i < count; i++)
        fields[i].nvmlReturn = field(device, &fields[i]);
    return SUCCESS;
}
#endif
