/* Reports a machine from made-up files of the kernel: of the folder `before`, and a second later of the folder `after`.
 *
 *     scripted_machine timing | neighbours
 *
 * In its working folder, which has both; `now` is a link to one of them. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runner.h"

static int64_t clock_ns;

static void use(const char *folder) {
    unlink("now");
    if (symlink(folder, "now") != 0) exit(3);
}

int64_t now_ns(void) {
    if (clock_ns >= 500000000) use("after");
    return clock_ns += 100000000;
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    use("before");
    if (strcmp(argv[1], "neighbours") == 0) {
        report_neighbours(1.0);
        return 0;
    }
    const struct machine_counters before = read_counters();
    use("after");
    report_machine(&before, -1);
    return 0;
}
