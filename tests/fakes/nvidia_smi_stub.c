/* STUB of nvidia-smi, above the stub of NVIDIA's library: a line a device, of less than the real one asks for. */
#include <stdio.h>

typedef void *nvmlDevice_t;
int nvmlInitWithFlags(unsigned flags);
int nvmlShutdown(void);
int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device);
int nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned *mw);
int nvmlDeviceGetTemperature(nvmlDevice_t device, int sensor, unsigned *celsius);

int main(void)
{
    unsigned count = 0, mw = 0, celsius = 0;
    nvmlDevice_t device;
    nvmlInitWithFlags(0);
    nvmlDeviceGetCount_v2(&count);
    for (unsigned i = 0; i < count; i++) {
        nvmlDeviceGetHandleByIndex_v2(i, &device);
        nvmlDeviceGetPowerUsage(device, &mw);
        nvmlDeviceGetTemperature(device, 0, &celsius);
        printf("| N/A   %uC    P0    %uW / 400W |   1024MiB / 40960MiB |     98%%      Default |\n", celsius, mw / 1000);
    }
    return nvmlShutdown();
}
