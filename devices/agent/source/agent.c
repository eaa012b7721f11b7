/* The agent's main: changes to its own folder and runs the requested command. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent.h"

struct command {
    const char *name;
    void (*carry_out)(const struct request *request);
    bool renews; /* the lease, if the request has a token: an owner that lost it gets an error */
};

static const struct command COMMANDS[] = {
    {"settle", command_settle, false},
    {"open", command_open, false},
    {"accept", command_accept, true},
    {"run", command_run, false},
    {"halt", command_halt, false},
    {"lease-take", command_lease_take, false},
    {"lease-release", command_lease_release, false},
    {"lease-show", command_lease_show, false},
    {"probe", command_probe, true},
    {"sense", command_sense, true},
    {"governor", command_governor, false},
    {"canary", command_canary, true},
    {"hash", command_hash, true},
    {"remove", command_remove, true},
    {"clear", command_clear, false},
    {"reclaim", command_reclaim, true},
};

/* Otherwise a file opened later would become standard output. */
static void open_standard_files(void) {
    for (int file = STDIN_FILENO; file <= STDERR_FILENO; file++) {
        if (fcntl(file, F_GETFD) < 0 && errno == EBADF && open("/dev/null", O_RDWR) != file) exit(EXIT_UNHEARD);
    }
}

static void go_to_own_folder(void) {
    char path[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length > 0) {
        path[length] = 0;
        if (chdir(dirname(path)) == 0) return;
    }
    printf("agent: its own folder cannot be used: %s\n", strerror(errno));
    exit(EXIT_FAILED);
}

int main(int argc, char **argv) {
    open_standard_files();
    signal(SIGPIPE, SIG_IGN);
    setlocale(LC_CTYPE, "C.UTF-8"); /* replies are UTF-8 */
    if (argc != 3) {
        printf("usage: agent COMMAND REQUEST\n");
        return EXIT_USAGE;
    }
    go_to_own_folder();
    const struct request *request = read_request(argv[2]);
    report_alive();
    for (size_t i = 0; i < sizeof COMMANDS / sizeof *COMMANDS; i++) {
        if (strcmp(COMMANDS[i].name, argv[1]) != 0) continue;
        if (COMMANDS[i].renews && find_field(request, "token")) {
            struct lease lease;
            close(need_lease(request, &lease).folder);
        }
        COMMANDS[i].carry_out(request);
        return EXIT_DONE;
    }
    fail("usage", "There is no command %.40s.", argv[1]);
}
