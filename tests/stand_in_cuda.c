/* A stand-in for NVIDIA's driver and NVML, for machines without a card. It computes nothing: a launch writes zeros into
 * all memory of the "card", so that every kernel of a pipeline gives the same output. What it is called for goes into
 * the file named by STAND_IN_CUDA_LOG, a line a call. It shows the order in which a program copies, launches and waits;
 * it shows nothing about kernels. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_ALLOCATIONS = 4096, UNKNOWN_ERROR = 999 };

static struct {
    char *address;
    size_t bytes;
} memory[MOST_ALLOCATIONS];

static void tell(const char *what, const char *name, size_t bytes) {
    const char *path = getenv("STAND_IN_CUDA_LOG");
    char line[512];
    const int file = path ? open(path, O_WRONLY | O_CREAT | O_APPEND, 0644) : -1;
    if (file < 0) return;
    const int length = snprintf(line, sizeof line, "%s %s %zu\n", what, name, bytes);
    if (write(file, line, (size_t)length) != length) abort();
    close(file);
}

static int number(const char *variable, int usual) {
    const char *text = getenv(variable);
    return text ? atoi(text) : usual;
}

int cuInit(unsigned flags) { return (int)flags; }
int cuDriverGetVersion(int *version) { return *version = 12040, 0; }
int cuDeviceGetCount(int *count) { return *count = number("STAND_IN_CUDA_CARDS", 1), 0; }
int cuDeviceGet(int *device, int ordinal) { return *device = ordinal, 0; }
int cuDeviceGetName(char *name, int bytes, int device) {
    return snprintf(name, (size_t)bytes, "Stand-in %d \"no card\"", device), 0;
}
int cuDeviceTotalMem_v2(size_t *bytes, int device) { return *bytes = (size_t)8 << 30, device - device; }
int cuDeviceGetPCIBusId(char *id, int bytes, int device) {
    return snprintf(id, (size_t)bytes, "0000:0%d:00.0", device), 0;
}
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    switch (attribute) {
    case 75: *value = number("STAND_IN_CUDA_MAJOR", 8); break;
    case 76: *value = 6; break;
    case 16: *value = 20 + device; break;
    case 8: *value = 49152; break;
    case 81: *value = 102400; break;
    case 1: *value = number("STAND_IN_CUDA_THREADS", 1024); break;
    case 39: *value = 1536; break;
    case 106: *value = 16; break;
    case 12: *value = 65536; break;
    default: *value = 0;
    }
    return 0;
}

int cuCtxCreate_v2(void **context, unsigned flags, int device) { return *context = memory, (int)flags * device; }
int cuCtxDestroy_v2(void *context) { return context == NULL; }
int cuProfilerStop(void) { return 0; }
int cuCtxGetApiVersion(void *context, unsigned *version) { return *version = 12040, context == NULL; }
int cuCtxGetDevice(int *device) { return *device = 0, 0; }
int cuCtxPushCurrent_v2(void *context) { return context == NULL; }
int cuCtxPopCurrent_v2(void **context) { return *context = memory, 0; }
int cuCtxSynchronize(void) { return tell("wait", "context", 0), 0; }
int cuStreamSynchronize(void *stream) { return tell("wait", "stream", 0), stream != NULL; }

int cuModuleLoadData(void **module, const void *image) { return tell("load", "module", 0), *module = (void *)image, 0; }
int cuModuleLoadDataEx(void **module, const void *image, unsigned n, int *options, void **values) {
    (void)n, (void)options, (void)values;
    return cuModuleLoadData(module, image);
}
int cuModuleUnload(void *module) { return module == NULL; }
int cuModuleGetFunction(void **function, void *module, const char *name) {
    return *function = strdup(name), module == NULL;
}

int cuMemAlloc_v2(char **address, size_t bytes) {
    for (int i = 0; i < MOST_ALLOCATIONS; i++) {
        if (memory[i].address) continue;
        *address = memory[i].address = malloc(bytes ? bytes : 1);
        memory[i].bytes = bytes;
        return 0;
    }
    return UNKNOWN_ERROR;
}
int cuMemFree_v2(char *address) {
    for (int i = 0; i < MOST_ALLOCATIONS; i++) {
        if (memory[i].address != address) continue;
        free(address);
        memory[i].address = NULL;
        return 0;
    }
    return UNKNOWN_ERROR;
}
int cuMemcpyHtoD_v2(char *to, const void *from, size_t bytes) {
    return tell("to_card", "memory", bytes), memcpy(to, from, bytes), 0;
}
int cuMemcpyDtoH_v2(void *to, const char *from, size_t bytes) {
    return tell("to_host", "memory", bytes), memcpy(to, from, bytes), 0;
}
int cuMemcpyDtoD_v2(char *to, const char *from, size_t bytes) { return memcpy(to, from, bytes), 0; }
int cuMemcpyHtoDAsync_v2(char *to, const void *from, size_t bytes, void *stream) {
    (void)stream;
    return cuMemcpyHtoD_v2(to, from, bytes);
}
int cuMemcpyDtoHAsync_v2(void *to, const char *from, size_t bytes, void *stream) {
    (void)stream;
    return cuMemcpyDtoH_v2(to, from, bytes);
}
int cuMemcpyDtoDAsync_v2(char *to, const char *from, size_t bytes, void *stream) {
    (void)stream;
    return cuMemcpyDtoD_v2(to, from, bytes);
}
int cuMemcpy3D_v2(const void *copy) { return copy ? UNKNOWN_ERROR : 0; }
int cuPointerGetAttribute(void *result, int attribute, char *address) {
    (void)attribute;
    return memcpy(result, &(void *){memory}, sizeof(void *)), address == NULL;
}

int cuLaunchKernel(void *function, unsigned bx, unsigned by, unsigned bz, unsigned tx, unsigned ty, unsigned tz,
                   unsigned shared_bytes, void *stream, void **arguments, void **extra) {
    (void)bx, (void)by, (void)bz, (void)stream, (void)arguments, (void)extra;
    tell("launch", function, shared_bytes);
    if (tx * ty * tz > 1024 || shared_bytes > 49152) return 1;
    for (int i = 0; i < MOST_ALLOCATIONS; i++) {
        if (memory[i].address) memset(memory[i].address, 0, memory[i].bytes);
    }
    return 0;
}

int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetHandleByPciBusId_v2(const char *id, void **device) { return *device = (void *)id, 0; }
int nvmlDeviceGetUtilizationRates(void *device, unsigned *percents) {
    percents[0] = percents[1] = (unsigned)number("STAND_IN_CUDA_BUSY_PERCENT", 0);
    return device == NULL;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, void *infos) {
    *count = (unsigned)number("STAND_IN_CUDA_PROCESSES", 0);
    return device == NULL ? UNKNOWN_ERROR : *count && !infos ? 7 : 0;
}
