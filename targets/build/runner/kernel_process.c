/* A process of its own that calls a kernel when it is asked to. Two kernels that are timed in turns do not share the
 * state of one allocator: what one of them allocates and frees decides whether the other one's memory comes from pages
 * that are there, which makes up to a half of a kernel's time. */
#include <string.h>

#include "runner.h"

#ifdef __linux__
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* All of it, or nothing at the end of what the other process writes. */
static bool read_all(int file, void *data, size_t count) {
    for (size_t done = 0; done < count;) {
        const ssize_t part = read(file, (char *)data + done, count - done);
        if (part < 0 && errno == EINTR) continue;
        if (part <= 0) return false;
        done += (size_t)part;
    }
    return true;
}

static bool write_all(int file, const void *data, size_t count) {
    for (size_t done = 0; done < count;) {
        const ssize_t part = write(file, (const char *)data + done, count - done);
        if (part < 0 && errno == EINTR) continue;
        if (part <= 0) return false;
        done += (size_t)part;
    }
    return true;
}

static _Noreturn void serve(struct invocation *invocation, int requests, int results) {
    struct calls_request request;
    while (read_all(requests, &request, sizeof request)) {
        const struct calls_result result = time_calls(invocation, request);
        if (!write_all(results, &result, sizeof result)) break;
    }
    check_guards(invocation);
    _exit(EXIT_DONE);
}

bool start_process(struct kernel_process *process, struct invocation *invocation) {
    /* A driver of a card does not survive a fork of what it serves, and cards have allocators of their own. */
    static const char *const cards[] = {"cuda", "opencl", "metal", "vulkan", "d3d12", "webgpu"};
    for (size_t i = 0; i < sizeof cards / sizeof cards[0]; i++) {
        if (strstr(invocation->meta->target, cards[i])) return false;
    }
    int requests[2], results[2];
    if (pipe(requests) != 0 || pipe(results) != 0) fail(EXIT_RESOURCES, "io", "No pipe could be made.");
    signal(SIGPIPE, SIG_IGN);
    flush_events();
    const pid_t parent = getpid(), pid = fork();
    if (pid < 0) fail(EXIT_RESOURCES, "memory", "No process could be made for the kernel '%s'.", invocation->kernel->name);
    close(requests[pid == 0 ? 1 : 0]);
    close(results[pid == 0 ? 0 : 1]);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(EXIT_DONE);
        serve(invocation, requests[0], results[1]);
    }
    *process = (struct kernel_process){.pid = pid, .requests = requests[1], .results = results[0]};
    return true;
}

void end_process(const struct kernel_process *process) {
    close(process->requests);
    int status;
    while (waitpid(process->pid, &status, 0) < 0) {
        if (errno != EINTR) fail(EXIT_RESOURCES, "io", "The process of the other kernel is lost.");
    }
    if (WIFSIGNALED(status)) {
        /* As if it had been called here. */
        signal(WTERMSIG(status), SIG_DFL);
        raise(WTERMSIG(status));
    }
    /* It has reported its error itself. */
    if (WIFEXITED(status) && WEXITSTATUS(status) != EXIT_DONE) end_program(WEXITSTATUS(status));
}

struct calls_result ask_process(const struct kernel_process *process, struct calls_request request) {
    struct calls_result result;
    if (write_all(process->requests, &request, sizeof request) && read_all(process->results, &result, sizeof result)) {
        return result;
    }
    end_process(process);
    fail(EXIT_RESOURCES, "io", "The process of the other kernel has ended.");
}
#else
bool start_process(struct kernel_process *process, struct invocation *invocation) {
    (void)process, (void)invocation;
    return false;
}

void end_process(const struct kernel_process *process) { (void)process; }

struct calls_result ask_process(const struct kernel_process *process, struct calls_request request) {
    (void)process, (void)request;
    fail(EXIT_RESOURCES, "io", "There is no other process.");
}
#endif
