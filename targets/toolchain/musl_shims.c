/* Functions that Halide's runtime calls and musl lacks; linked only into programs for musl. */
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

/* glibc's name, which Halide's Linux runtime calls. */
FILE *fopen64(const char *path, const char *mode) {
    return fopen(path, mode);
}

/* Halide's Android runtime prints to Android's log, which a program without bionic cannot reach. */
int __android_log_print(int priority, const char *tag, const char *format, ...) {
    va_list arguments;
    (void)priority;
    fprintf(stderr, "%s: ", tag);
    va_start(arguments, format);
    const int written = vfprintf(stderr, format, arguments);
    va_end(arguments);
    return written;
}

/* Halide's Android runtime calls sysconf with bionic's number, which has another meaning in musl. Its definition is
 * weak. */
int halide_host_cpu_count(void) {
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
}
