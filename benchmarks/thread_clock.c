/* Preloaded into a native program of one thread: its clock is the processor time that it has used.
 *
 * Numbers too small for a float's normal form are taken for 0. Many x86-64 processors are a hundred times slower with
 * them, and how many there are depends on values, here on what lies in memory beside an image: no emulator's clock
 * can know, and most other processors do not care. */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <xmmintrin.h>

enum { FLUSH_TO_ZERO = 0x8000, DENORMALS_ARE_ZERO = 0x0040 };

__attribute__((constructor)) static void take_tiny_numbers_for_zero(void) {
    _mm_setcsr(_mm_getcsr() | FLUSH_TO_ZERO | DENORMALS_ARE_ZERO);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    (void)clock;
    return (int)syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, now);
}
