/* What a person is told who calls the program by hand; programs read events. */
#include <stdio.h>

#include "runner.h"

void print_help(void) {
    printf("Calls kernels that Halide compiled, on data of their own or of files, and times them.\n\n"
           "  --benchmarks=all         time the kernel, and say what a call takes\n"
           "  --list, --describe       the kernels with their arguments\n"
           "  --kernel NAME            run this one; with --time, time it\n"
           "  --size NAME=1920x1080    the size of an input or output, in place of the estimate\n"
           "  --scalar NAME=VALUE      a number\n"
           "  --input NAME=FILE        a file of the runner's, in place of random data\n"
           "  --threads N              of Halide's thread pool\n"
           "  --max-time-s T           time for so long at most, 10 by default\n"
           "  --precision SHARE        until the median is known so well, 0.01 by default\n\n"
           "Results are lines of JSON, for programs. Kernels:");
    for (int i = 0; i < runner_kernel_count; i++) {
        printf(" %s", runner_kernels[i].name);
    }
    printf("\n");
}

void print_time(const char *kernel, double median_s, double fastest_s, int count) {
    printf("%s: %.4g ms a call (median of %d), %.4g ms at best\n", kernel, 1e3 * median_s, count, 1e3 * fastest_s);
}
