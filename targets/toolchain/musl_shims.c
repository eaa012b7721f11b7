/* What Halide's runtime calls and musl lacks; linked beside it into programs for musl, and nowhere else. */
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

/* Halide's Linux runtime calls glibc's name for it. */
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

/* Halide's Android runtime asks sysconf by bionic's number for it, which musl takes for something else. Its own
 * definition is weak. */
int halide_host_cpu_count(void) {
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
}
