/* Runs a shared object on a phone's DSP as if it were a program of the phone: by Qualcomm's run_main_on_hexagon.
 *
 *     dsp_launcher FILE [ARGUMENT…]
 *
 * FILE, run_main_on_hexagon and librun_main_on_hexagon_skel.so are in the working folder, which becomes the DSP's search
 * path, and FILE's main is our runner's. On the DSP it has no standard output and no working folder, and
 * run_main_on_hexagon does not pass its exit code on. So its events go into a file, and the last one has the code; this
 * program prints the events and exits with the code.
 *
 * Where the DSP does not report how it ended, there is an event `error`, of kind `dsp` (nothing has run) or `crash`, and
 * the exit code is 1. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define DSP_RUNNER "./run_main_on_hexagon"
#define COMPUTE_DSP "3"
#define PROGRAM "dsp_program.so"
#define EVENTS "dsp_events"
/* Qualcomm's example's; it must be at least 256 KiB. */
#define STACK_OPTION "stack_size=0x400000"
/* Where a signature and the DSP's own libraries are, on old and new phones. */
#define DSP_FOLDERS "/vendor/lib/rfsa/dsp/testsig;/vendor/lib/rfsa/adsp;/vendor/dsp/cdsp;/vendor/dsp"
/* libcdsprpc.so, which run_main_on_hexagon is linked with. */
#define PHONE_FOLDERS "/vendor/lib64"

enum { EXIT_FAILED = 1, EXIT_USAGE = 2 };
/* run_main_on_hexagon joins the words behind the domain, with a space behind each, in a buffer of this size; its other
 * half has room for so many of them. */
enum { JOINED_BYTES = 2048, MOST_WORDS = 100 };
/* The agent sends no more of a program's output. */
enum { SHOWN_BYTES = 256 * 1024 };

/* Options of run_main_on_hexagon, which looks for them anywhere. */
static const char *const ITS_OPTIONS[] = {"stack_size", "unsigned_pd", "domain_type", "core_id", "loader_flag"};

static _Noreturn void fail(int exit_code, const char *kind, const char *format, ...) {
    char message[PATH_MAX + 512];
    va_list values;
    va_start(values, format);
    vsnprintf(message, sizeof message, format, values);
    va_end(values);
    printf("\n{\"event\":\"error\",\"kind\":\"%s\",\"message\":\"", kind);
    for (const char *at = message; *at; at++) {
        if (*at == '"' || *at == '\\') putchar('\\');
        putchar((unsigned char)*at < 0x20 ? ' ' : *at);
    }
    printf("\"}\n");
    fflush(stdout);
    exit(exit_code);
}

static void check_word(const char *word) {
    if (!*word || strpbrk(word, " \t\n")) {
        fail(EXIT_USAGE, "usage", "'%.200s' cannot be passed to a DSP: it is empty or has a space.", word);
    }
    for (size_t i = 0; i < sizeof ITS_OPTIONS / sizeof *ITS_OPTIONS; i++) {
        const char *found = strstr(word, ITS_OPTIONS[i]);
        if (found && (found == word || found[strlen(ITS_OPTIONS[i])] == '=')) {
            fail(EXIT_USAGE, "usage", "'%.200s' cannot be passed to a DSP: run_main_on_hexagon has an option %s.", word,
                 ITS_OPTIONS[i]);
        }
    }
}

static void check_length(char **words) {
    size_t bytes = 0;
    for (; *words; words++) {
        bytes += strlen(*words) + 1;
    }
    if (bytes >= JOINED_BYTES) {
        fail(EXIT_USAGE, "usage", "The arguments have %zu bytes; run_main_on_hexagon takes fewer than %d.", bytes,
             JOINED_BYTES);
    }
}

static char *working_folder(void) {
    static char folder[PATH_MAX];
    if (!getcwd(folder, sizeof folder)) fail(EXIT_FAILED, "dsp", "The working folder: %s.", strerror(errno));
    if (strpbrk(folder, " \t\n;:")) {
        fail(EXIT_FAILED, "dsp", "A DSP cannot work in the folder %s: it has a space, a colon or a semicolon.", folder);
    }
    return folder;
}

/* Sets NAME to folder, followed by the user's value, else `usual`. */
static void set_path(const char *name, const char *folder, const char *separator, const char *usual) {
    const char *set = getenv(name);
    const char *rest = set && *set ? set : usual;
    char *path;
    if (asprintf(&path, "%s%s%s", folder, separator, rest) < 0 || setenv(name, path, 1) != 0) {
        fail(EXIT_FAILED, "memory", "There is no memory for %s.", name);
    }
    free(path);
}

/* Returns waitpid's status of run_main_on_hexagon, which does not outlive this process; nor does its work on the DSP. */
static int run_on_dsp(char **words) {
    const pid_t self = getpid();
    fflush(stdout);
    const pid_t pid = fork();
    if (pid < 0) fail(EXIT_FAILED, "dsp", "There is no process for run_main_on_hexagon: %s.", strerror(errno));
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == self) execv(DSP_RUNNER, words);
        printf("run_main_on_hexagon cannot be started: %s\n", strerror(errno));
        fflush(stdout);
        _exit(127);
    }
    int status = 0;
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) fail(EXIT_FAILED, "dsp", "run_main_on_hexagon was lost: %s.", strerror(errno));
    }
    return status;
}

/* The end of the file of events, as a string that begins with a whole line; empty without such a file. */
static const char *read_events(void) {
    static char events[SHOWN_BYTES + 1];
    const int file = open(EVENTS, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat status;
    if (file < 0 || fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) return "";
    const off_t start = status.st_size > SHOWN_BYTES ? status.st_size - SHOWN_BYTES : 0;
    size_t length = 0;
    for (ssize_t got; length < SHOWN_BYTES; length += (size_t)got) {
        got = pread(file, events + length, SHOWN_BYTES - length, start + (off_t)length);
        if (got <= 0) break;
    }
    close(file);
    events[length] = 0;
    const char *line = start > 0 ? strchr(events, '\n') : NULL;
    return line ? line + 1 : events;
}

/* The code of the last event, or -1 if it is not an exit event. */
static int exit_code_of(const char *events) {
    const size_t length = strlen(events);
    const char *last = events + length;
    if (length == 0 || last[-1] != '\n') return -1;
    for (last--; last > events && last[-1] != '\n';) {
        last--;
    }
    int code, bytes = 0;
    sscanf(last, "{\"event\":\"exit\",\"code\":%d}%n", &code, &bytes);
    return bytes > 0 && strcmp(last + bytes, "\n") == 0 && code >= 0 && code <= 255 ? code : -1;
}

/* The DSP did not report how it ended: fail with what run_main_on_hexagon shows. */
static _Noreturn void fail_unended(const char *events, int status) {
    char how[64];
    if (WIFSIGNALED(status)) {
        snprintf(how, sizeof how, "was ended by signal %d", WTERMSIG(status));
    } else {
        snprintf(how, sizeof how, "ended with exit code %d", WEXITSTATUS(status));
    }
    if (!*events) {
        fail(EXIT_FAILED, "dsp",
             "The DSP did not start the program (run_main_on_hexagon %s): `sdk doctor --device` shows whether it can be"
             " used.",
             how);
    }
    fail(EXIT_FAILED, "crash", "The program crashed on the DSP: run_main_on_hexagon %s.", how);
}

int main(int argc, char **argv) {
    static char *words[MOST_WORDS + 2]; /* fewer than these, behind a name and a domain */
    if (argc < 2) fail(EXIT_USAGE, "usage", "usage: dsp_launcher FILE [ARGUMENT...]");
    char *folder = working_folder();
    char *first[] = {"run_main_on_hexagon", COMPUTE_DSP, PROGRAM, STACK_OPTION, "--folder", folder, "--events", EVENTS};
    const int first_count = sizeof first / sizeof *first;
    if (first_count + argc - 2 > MOST_WORDS + 1) fail(EXIT_USAGE, "usage", "There are too many arguments for a DSP.");
    memcpy(words, first, sizeof first);
    for (int i = 2; i < argc; i++) {
        check_word(argv[i]);
        words[first_count + i - 2] = argv[i];
    }
    check_length(words + 2);
    set_path("ADSP_LIBRARY_PATH", folder, ";", DSP_FOLDERS);
    set_path("DSP_LIBRARY_PATH", folder, ";", DSP_FOLDERS);
    set_path("LD_LIBRARY_PATH", folder, ":", PHONE_FOLDERS);
    unlink(EVENTS);
    unlink(PROGRAM);
    /* The usual ending of a DSP's programs; and a short name leaves room for the arguments. */
    if (symlink(argv[1], PROGRAM) != 0) fail(EXIT_FAILED, "dsp", PROGRAM " cannot be made: %s.", strerror(errno));
    const int status = run_on_dsp(words);
    const char *events = read_events();
    printf("\n%s", events);
    const int code = exit_code_of(events);
    unlink(PROGRAM);
    unlink(EVENTS);
    if (code < 0) fail_unended(events, status);
    fflush(stdout);
    return code;
}
