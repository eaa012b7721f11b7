/* Reports which NVIDIA cards a machine has, and whether others use them: JSON, one object a line, on stdout.
 *
 *     driver   version (as NVIDIA counts: 12040 is 12.4)
 *     card     name, major, minor (compute capability), the limits of a block and a multiprocessor, memory_bytes,
 *              processes and busy_percent (null without NVML)
 *     none     reason: there is no driver, it does not start, or it has no card
 *     done
 *
 * The driver is loaded where there is one: neither NVIDIA's headers nor its libraries are needed to build this. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* CUdevice_attribute of cuda.h, and our names. */
static const struct {
    int attribute;
    const char *name;
} attributes[] = {
    {75, "major"},
    {76, "minor"},
    {16, "multiprocessors"},
    {8, "shared_memory_per_block_bytes"},
    {81, "shared_memory_per_multiprocessor_bytes"},
    {1, "threads_per_block"},
    {39, "threads_per_multiprocessor"},
    {106, "blocks_per_multiprocessor"},
    {12, "registers_per_block"},
};

enum { PCI_ID_BYTES = 32, NAME_BYTES = 128, NVML_INSUFFICIENT_SIZE = 7 };

struct driver {
    int (*init)(unsigned flags);
    int (*version)(int *version);
    int (*count)(int *count);
    int (*device)(int *device, int ordinal);
    int (*name)(char *name, int bytes, int device);
    int (*attribute)(int *value, int attribute, int device);
    int (*memory)(size_t *bytes, int device);
    int (*pci_id)(char *id, int bytes, int device);
};

struct utilization {
    unsigned gpu_percent, memory_percent;
};

struct nvml {
    int (*init)(void);
    int (*device)(const char *pci_id, void **device);
    int (*utilization)(void *device, struct utilization *utilization);
    int (*processes)(void *device, unsigned *count, void *infos);
};

static void none(const char *reason) {
    printf("{\"event\":\"none\",\"reason\":\"%s\"}\n{\"event\":\"done\"}\n", reason);
    exit(0);
}

/* Copies the pointer: ISO C has no cast from an object to a function, but POSIX allows it. */
static bool find(void *library, const char *name, void *function) {
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

/* Under the name that Halide's runtime looks for. */
static bool load_driver(struct driver *driver) {
    void *library = dlopen("libcuda.so", RTLD_NOW);
    if (!library && dlopen("libcuda.so.1", RTLD_NOW)) {
        none("its CUDA driver exists as libcuda.so.1 only, and Halide's runtime loads libcuda.so: make a link");
    }
    return library && find(library, "cuInit", &driver->init) &&
           find(library, "cuDriverGetVersion", &driver->version) &&
           find(library, "cuDeviceGetCount", &driver->count) && find(library, "cuDeviceGet", &driver->device) &&
           find(library, "cuDeviceGetName", &driver->name) &&
           find(library, "cuDeviceGetAttribute", &driver->attribute) &&
           find(library, "cuDeviceTotalMem_v2", &driver->memory) &&
           find(library, "cuDeviceGetPCIBusId", &driver->pci_id);
}

static bool load_nvml(struct nvml *nvml) {
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    return library && find(library, "nvmlInit_v2", &nvml->init) &&
           find(library, "nvmlDeviceGetHandleByPciBusId_v2", &nvml->device) &&
           find(library, "nvmlDeviceGetUtilizationRates", &nvml->utilization) &&
           find(library, "nvmlDeviceGetComputeRunningProcesses_v3", &nvml->processes) && nvml->init() == 0;
}

static void print_text(const char *key, const char *text) {
    printf(",\"%s\":\"", key);
    for (; *text; text++) {
        putchar(*text < ' ' || *text > '~' || *text == '"' || *text == '\\' ? '?' : *text);
    }
    putchar('"');
}

static void print_count(const char *key, bool known, unsigned count) {
    if (known) printf(",\"%s\":%u", key, count);
    else printf(",\"%s\":null", key);
}

/* The use of the card by other processes; this one has no context on it. */
static void print_use(const struct nvml *nvml, const char *pci_id) {
    void *device;
    struct utilization utilization;
    unsigned processes = 0;
    const bool known = nvml && nvml->device(pci_id, &device) == 0;
    const int code = known ? nvml->processes(device, &processes, NULL) : -1;
    print_count("processes", code == 0 || code == NVML_INSUFFICIENT_SIZE, processes);
    const bool measured = known && nvml->utilization(device, &utilization) == 0;
    print_count("busy_percent", measured, measured ? utilization.gpu_percent : 0);
}

static void print_card(const struct driver *driver, const struct nvml *nvml, int ordinal) {
    int device;
    char name[NAME_BYTES] = "", pci_id[PCI_ID_BYTES] = "";
    size_t memory_bytes = 0;
    if (driver->device(&device, ordinal) != 0 || driver->name(name, sizeof name - 1, device) != 0) return;
    printf("{\"event\":\"card\"");
    print_text("name", name);
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
        int value = 0;
        driver->attribute(&value, attributes[i].attribute, device);
        printf(",\"%s\":%d", attributes[i].name, value);
    }
    driver->memory(&memory_bytes, device);
    printf(",\"memory_bytes\":%zu", memory_bytes);
    const bool has_id = driver->pci_id(pci_id, sizeof pci_id - 1, device) == 0;
    print_use(has_id ? nvml : NULL, pci_id);
    printf("}\n");
}

int main(void) {
    struct driver driver;
    struct nvml nvml;
    int version = 0, count = 0;
    if (!load_driver(&driver)) none("there is no CUDA driver (libcuda.so)");
    if (driver.init(0) != 0 || driver.count(&count) != 0) none("its CUDA driver finds no card that it can use");
    if (count < 1) none("its CUDA driver has no card");
    driver.version(&version);
    printf("{\"event\":\"driver\",\"version\":%d}\n", version);
    const bool has_nvml = load_nvml(&nvml);
    for (int i = 0; i < count; i++) {
        print_card(&driver, has_nvml ? &nvml : NULL, i);
    }
    printf("{\"event\":\"done\"}\n");
    return 0;
}
