/* The benchmark of a network's library: runs it, times it as a whole and layer by layer, and writes what it computes.
 *
 *     NAME_bench [--repetitions N] [--threads N] [--input FILE] [--output FILE] [--layer-outputs FILE] [--report FILE]
 *
 * FILEs hold numbers as the network takes and makes them: the inputs, outputs or layers one after the other. Without an input
 * it is random. --repetitions 0 times nothing. The report is one JSON object, on standard output unless it has a file. On an
 * error there is a line on standard error, and the exit code is 1.
 *
 * A generated source includes it after the network's header, NETWORK(part), which puts the network's name before part, and
 * INPUT_TYPE and OUTPUT_TYPE, which are what its inputs and outputs are of. */
#include <HalideRuntime.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void fail(const char *what, const char *which) {
    fprintf(stderr, "%s%s.\n", what, which);
    exit(1);
}

static double now_ms(void) {
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC, &now) != 0) fail("There is no monotonic clock", "");
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void *memory_of(size_t bytes) {
    const size_t alignment = NETWORK(WORKSPACE_ALIGNMENT);
    void *found = NULL;
    const size_t rounded = (bytes + alignment) / alignment * alignment;
    if (posix_memalign(&found, alignment, rounded) != 0) fail("There is not enough memory", "");
    memset(found, 0, rounded);
    return found;
}

static int by_size(const void *one, const void *other) {
    const double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

static double median(double *times_ms, int count) {
    qsort(times_ms, (size_t)count, sizeof *times_ms, by_size);
    return count % 2 ? times_ms[count / 2] : (times_ms[count / 2 - 1] + times_ms[count / 2]) / 2;
}

static uint32_t random_bits(void) {
    static uint32_t state = 1;
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

/* Floats from -1 to 1, or bytes. */
static void fill(void *values, size_t count, size_t bytes) {
    if (count == bytes) {
        for (size_t i = 0; i < count; i++) ((unsigned char *)values)[i] = (unsigned char)(random_bits() >> 16);
    } else {
        for (size_t i = 0; i < count; i++) ((float *)values)[i] = (float)random_bits() / (1 << 23) - 1.0f;
    }
}

static FILE *open_file(const char *path, const char *mode) {
    FILE *file = fopen(path, mode);
    if (file == NULL) fail("A file cannot be opened: ", path);
    return file;
}

static void write_bytes(FILE *file, const void *values, size_t bytes, const char *path) {
    if (fwrite(values, 1, bytes, file) != bytes) fail("A file cannot be written: ", path);
}

static void check(int error, const char *what) {
    char code[32];
    snprintf(code, sizeof code, ": error %d", error);
    if (error != 0) fail(what, code);
}

static INPUT_TYPE *inputs[NETWORK(INPUT_COUNT)];
static OUTPUT_TYPE *outputs[NETWORK(OUTPUT_COUNT)];
static void *workspace;

static int run_whole(void) {
    return NETWORK(run)((const INPUT_TYPE *const *)inputs, outputs, workspace);
}

static int run_one(int layer) {
    return NETWORK(run_layer)(layer, (const INPUT_TYPE *const *)inputs, outputs, workspace);
}

static void read_inputs(const char *path) {
    FILE *file = path == NULL ? NULL : open_file(path, "rb");
    for (int i = 0; i < NETWORK(INPUT_COUNT); i++) {
        const size_t bytes = NETWORK(input_bytes)[i];
        inputs[i] = memory_of(bytes);
        if (file == NULL) fill(inputs[i], NETWORK(input_sizes)[i], bytes);
        else if (fread(inputs[i], 1, bytes, file) != bytes) fail("There is too little input in ", path);
    }
    if (file != NULL && fgetc(file) != EOF) fail("There is too much input in ", path);
    if (file != NULL) fclose(file);
}

static void write_outputs(const char *path) {
    FILE *file = open_file(path, "wb");
    for (int i = 0; i < NETWORK(OUTPUT_COUNT); i++) write_bytes(file, outputs[i], NETWORK(output_bytes)[i], path);
    if (fclose(file) != 0) fail("A file cannot be written: ", path);
}

static void write_layers(const char *path) {
    FILE *file = open_file(path, "wb");
    for (int i = 0; i < NETWORK(LAYER_COUNT); i++) {
        check(run_one(i), NETWORK(layer_names)[i]);
        write_bytes(file, NETWORK(layer_output)(i, outputs, workspace), NETWORK(layer_bytes)[i], path);
    }
    if (fclose(file) != 0) fail("A file cannot be written: ", path);
}

static void print_text(FILE *report, const char *text) {
    fputc('"', report);
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') fprintf(report, "\\%c", c);
        else if (c < 0x20) fprintf(report, "\\u%04x", c);
        else fputc(c, report);
    }
    fputc('"', report);
}

/* Whole calls, then layer by layer: a clock between layers is no part of the whole. */
static void print_times(FILE *report, int repetitions) {
    double *times_ms = memory_of((size_t)repetitions * sizeof *times_ms);
    double *of_layers = memory_of((size_t)repetitions * NETWORK(LAYER_COUNT) * sizeof *of_layers);
    for (int i = 0; i < repetitions; i++) {
        const double begin = now_ms();
        check(run_whole(), "The network");
        times_ms[i] = now_ms() - begin;
    }
    for (int i = 0; i < repetitions; i++) {
        for (int layer = 0; layer < NETWORK(LAYER_COUNT); layer++) {
            const double begin = now_ms();
            check(run_one(layer), NETWORK(layer_names)[layer]);
            of_layers[layer * repetitions + i] = now_ms() - begin;
        }
    }
    fprintf(report, ", \"median_ms\": %.6f, \"layers\": [", median(times_ms, repetitions));
    for (int layer = 0; layer < NETWORK(LAYER_COUNT); layer++) {
        fprintf(report, "%s\n    {\"name\": ", layer ? "," : "");
        print_text(report, NETWORK(layer_names)[layer]);
        fprintf(report, ", \"median_ms\": %.6f}", median(of_layers + layer * repetitions, repetitions));
    }
    fprintf(report, "\n]");
}

static int whole_number(const char *option, const char *text) {
    char *end;
    errno = 0;
    const long found = strtol(text, &end, 10);
    if (errno != 0 || *end != '\0' || end == text || found < 0 || found > 1000000) fail("No number for ", option);
    return (int)found;
}

int main(int count, char **words) {
    int repetitions = 20, threads = 0;
    const char *input = NULL, *output = NULL, *layer_outputs = NULL, *reported = NULL;
    for (int i = 1; i < count; i += 2) {
        const char *option = words[i], *value = i + 1 < count ? words[i + 1] : NULL;
        if (value == NULL) fail("There is no value for ", option);
        if (strcmp(option, "--repetitions") == 0) repetitions = whole_number(option, value);
        else if (strcmp(option, "--threads") == 0) threads = whole_number(option, value);
        else if (strcmp(option, "--input") == 0) input = value;
        else if (strcmp(option, "--output") == 0) output = value;
        else if (strcmp(option, "--layer-outputs") == 0) layer_outputs = value;
        else if (strcmp(option, "--report") == 0) reported = value;
        else fail("There is no option ", option);
    }
    if (threads > 0) halide_set_num_threads(threads);
    read_inputs(input);
    for (int i = 0; i < NETWORK(OUTPUT_COUNT); i++) outputs[i] = memory_of(NETWORK(output_bytes)[i]);
    workspace = memory_of(NETWORK(WORKSPACE_BYTES));
    check(run_whole(), "The network"); /* it warms up, too */
    if (output != NULL) write_outputs(output);
    if (layer_outputs != NULL) write_layers(layer_outputs);
    FILE *report = reported == NULL ? stdout : open_file(reported, "w");
    fprintf(report, "{\"network\": ");
    print_text(report, NETWORK(title));
    fprintf(report, ", \"repetitions\": %d, \"threads\": %d", repetitions, threads);
    if (repetitions > 0) print_times(report, repetitions);
    fprintf(report, "}\n");
    if (fclose(report) != 0) fail("The report cannot be written", "");
    return 0;
}
