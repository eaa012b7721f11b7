/* Starting the program of a run. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent.h"

enum { BUSY_TRIES = 50 };

static const double LONGEST_FILE_BYTES = 4.0 * 1024 * 1024 * 1024;

static const char *arguments[MAX_FIELDS + 2];

static void gather_arguments(const struct request *request, const char *program) {
    int count = 0;
    arguments[count++] = program;
    for (int i = 0; i < request->count; i++) {
        if (strcmp(request->fields[i].key, "arg") == 0) arguments[count++] = request->fields[i].value;
    }
    arguments[count] = NULL;
}

/* A later variable replaces an earlier one of the same name. */
static void set_environment(const struct request *request, char *mark) {
    for (int i = 0; i < request->count; i++) {
        const struct field *field = &request->fields[i];
        if (strcmp(field->key, "env") == 0 && strchr(field->value, '=')) putenv((char *)field->value);
    }
    putenv(mark);
}

static void limit(int resource, double wanted) {
    struct rlimit now;
    if (getrlimit(resource, &now) != 0) return;
    const rlim_t bytes = wanted < 9e18 ? (rlim_t)wanted : RLIM_INFINITY;
    if (now.rlim_max == RLIM_INFINITY || bytes < now.rlim_max) now.rlim_max = bytes;
    now.rlim_cur = now.rlim_max;
    setrlimit(resource, &now);
}

/* In the child, up to the exec. Returns only when that fails. */
static void become_program(const char *program, int session, int output, double memory_bytes, pid_t agent) {
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    char path[256];
    sigset_t none;
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != agent) _exit(127); /* it died before prctl */
    for (int number = 1; number < NSIG; number++) {
        signal(number, SIG_DFL);
    }
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0 ||
        dup2(output, STDERR_FILENO) < 0 || fchdir(session) != 0) {
        return;
    }
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_FSIZE, LONGEST_FILE_BYTES);
    limit(RLIMIT_DATA, memory_bytes);
    snprintf(path, sizeof path, "./%s", program);
    for (int tries = 0; tries < BUSY_TRIES; tries++) {
        execv(path, (char *const *)arguments);
        if (errno != ETXTBSY) return;
        nap_ms(20); /* its writer has not closed it yet */
    }
}

static int await_exec(int trouble) {
    int number = 0;
    ssize_t got;
    do {
        got = read(trouble, &number, sizeof number);
    } while (got < 0 && errno == EINTR);
    close(trouble);
    return got == (ssize_t)sizeof number ? number : 0;
}

struct child start_child(const struct request *request, int session, char *mark) {
    const char *program = need_file_name(request, "program");
    const double memory_bytes = need_number(request, "memory_bytes", 1 << 20, 1e18);
    gather_arguments(request, program);
    int output[2], trouble[2];
    if (pipe2(output, O_CLOEXEC) != 0 || pipe2(trouble, O_CLOEXEC) != 0) fail_io("No pipe for the program");
    const pid_t agent = getpid();
    const pid_t pid = fork();
    if (pid < 0) fail_io("No process for the program");
    if (pid == 0) {
        set_environment(request, mark);
        become_program(program, session, output[1], memory_bytes, agent);
        const int number = errno;
        if (write(trouble[1], &number, sizeof number) < 0) _exit(126);
        _exit(127);
    }
    close(output[1]);
    close(trouble[1]);
    const int number = await_exec(trouble[0]);
    if (number != 0) {
        waitpid(pid, NULL, 0);
        fail("exec", "%s cannot be started: %s.", program, strerror(number));
    }
    fcntl(output[0], F_SETFL, O_NONBLOCK);
    return (struct child){pid, output[0]};
}
