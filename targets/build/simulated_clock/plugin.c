/* A plug-in of QEMU's user mode that gives the guest a simulated clock.
 *
 * The guest's instructions are counted and its data accesses go through simulated caches; what clock_gettime gives is
 * the time that they would take on the modelled machine. A program that times itself needs no change, and gets the
 * same time in every run. One thread only.
 *
 *     -plugin FILE,l1_bytes=N,l2_bytes=N[,last_level_bytes=N][,memory_percent=N][,marked=on]
 *
 * l1_bytes…         data caches; each larger than the one before, the last level 0 where l2 is the last
 * memory_percent    how much dearer lines from memory are because other cores want some too (100)
 * marked            the clock stands until the program has read CLOCK_PROCESS_CPUTIME_ID: what comes before is emulated
 *                   several times as fast, and leaves the caches empty. But what comes between two readings of
 *                   CLOCK_THREAD_CPUTIME_ID warms up the caches and the branch predictor */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core_model.h"
#include "emulator_interface.h"
#include "line_arrivals.h"
#include "memory_model.h"

/* What things cost, in tenths of a cycle. But for fresh pages, all are for guests whose core is not modelled: one that is
 * out of order hides a part of each wait, and nearly all of one for level 2. They are round numbers for all pipelines,
 * fitted to none. A line from memory costs what the level before costs, and this more. Hexagon issues a packet, which the
 * emulator counts as an instruction, a cycle. */
enum {
    TENTHS_PER_CYCLE = 10,
    TENTHS_PER_NS = 20, /* of a machine of 2 GHz */
    FRESH_PAGE_TENTHS = 26000,
    INSTRUCTION_TENTHS = 4,
    PACKET_TENTHS = 10,
    RANDOM_L1_MISS_TENTHS = 30,
    SEQUENTIAL_L1_MISS_TENTHS = 10,
    RANDOM_L2_MISS_TENTHS = 300,
    SEQUENTIAL_L2_MISS_TENTHS = 80,
    RANDOM_MEMORY_TENTHS = 600,
    SEQUENTIAL_MEMORY_TENTHS = 80
};

enum { LARGEST_ERROR = 4095 }; /* of a system call, negated */
enum { PROCESS_TIME = 2, THREAD_TIME = 3 }; /* CLOCK_PROCESS_CPUTIME_ID and CLOCK_THREAD_CPUTIME_ID, of every Linux */
static const uint64_t NANOSECONDS_PER_S = 1000000000;

/* System calls, in one of the two numberings; -1: not there. */
struct system_calls {
    int64_t clock_gettime, clock_gettime64, mmap, munmap, mremap, madvise, brk;
};
static const struct system_calls X86_64_CALLS = {228, -1, 9, 11, 25, 28, 12};
static const struct system_calls ARM_CALLS = {263, 403, 192, 91, 163, 220, 45};
static const struct system_calls GENERIC_CALLS = {113, 403, 222, 215, 216, 233, 214};

struct guest {
    const char *name;
    const struct system_calls *calls;
    bool is_32_bit; /* clock_gettime writes two 32-bit numbers, clock_gettime64 two of 64 bits */
    int instruction_tenths;
    const struct core_kind *core; /* NULL: each instruction costs as much */
};
static const struct guest GUESTS[] = {
    {"x86_64", &X86_64_CALLS, false, INSTRUCTION_TENTHS, &X86_CORE},
    {"aarch64", &GENERIC_CALLS, false, INSTRUCTION_TENTHS, &AARCH64_CORE},
    {"arm", &ARM_CALLS, true, INSTRUCTION_TENTHS, &ARM_CORE},
    {"riscv64", &GENERIC_CALLS, false, INSTRUCTION_TENTHS, NULL},
    {"hexagon", &GENERIC_CALLS, true, PACKET_TENTHS, NULL},
};

struct settings {
    uint64_t size_bytes[LEVELS];
    uint64_t memory_percent;
    bool is_marked;
};

/* Read by the emulator once the plug-in is loaded. */
__attribute__((visibility("default"))) int qemu_plugin_version = 1;

__attribute__((constructor)) static void speak_the_emulators_version(void) {
    if (&qemu_plugin_scoreboard_new) qemu_plugin_version = 2;
}

static struct settings settings = {.memory_percent = 100};
static const struct guest *guest;
static const struct core_kind *core; /* the guest's; NULL where instructions are counted alone */
static uint64_t own_counter; /* of instructions; added to by the translated code itself */
static struct qemu_plugin_scoreboard *counters; /* NULL in version 1: there it is own_counter */
static uintptr_t guest_base; /* where the emulator maps the guest's address 0 */
static bool is_base_known;
static enum { RUNNING, WARMING_UP, STANDING } state; /* of the clock: it stands while caches warm up, too */
static uint64_t call_arguments[2];
static uint64_t program_break;

static uint64_t *instructions(void) {
    return counters ? qemu_plugin_scoreboard_find(counters, 0) : &own_counter;
}

static void count_instructions(struct qemu_plugin_tb *block, size_t count) {
    if (counters) {
        const qemu_plugin_u64 counter = {.score = counters, .offset = 0};
        qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(block, QEMU_PLUGIN_INLINE_ADD_U64, counter, count);
    } else {
        qemu_plugin_register_vcpu_tb_exec_inline(block, QEMU_PLUGIN_INLINE_ADD_U64, &own_counter, count);
    }
}

/* Where the core is not modelled, every miss costs the same. */
static uint64_t counted_tenths(void) {
    const struct memory_counts *counts = &memory_counts;
    const int last = settings.size_bytes[LEVELS - 1] ? LEVELS - 1 : LEVELS - 2;
    const uint64_t memory_tenths =
        counts->random[last] * RANDOM_MEMORY_TENTHS + counts->sequential[last] * SEQUENTIAL_MEMORY_TENTHS;
    return *instructions() * (uint64_t)guest->instruction_tenths + counts->random[0] * RANDOM_L1_MISS_TENTHS +
           counts->sequential[0] * SEQUENTIAL_L1_MISS_TENTHS + counts->random[1] * RANDOM_L2_MISS_TENTHS +
           counts->sequential[1] * SEQUENTIAL_L2_MISS_TENTHS + memory_tenths * settings.memory_percent / 100;
}

static uint64_t simulated_ns(void) {
    if (state != RUNNING) return 0;
    const uint64_t tenths = core ? core_cycles() * TENTHS_PER_CYCLE : counted_tenths();
    return (tenths + memory_counts.fresh_pages * FRESH_PAGE_TENTHS) / TENTHS_PER_NS;
}

/* Of an instruction's accesses together, what takes longest. */
static void add_access(struct memory_access *all, struct memory_access access) {
    if (access.level > all->level) {
        all->level = access.level;
        all->is_foreseen = access.is_foreseen;
    }
    if (access.page_level > all->page_level) all->page_level = access.page_level;
    all->is_blocked |= access.is_blocked;
}

/* An access of at most 8 bytes. */
static void count_part(struct core_instruction *instruction, uint64_t address, bool is_store, bool is_8_bytes) {
    if (state == WARMING_UP) {
        warm_up_memory(address, (const void *)instruction->serial);
        return;
    }
    uint64_t *places = is_store ? instruction->stored : instruction->loaded;
    places[1] = (address >> 3) + 1;
    if (places[0] == 0) places[0] = places[1];
    const struct memory_access access =
        access_memory(address, is_store, is_8_bytes, (const void *)instruction->serial);
    add_access(&instruction->access, access);
}

/* QEMU 8.1 and later tell of 16 bytes at once, earlier versions of two times 8. */
static void count_access(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t address, void *data) {
    (void)vcpu;
    if (state == STANDING) return;
    const uint64_t size_bytes = (uint64_t)1 << qemu_plugin_mem_size_shift(info);
    const bool is_store = qemu_plugin_mem_is_store(info);
    uint64_t counted_bytes = 0;
    do {
        count_part(data, address + counted_bytes, is_store, size_bytes >= 8);
        counted_bytes += 8;
    } while (counted_bytes < size_bytes);
}

static void count_block(unsigned int vcpu, void *block) {
    (void)vcpu;
    if (state != STANDING) begin_block(block, state == RUNNING);
}

/* Blocks are never given back: the emulator may still run them. */
static struct core_block *new_block(size_t count) {
    static uint64_t serial;
    struct core_block *block = calloc(1, sizeof *block + count * sizeof *block->instructions);
    if (!block) abort(); /* out of memory: the emulator ends in the same way */
    block->serial = ++serial;
    block->count = count;
    return block;
}

static void end_with(const char *message) {
    fprintf(stderr, "The simulated clock cannot go on: %s.\n", message);
    _exit(EXIT_FAILURE);
}

/* Code is mapped as data is. */
static void find_guest_base(const struct qemu_plugin_insn *code) {
    const uintptr_t place = (uintptr_t)qemu_plugin_insn_haddr(code);
    if (is_base_known || place == 0) return;
    guest_base = place - (uintptr_t)qemu_plugin_insn_vaddr(code);
    is_base_known = true;
}

static void translate_block(qemu_plugin_id_t id, struct qemu_plugin_tb *translated) {
    (void)id;
    const size_t count = qemu_plugin_tb_n_insns(translated);
    count_instructions(translated, count);
    find_guest_base(qemu_plugin_tb_get_insn(translated, 0));
    if (settings.size_bytes[0] == 0) return;
    static uintptr_t serial;
    struct core_block *block = new_block(count);
    for (size_t i = 0; i < count; i++) {
        struct core_instruction *instruction = &block->instructions[i];
        struct qemu_plugin_insn *code = qemu_plugin_tb_get_insn(translated, i);
        instruction->serial = ++serial;
        if (core) {
            char *text = qemu_plugin_insn_disas(code);
            if (serial == 1 && !*text) end_with("this emulator cannot disassemble (it is built without Capstone)");
            instruction->text = read_instruction_text(text, core->syntax);
            free(text);
        }
        /* One for both: QEMU 7.2 calls those for writes alone when it reads, too. */
        qemu_plugin_register_vcpu_mem_cb(code, count_access, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, instruction);
    }
    if (core) qemu_plugin_register_vcpu_tb_exec_cb(translated, count_block, QEMU_PLUGIN_CB_NO_REGS, block);
}

static void keep_arguments(qemu_plugin_id_t id, unsigned int vcpu, int64_t number, uint64_t a1, uint64_t a2,
                           uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8) {
    (void)id, (void)vcpu, (void)number, (void)a3, (void)a4, (void)a5, (void)a6, (void)a7, (void)a8;
    call_arguments[0] = a1;
    call_arguments[1] = a2;
    if (core) begin_system_call(state == RUNNING);
}

/* The emulator has just written the real time there, so the address is the guest's to write to. */
static void write_time(uint64_t address, bool narrow) {
    if (!is_base_known) end_with("this emulator does not say where the guest's memory is");
    const uint64_t now_ns = simulated_ns();
    char *place = (char *)(guest_base + (uintptr_t)address);
    if (narrow) {
        const int32_t time[2] = {(int32_t)(now_ns / NANOSECONDS_PER_S), (int32_t)(now_ns % NANOSECONDS_PER_S)};
        memcpy(place, time, sizeof time);
    } else {
        const int64_t time[2] = {(int64_t)(now_ns / NANOSECONDS_PER_S), (int64_t)(now_ns % NANOSECONDS_PER_S)};
        memcpy(place, time, sizeof time);
    }
}

static void follow_break(uint64_t now) {
    if (now < program_break) forget_pages(now, program_break - now);
    program_break = now;
}

static void end_call(qemu_plugin_id_t id, unsigned int vcpu, int64_t number, int64_t result) {
    (void)id, (void)vcpu;
    const struct system_calls *calls = guest->calls;
    if (result < 0 && result >= -LARGEST_ERROR) return;
    const uint64_t place = guest->is_32_bit ? (uint32_t)result : (uint64_t)result;
    if (number == calls->clock_gettime || number == calls->clock_gettime64) {
        if (call_arguments[0] == PROCESS_TIME && state != RUNNING) {
            state = RUNNING;
            *instructions() = 0;
            memory_counts = (struct memory_counts){.fresh_pages = 0};
        } else if (call_arguments[0] == THREAD_TIME && state != RUNNING) {
            state = state == STANDING ? WARMING_UP : STANDING;
        }
        write_time(call_arguments[1], guest->is_32_bit && number == calls->clock_gettime);
    } else if (number == calls->munmap || number == calls->madvise || number == calls->mremap) {
        forget_pages(call_arguments[0], call_arguments[1]);
    } else if (number == calls->mmap) {
        forget_pages(place, call_arguments[1]);
    } else if (number == calls->brk) {
        follow_break(place);
    }
}

/* The counters are one thread's: with two, times would differ from run to run. */
static void start_thread(qemu_plugin_id_t id, unsigned int vcpu) {
    (void)id;
    if (vcpu == 0) return;
    end_with("it serves programs of one thread, and this one starts a second");
}

/* A whole number after `key=`; false when the argument is another one or has no such number. */
static bool read_number(const char *argument, const char *key, uint64_t *number) {
    const size_t length = strlen(key);
    if (strncmp(argument, key, length) != 0 || argument[length] != '=') return false;
    const char *text = argument + length + 1;
    char *end;
    errno = 0;
    *number = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && !*end && !errno;
}

static bool read_setting(const char *argument) {
    if (strcmp(argument, "marked=on") == 0) {
        settings.is_marked = true;
        return true;
    }
    return read_number(argument, "l1_bytes", &settings.size_bytes[0]) ||
           read_number(argument, "l2_bytes", &settings.size_bytes[1]) ||
           read_number(argument, "last_level_bytes", &settings.size_bytes[2]) ||
           read_number(argument, "memory_percent", &settings.memory_percent);
}

static bool refuse(const char *message, const char *what) {
    fprintf(stderr, "The simulated clock cannot start: %s%s.\n", message, what);
    return false;
}

static bool check_settings(void) {
    const uint64_t *size_bytes = settings.size_bytes;
    if (size_bytes[0] == 0 && size_bytes[1] == 0 && size_bytes[2] == 0) return true; /* instructions alone */
    if (size_bytes[0] == 0 || size_bytes[1] <= size_bytes[0] || (size_bytes[2] && size_bytes[2] <= size_bytes[1])) {
        return refuse("each cache has to be larger than the one before", "");
    }
    if (!set_up_memory_model(size_bytes)) return refuse("there is no memory for the caches", "");
    return true;
}

static bool find_guest(const char *name) {
    for (size_t i = 0; i < sizeof GUESTS / sizeof *GUESTS; i++) {
        if (strcmp(GUESTS[i].name, name) == 0) guest = &GUESTS[i];
    }
    return guest || refuse("it knows no system calls of the guest ", name);
}

__attribute__((visibility("default"))) int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int count,
                                                               char **arguments) {
    if (info->system_emulation) return refuse("it serves programs, and not whole machines", ""), -1;
    if (!find_guest(info->target_name)) return -1;
    for (int i = 0; i < count; i++) {
        if (!read_setting(arguments[i])) return refuse("it does not take ", arguments[i]), -1;
    }
    if (!check_settings()) return -1;
    if (qemu_plugin_version > 1) counters = qemu_plugin_scoreboard_new(sizeof(uint64_t));
    state = settings.is_marked ? STANDING : RUNNING;
    if (settings.size_bytes[0]) core = guest->core;
    if (core) {
        set_up_core(core);
        set_up_line_arrivals(settings.memory_percent);
    }
    qemu_plugin_register_vcpu_init_cb(id, start_thread);
    qemu_plugin_register_vcpu_tb_trans_cb(id, translate_block);
    qemu_plugin_register_vcpu_syscall_cb(id, keep_arguments);
    qemu_plugin_register_vcpu_syscall_ret_cb(id, end_call);
    return 0;
}
