/* The device agent: a small static program that the SDK uploads to every device behind SSH or ADB.
 *
 *     agent COMMAND REQUEST
 *
 * REQUEST is the request in base64url without padding, or @NAME for a file with its bytes in the agent's folder
 * (deleted once read): fields key=value, each ended by a NUL. The reply is lines of JSON on stdout, each preceded by the
 * request's nonce and a CRC-32, which distinguish them from anything else on the stream:
 *
 *     @NONCE CRC32 {"event":"alive"|"output"|"result"|"error", ...}
 *
 * The commands are described where they are defined. The last line is always a result or an error. */
#ifndef AGENT_H
#define AGENT_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "sha2.h"

/* Tests build the agent with other folders. */
#ifndef SYS_ROOT
#define SYS_ROOT "/sys"
#endif
#ifndef DEVICE_ROOT
#define DEVICE_ROOT ""
#endif

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_UNHEARD = 3 };
enum { MAX_FIELDS = 8192, MAX_REQUEST_BYTES = 1 << 20, MAX_CORES = CPU_SETSIZE, MAX_SLOT = 4095 };
enum { SHA256_HEX_BYTES = SHA256_DIGEST_STRING_LENGTH, NONCE_BYTES = 17, BOOT_BYTES = 64, OWNER_BYTES = 121 };

struct field {
    const char *key;
    const char *value;
};

struct request {
    int count;
    struct field fields[MAX_FIELDS];
};

/* One use of a slot by its owner; times are of CLOCK_BOOTTIME. */
struct lease {
    char boot[BOOT_BYTES];
    char token_sha256[SHA256_HEX_BYTES];
    char owner[OWNER_BYTES];
    double taken_at_s;
    double expires_at_s;
};

/* The slot that a request names, and who asks for it. */
struct slot {
    int folder; /* of the leases, open */
    int number;
    char token_sha256[SHA256_HEX_BYTES];
    char owner[OWNER_BYTES];
    double ttl_s;
};

/* clock.c */
double monotonic_s(void);
double boot_time_s(void);
void nap_ms(int duration_ms);

/* checksum.c */
uint32_t crc32_of(const void *data, size_t length);
void sha256_end(SHA2_CTX *hash, char hex[SHA256_HEX_BYTES]);
void sha256_of(const char *text, char hex[SHA256_HEX_BYTES]);

/* request.c. A missing or malformed field ends the program with an error event. */
const struct request *read_request(const char *word);
const char *find_field(const struct request *request, const char *key); /* NULL when missing */
const char *need_field(const struct request *request, const char *key);
double need_number(const struct request *request, const char *key, double minimum, double maximum);
bool need_flag(const struct request *request, const char *key);
const char *need_hex(const struct request *request, const char *key, size_t least, size_t most);
const char *need_file_name(const struct request *request, const char *key);
bool is_hex(const char *text, size_t least, size_t most);

/* reply.c: events. A value that JSON cannot hold (infinite, not a number) is written as null. */
void reply_to(const char *nonce);
void event_begin(const char *event);
void event_string(const char *key, const char *value); /* NULL is written as null */
void event_integer(const char *key, int64_t value);
void event_number(const char *key, double value);
void event_boolean(const char *key, bool value);
void event_base64(const char *key, const void *data, size_t length);
void event_open(const char *key, char bracket); /* '[' or '{'; the key is NULL inside an array */
void event_close(char bracket);
void event_end(void);
void reply_done(void);     /* a result without fields */
void report_alive(void);   /* an 'alive' event, if the last one is a second old and somebody reads */
bool listener_is_gone(void);
/* Begins an error event; the caller adds fields and calls `error_end`. */
void error_begin(const char *kind, const char *format, ...) __attribute__((format(printf, 2, 3)));
_Noreturn void error_end(void);
#define fail(...) (error_begin(__VA_ARGS__), error_end())
/* `fail` with the kind that errno stands for: full or io. */
_Noreturn void fail_io(const char *what);

/* text_file.c: small files, the kernel's and ours */
ssize_t read_text(int folder, const char *path, char *text, size_t size); /* -1 when unreadable; trailing blanks cut */
ssize_t read_whole(int file, char *bytes, size_t size); /* closes the file; -1 when it cannot be read, or is -1 */
double read_number_file(const char *path); /* NAN when there is none */
void boot_identity(char boot[BOOT_BYTES]);
/* Opens a file that several users share, and makes it if missing; never follows a link. -1 with errno on failure. */
int open_shared_file(int folder, const char *name);
/* Opens the shared file KIND-NUMBER of a slot in the folder of the leases. */
int open_slot_file(int folder, const char *kind, int number);
bool write_shared_file(int file, const char *text, size_t length);

/* session_folder.c */
#define MARK_START ".owner-"
enum { MARK_FOLDER_BYTES = sizeof MARK_START - 1 + 8, MARK_NAME_BYTES = MARK_FOLDER_BYTES + 1 + 16 + 1 };
/* The name of an empty file in a session, which a full storage has room for, too: it says in which folder of leases its
 * owner has one, and follows from the slot and the token. */
void owner_mark(const struct request *request, int slot, const char *token_sha256, char mark[MARK_NAME_BYTES]);
bool is_file_name(const char *name);
bool is_part_name(const char *name);
int open_session(const struct request *request); /* made if missing, with its owner's mark */
void remove_tree(int folder, const char *name);
/* Those that nobody has used for a day; and, if all else that had the request's token is dead, what that has left. */
void remove_old_sessions(const struct request *request, bool others_are_dead);
double free_bytes(void);

/* inflate.c: raw DEFLATE from one file into another, at most so many bytes. False when the input is damaged, cut short or
 * too long (errno is 0 then), or a file cannot be read or written. */
bool inflate_file(FILE *input, FILE *output, uint64_t most_bytes);

/* session_files.c */
void command_settle(const struct request *request);
void command_accept(const struct request *request);
void command_hash(const struct request *request);
void command_remove(const struct request *request);
void command_clear(const struct request *request);

/* reclaim.c */
void command_reclaim(const struct request *request);

/* lease.c */
int lock_leases(int folder); /* a descriptor; closing it unlocks */
/* Takes or renews the lease. False, with the owner's lease, when someone else has it. */
bool hold_lease(const struct slot *slot, bool force, struct lease *lease);
/* The slot of a request with a token, with its lease; ends the program with a lease error when someone else has it. */
struct slot need_lease(const struct request *request, struct lease *lease);
_Noreturn void fail_leased(const struct lease *holder, int number);
/* Calls `visit` for each lease that has not ended; they are locked meanwhile. */
/* The device's leases, which nobody changes meanwhile. */
struct locked_leases {
    int folder, lock;
};
struct locked_leases lock_all_leases(const struct request *request);
/* Visits those that have not ended, and unlocks them. */
void each_lease(struct locked_leases leases, void (*visit)(int, const struct lease *, void *), void *context);
void command_lease_take(const struct request *request);
void command_lease_release(const struct request *request);
void command_lease_show(const struct request *request);

/* governor.c */
void command_governor(const struct request *request);
/* Restores what the slot's owner changed; the leases are locked. */
void restore_governors(int folder, int number);

/* cores.c */
void usable_cores(cpu_set_t *cores);
/* The cores of a comma-separated list, which may be empty. Ends the program when one is not usable. */
void need_cores(const struct request *request, const char *key, cpu_set_t *cores);
bool use_cores(const cpu_set_t *cores);
int core_count(void); /* configured, usable or not */

/* canary.c: seconds of a fixed piece of work, best of several; on the first core of `cores`, or on the last usable one
 * if that is empty. Restores the affinity. */
double time_canary(const cpu_set_t *cores);
void command_canary(const struct request *request);

/* family.c */
/* SIGKILL to the children of this process; true when there is none. Their children become those of a subreaper. */
bool kill_children(void);
void kill_marked(const char *mark);

/* slot_run.c: one run at a time in a slot */
enum { MARK_BYTES = 96 };
void run_mark(const struct slot *slot, char mark[MARK_BYTES]); /* NAME=VALUE in the environment of its processes */
void take_slot(const struct slot *slot); /* ends an earlier run; keeps the slot until this process ends */
void command_halt(const struct request *request);

/* child.c */
struct child {
    pid_t pid;
    int output; /* its stdout and stderr, not blocking */
};
struct child start_child(const struct request *request, int session, char *mark);

/* run.c */
void command_run(const struct request *request);

/* probe.c, machine.c, dsp.c, sense.c */
void command_open(const struct request *request);
void command_probe(const struct request *request);
void event_machine(void); /* the fields of a probe about the whole machine */
void event_dsp(void);     /* the fields of a probe about a phone's DSP */
void command_sense(const struct request *request);
bool read_core_text(int core, const char *name, char *text, size_t size);
double read_core_number(int core, const char *name); /* NAN when there is none */
void event_cores(const char *key, const cpu_set_t *cores); /* NULL or empty: all of them */
void event_temperatures(const char *key);

#endif
