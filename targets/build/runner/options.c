/* Parses the command line. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runner.h"

enum option_kind { FLAG, TEXT, FILE_NAME, EVENTS, NAME_VALUE, NAMED_FILE, COUNT, SEED, SHARE, SECONDS, RATIO };

struct option {
    const char *name;
    enum option_kind kind;
    void *target;
};

static _Noreturn void bad_value(const char *name, const char *text, const char *expected) {
    fail(EXIT_USAGE, "usage", "%s got '%s'; expected %s.", name, text, expected);
}

static double parse_number(const char *name, const char *text, double minimum, double maximum, const char *expected) {
    char *end;
    double value = strtod(text, &end);
    /* The comparison is false for NaN. */
    if (end == text || *end || !(value >= minimum && value <= maximum)) bad_value(name, text, expected);
    return value;
}

static uint64_t parse_unsigned(const char *name, const char *text, uint64_t maximum, const char *expected) {
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    /* strtoull accepts a sign and leading blanks. */
    if (text[0] < '0' || text[0] > '9' || *end || errno || value > maximum) bad_value(name, text, expected);
    return value;
}

static struct override *add_override(const char *option, struct overrides *overrides, const char *text) {
    const char *equals = strchr(text, '=');
    if (!equals || equals == text) bad_value(option, text, "NAME=VALUE");
    if (overrides->count == MAX_OVERRIDES) {
        fail(EXIT_USAGE, "usage", "%s is given more than %d times.", option, MAX_OVERRIDES);
    }
    struct override *item = &overrides->items[overrides->count++];
    item->name = text;
    item->name_length = (size_t)(equals - text);
    item->value = equals + 1;
    return item;
}

bool names_agree(const char *name, size_t length, const char *other) {
    const size_t other_length = strcspn(other, "$");
    const char *suffix = memchr(name, '$', length);
    if (suffix) length = (size_t)(suffix - name);
    return length == other_length && memcmp(name, other, length) == 0;
}

const struct override *find_override(const struct overrides *overrides, const char *name) {
    const struct override *found = NULL;
    for (int i = 0; i < overrides->count; i++) {
        const struct override *item = &overrides->items[i];
        if (names_agree(item->name, item->name_length, name)) found = item;
    }
    return found;
}

static void mark_as_defaults(struct overrides *overrides) {
    for (int i = 0; i < overrides->count; i++) {
        overrides->items[i].is_default = true;
    }
}

/* Returns `name` in `folder`; the name itself if that is NULL or the name is absolute. Never freed. */
static const char *path_in_folder(const char *folder, const char *name) {
    if (!folder || name[0] == '/') return name;
    const size_t length = strlen(folder) + 1 + strlen(name) + 1;
    char *path = malloc(length);
    if (!path) fail(EXIT_RESOURCES, "memory", "Not enough memory for the path of %s.", name);
    snprintf(path, length, "%s/%s", folder, name);
    return path;
}

static void store(const struct option *option, const char *text, const char *folder) {
    switch (option->kind) {
    case FLAG: break;
    case TEXT:
        if (!*text) bad_value(option->name, text, "a name");
        *(const char **)option->target = text;
        break;
    case FILE_NAME:
    case EVENTS:
        if (!*text) bad_value(option->name, text, "a file");
        *(const char **)option->target = path_in_folder(folder, text);
        if (option->kind == EVENTS) write_events_to(*(const char **)option->target);
        break;
    case NAME_VALUE: add_override(option->name, option->target, text); break;
    case NAMED_FILE: {
        struct override *item = add_override(option->name, option->target, text);
        item->value = path_in_folder(folder, item->value);
        break;
    }
    case COUNT:
        *(int *)option->target = (int)parse_unsigned(option->name, text, 1000000, "a whole number up to 1000000");
        break;
    case SEED:
        *(uint64_t *)option->target = parse_unsigned(option->name, text, UINT64_MAX, "a whole number");
        break;
    case SHARE:
        *(double *)option->target = parse_number(option->name, text, 0, 1, "a number from 0 to 1");
        break;
    case SECONDS:
        *(double *)option->target = parse_number(option->name, text, 0, 1e6, "a number of seconds up to 1000000");
        break;
    case RATIO:
        *(double *)option->target = parse_number(option->name, text, 1e-6, 1e6, "a number from 0.000001 to 1000000");
        break;
    }
}

static void set_defaults(struct options *options) {
    memset(options, 0, sizeof *options);
    options->tolerance.far_share = 1;
    options->tolerance.least_common = 1;
    options->timing = (struct timing_options){
        .warm_up_s = 0.1,
        .precision = 0.01,
        .min_repetitions = 5,
        .max_repetitions = 1000,
        .max_time_s = 10,
        .give_up_over_s = 0,
        .min_repetition_s = 0.0005,
        .lost_over = 1,
    };
}

/* The first argument for the runner. Some releases of run_main_on_hexagon pass on an option of their own. */
static int first_argument(int argc, char **argv) {
    return argc > 1 && strncmp(argv[1], "stack_size=", strlen("stack_size=")) == 0 ? 2 : 1;
}

static void check_together(const struct options *options) {
    const struct timing_options *timing = &options->timing;
    if (!options->list && !options->kernel && options->neighbours_s <= 0) {
        fail(EXIT_USAGE, "usage", "Give --list, --neighbours T or --kernel NAME; see --help.");
    }
    if (options->reference && options->write_reference) {
        fail(EXIT_USAGE, "usage", "--reference and --write-reference cannot be used together.");
    }
    if (options->beside && !options->time) {
        fail(EXIT_USAGE, "usage", "--beside needs --time.");
    }
    if (options->threads && options->simulated_cores) {
        fail(EXIT_USAGE, "usage", "--threads and --simulated-cores cannot be used together.");
    }
    if (options->simulated_cores > MAX_SIMULATED_CORES) {
        fail(EXIT_USAGE, "usage", "--simulated-cores got %d; expected at most %d.", options->simulated_cores,
             MAX_SIMULATED_CORES);
    }
    if (timing->min_repetitions < 1 || timing->max_repetitions < timing->min_repetitions) {
        fail(EXIT_USAGE, "usage", "Expected 1 <= --min-repetitions <= --max-repetitions; got %d and %d.",
             timing->min_repetitions, timing->max_repetitions);
    }
}

/* The folder of a program that is called by a path, or NULL. */
static const char *folder_of(const char *program) {
    const char *end = program ? strrchr(program, '/') : NULL;
    if (!end) return NULL;
    const size_t length = end == program ? 1 : (size_t)(end - program);
    char *folder = malloc(length + 1);
    if (!folder) fail(EXIT_RESOURCES, "memory", "Not enough memory for the path of %s.", program);
    memcpy(folder, program, length);
    folder[length] = 0;
    return folder;
}

static void parse_words(const char *const *words, int word_count, const struct option *table, size_t table_count,
                        struct options *options) {
    for (int i = 0; i < word_count; i++) {
        const struct option *found = NULL;
        for (size_t k = 0; k < table_count; k++) {
            if (strcmp(words[i], table[k].name) == 0) found = &table[k];
        }
        if (!found) fail(EXIT_USAGE, "usage", "There is no option '%s'.", words[i]);
        if (found->kind == FLAG) {
            *(bool *)found->target = true;
        } else if (i + 1 < word_count) {
            store(found, words[++i], options->folder);
        } else {
            fail(EXIT_USAGE, "usage", "%s needs a value.", found->name);
        }
    }
}

void parse_options(int argc, char **argv, struct options *options) {
    set_defaults(options);
    struct timing_options *timing = &options->timing;
    struct tolerance *tolerance = &options->tolerance;
    const struct option table[] = {
        {"--folder", TEXT, &options->folder},
        {"--events", EVENTS, &options->events},
        {"--help", FLAG, &options->help},
        {"--list", FLAG, &options->list},
        /* As Halide's RunGen has them. */
        {"--describe", FLAG, &options->list},
        {"--benchmarks=all", FLAG, &options->benchmark},
        {"--kernel", TEXT, &options->kernel},
        {"--seed", SEED, &options->seed},
        {"--threads", COUNT, &options->threads},
        {"--simulated-cores", COUNT, &options->simulated_cores},
        {"--size", NAME_VALUE, &options->sizes},
        {"--exact-outputs", FLAG, &options->exact_outputs},
        {"--scalar", NAME_VALUE, &options->scalars},
        {"--input", NAMED_FILE, &options->inputs},
        {"--write-reference", FILE_NAME, &options->write_reference},
        {"--reference", FILE_NAME, &options->reference},
        {"--integer-tolerance", SEED, &tolerance->integer},
        {"--float-relative", SHARE, &tolerance->float_relative},
        {"--float-absolute-scale", SHARE, &tolerance->float_absolute_scale},
        {"--mismatch-share", SHARE, &tolerance->mismatch_share},
        {"--far-scale", SHARE, &tolerance->far_scale},
        {"--far-share", SHARE, &tolerance->far_share},
        {"--least-common", SHARE, &tolerance->least_common},
        {"--time", FLAG, &options->time},
        {"--machine", FLAG, &options->machine},
        {"--neighbours", SECONDS, &options->neighbours_s},
        {"--by-func", SECONDS, &options->by_func_s},
        {"--count", FLAG, &options->count},
        {"--beside", TEXT, &options->beside},
        {"--warm-up-s", SECONDS, &timing->warm_up_s},
        {"--precision", SHARE, &timing->precision},
        {"--min-repetitions", COUNT, &timing->min_repetitions},
        {"--max-repetitions", COUNT, &timing->max_repetitions},
        {"--min-time-s", SECONDS, &timing->min_time_s},
        {"--max-time-s", SECONDS, &timing->max_time_s},
        {"--give-up-over-s", SECONDS, &timing->give_up_over_s},
        {"--min-repetition-s", SECONDS, &timing->min_repetition_s},
        {"--lost-over", RATIO, &timing->lost_over},
    };
    const size_t count = sizeof table / sizeof table[0];
    const int first = first_argument(argc, argv);
    int default_count = 0;
    while (runner_defaults[default_count]) default_count++;
    options->folder = default_count > 0 ? folder_of(argv[0]) : NULL;
    parse_words(runner_defaults, default_count, table, count, options);
    options->folder = NULL;
    mark_as_defaults(&options->sizes);
    mark_as_defaults(&options->inputs);
    parse_words((const char *const *)argv + first, argc > first ? argc - first : 0, table, count, options);
    timing->is_simulated = options->simulated_cores > 0;
    if (options->help) return;
    if (options->benchmark) {
        options->time = timing->is_for_people = true;
        if (!options->kernel && runner_kernel_count == 1) options->kernel = runner_kernels[0].name;
    }
    check_together(options);
}
