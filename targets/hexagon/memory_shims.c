/* Tightly coupled memory for Halide's runtime for a standalone Hexagon (noos), under Linux and Qualcomm's simulator, which
 * have none. A device's DSP has its own. */
#include <stdint.h>
#include <stdlib.h>

enum { VECTOR_BYTES = 128 };

void *HAP_request_VTCM(unsigned int bytes, unsigned int single_page);
int HAP_release_VTCM(void *memory);

/* Ordinary memory, aligned by hand: according to Halide's program for Qualcomm's simulator, memalign is unreliable
 * there. */
void *HAP_request_VTCM(unsigned int bytes, unsigned int single_page) {
    (void)single_page;
    char *block = malloc((size_t)bytes + VECTOR_BYTES + sizeof block);
    if (!block) return NULL;
    const uintptr_t first = (uintptr_t)block + sizeof block;
    void **memory = (void **)((first + VECTOR_BYTES - 1) / VECTOR_BYTES * VECTOR_BYTES);
    memory[-1] = block;
    return memory;
}

int HAP_release_VTCM(void *memory) {
    if (memory) free(((void **)memory)[-1]);
    return 0;
}
