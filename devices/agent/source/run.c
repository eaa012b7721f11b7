/* A run: one program, watched until it ends. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent.h"

/* A runner tells the times of thousands of repetitions in one line. */
enum { TAIL_BYTES = 256 * 1024, PIECE_BYTES = 3 * 1024 };

static const double LONGEST_RUN_S = 30 * 24 * 3600.0, KILL_PATIENCE_S = 5.0;

struct run {
    struct child child;
    struct slot slot;
    double started_at_s, ended_at_s, deadline_s, renew_at_s;
    bool ended;
    int status;
    bool timed_out;
    bool unheard;
    bool interrupted;
    bool lease_lost;
    struct lease lease;
    size_t output_bytes;
    char output[2 * TAIL_BYTES]; /* the end of it, at least TAIL_BYTES */
};

static volatile sig_atomic_t told_to_end;

static void on_signal(int number) {
    if (number != SIGCHLD) told_to_end = 1;
}

static const int ENDING_SIGNALS[] = {SIGHUP, SIGINT, SIGTERM};
enum { ENDING_SIGNAL_COUNT = sizeof ENDING_SIGNALS / sizeof *ENDING_SIGNALS };

/* Signals arrive only while the run waits, so none is missed between a check and the wait. */
static void hold_signals(void) {
    struct sigaction action = {.sa_handler = on_signal};
    sigset_t held;
    sigemptyset(&held);
    sigaddset(&held, SIGCHLD);
    sigaction(SIGCHLD, &action, NULL);
    for (int i = 0; i < ENDING_SIGNAL_COUNT; i++) {
        sigaddset(&held, ENDING_SIGNALS[i]);
        sigaction(ENDING_SIGNALS[i], &action, NULL);
    }
    sigprocmask(SIG_BLOCK, &held, NULL);
}

/* The program is gone and nothing needs cleaning up: signals may end the agent at once. */
static void let_signals_through(void) {
    sigset_t none;
    for (int i = 0; i < ENDING_SIGNAL_COUNT; i++) {
        signal(ENDING_SIGNALS[i], SIG_DFL);
    }
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static void drain(struct run *run) {
    for (int i = 0; i < 16; i++) { /* not for ever: the clocks must be checked */
        if (run->output_bytes == sizeof run->output) {
            memcpy(run->output, run->output + TAIL_BYTES, TAIL_BYTES);
            run->output_bytes = TAIL_BYTES;
        }
        const ssize_t got =
            read(run->child.output, run->output + run->output_bytes, sizeof run->output - run->output_bytes);
        if (got <= 0) return;
        run->output_bytes += (size_t)got;
    }
}

static void reap(struct run *run) {
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        if (pid != run->child.pid) continue;
        run->ended = true;
        run->status = status;
        run->ended_at_s = monotonic_s();
    }
}

static void wait_for_something(struct run *run, bool *output_open) {
    const double now_s = monotonic_s();
    double wait_s = 1.0;
    if (run->deadline_s - now_s < wait_s) wait_s = run->deadline_s - now_s;
    if (wait_s < 0) wait_s = 0;
    const struct timespec timeout = {(time_t)wait_s, (long)((wait_s - (double)(time_t)wait_s) * 1e9)};
    struct pollfd watched[2] = {{STDOUT_FILENO, 0, 0}, {*output_open ? run->child.output : -1, POLLIN, 0}};
    sigset_t none;
    sigemptyset(&none);
    if (ppoll(watched, 2, &timeout, &none) <= 0) return;
    if (watched[0].revents) run->unheard = true;
    if (watched[1].revents & POLLIN) {
        drain(run);
    } else if (watched[1].revents) {
        *output_open = false; /* everybody has closed it, and the program goes on */
    }
}

static void renew(struct run *run) {
    if (boot_time_s() < run->renew_at_s) return;
    run->renew_at_s = boot_time_s() + run->slot.ttl_s / 3;
    if (!hold_lease(&run->slot, false, &run->lease)) run->lease_lost = true;
}

/* Waits until the program has ended or must end. */
static void watch(struct run *run) {
    bool output_open = true;
    while (!run->ended) {
        wait_for_something(run, &output_open);
        reap(run);
        if (run->ended) break;
        run->timed_out = monotonic_s() >= run->deadline_s;
        run->interrupted = told_to_end;
        report_alive();
        run->unheard = run->unheard || listener_is_gone();
        if (run->timed_out || run->interrupted || run->unheard) break;
        renew(run);
        if (run->lease_lost) break;
    }
}

/* Kills all descendants of this process; keeps what they have printed. */
static void clean_up(struct run *run) {
    const double until_s = monotonic_s() + KILL_PATIENCE_S;
    if (!run->ended) kill(-run->child.pid, SIGKILL); /* most of them at once */
    for (;;) {
        const bool none_left = kill_children();
        reap(run);
        if ((none_left && run->ended) || monotonic_s() > until_s) break;
        drain(run);
        nap_ms(2);
    }
    drain(run);
    if (!run->ended) run->ended_at_s = monotonic_s(); /* stuck in the kernel: nothing can end it */
}

/* No child outlives this process, whatever ends it. */
static void end_children(void) {
    const double until_s = monotonic_s() + KILL_PATIENCE_S;
    while (!kill_children() && monotonic_s() < until_s) {
        nap_ms(2);
    }
}

static void send_output(const struct run *run) {
    const size_t end = run->output_bytes;
    for (size_t at = end > TAIL_BYTES ? end - TAIL_BYTES : 0; at < end; at += PIECE_BYTES) {
        event_begin("output");
        event_base64("data", run->output + at, end - at < PIECE_BYTES ? end - at : PIECE_BYTES);
        event_end();
    }
}

static void send_result(const struct run *run, const double *canary_s) {
    char boot[BOOT_BYTES];
    boot_identity(boot);
    const bool signalled = run->ended && WIFSIGNALED(run->status);
    event_begin("result");
    event_integer("exit_code", run->ended && WIFEXITED(run->status) ? WEXITSTATUS(run->status) : 0);
    event_integer("signal", signalled ? WTERMSIG(run->status) : run->ended ? 0 : SIGKILL);
    event_boolean("timed_out", run->timed_out);
    event_number("duration_s", run->ended_at_s - run->started_at_s);
    event_number("canary_before_s", canary_s[0]);
    event_number("canary_after_s", canary_s[1]);
    event_string("boot", boot);
    event_end();
}

/* Moves the agent off the program's cores if it can. */
static void step_aside(const cpu_set_t *all, const cpu_set_t *cores) {
    cpu_set_t others;
    CPU_XOR(&others, all, cores);
    use_cores(CPU_COUNT(cores) > 0 && CPU_COUNT(&others) > 0 ? &others : all);
}

/* run (session, program, arg*, env*, time_s, memory_bytes, cores, canary, lease fields): renews the lease, ends an
 * earlier run of the slot, and runs a program of the session's folder in a session of its own. The program is killed,
 * with all its descendants, at its deadline, when this process must end, and when nobody listens any more. */
void command_run(const struct request *request) {
    static struct run run;
    cpu_set_t all, cores;
    char mark[MARK_BYTES];
    double canary_s[2] = {1.0 / 0.0, 1.0 / 0.0}; /* written as null */
    const double time_s = need_number(request, "time_s", 0, LONGEST_RUN_S);
    const bool canary = need_flag(request, "canary");
    usable_cores(&all);
    need_cores(request, "cores", &cores);
    const int session = open_session(request);
    futimens(session, NULL); /* in use: not stale */
    run.slot = need_lease(request, &run.lease);
    hold_signals();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    atexit(end_children);
    take_slot(&run.slot);
    run_mark(&run.slot, mark);
    if (canary) canary_s[0] = time_canary(&cores);
    if (CPU_COUNT(&cores) > 0 && !use_cores(&cores)) fail_io("The cores cannot be used");
    run.started_at_s = monotonic_s();
    run.child = start_child(request, session, mark);
    run.deadline_s = run.started_at_s + time_s;
    run.renew_at_s = boot_time_s() + run.slot.ttl_s / 3;
    step_aside(&all, &cores);
    watch(&run);
    clean_up(&run);
    let_signals_through();
    if (run.unheard) exit(EXIT_UNHEARD);
    if (run.interrupted) fail("lease", "Another use of the slot has ended the run.");
    if (run.lease_lost) fail_leased(&run.lease, run.slot.number);
    if (canary && !run.timed_out) canary_s[1] = time_canary(&cores);
    send_output(&run);
    send_result(&run, canary_s);
}
