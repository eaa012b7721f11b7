/* The arguments of a kernel: the values of scalars, and the shapes of buffers.
 *
 * An output has the shape of its estimates (or of --size), or the one that the kernel requires. An input has the hull of
 * its estimates and of what the kernel reads for those outputs, by Halide's bounds query (a call with buffers without
 * memory). If outputs are compared, inputs are at least as large as the reference's, because a boundary condition
 * applies where the input ends. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runner.h"

enum { MAX_QUERIES = 8 };

bool is_buffer(const struct argument *argument) {
    return argument->meta->kind != halide_argument_kind_input_scalar;
}

bool is_output(const struct argument *argument) {
    return argument->meta->kind == halide_argument_kind_output_buffer;
}

bool is_input_buffer(const struct argument *argument) {
    return is_buffer(argument) && !is_output(argument);
}

static void check_names(const struct invocation *invocation, const struct overrides *overrides, const char *option) {
    const bool scalars = strcmp(option, "--scalar") == 0, inputs = strcmp(option, "--input") == 0;
    for (int i = 0; i < overrides->count; i++) {
        const struct override *item = &overrides->items[i];
        bool found = false;
        for (int k = 0; k < invocation->count; k++) {
            const struct argument *argument = &invocation->arguments[k];
            if (!names_agree(item->name, item->name_length, argument->meta->name)) continue;
            found = scalars == !is_buffer(argument) && !(inputs && is_output(argument));
        }
        if (!found) {
            fail(EXIT_USAGE, "usage", "%s %.*s: the kernel '%s' has no %s of that name; --list shows its arguments.",
                 option, (int)item->name_length, item->name, invocation->kernel->name,
                 scalars  ? "scalar"
                 : inputs ? "input buffer"
                          : "buffer");
        }
    }
}

static void take_estimates(struct argument *argument, bool has_size) {
    const struct halide_filter_argument_t *meta = argument->estimated;
    const int64_t *const *estimates = meta->buffer_estimates;
    for (int i = 0; i < meta->dimensions; i++) {
        const int64_t *min = estimates ? estimates[2 * i] : NULL;
        const int64_t *extent = estimates ? estimates[2 * i + 1] : NULL;
        if (!has_size && (!min || !extent)) {
            fail(EXIT_USAGE, "usage",
                 "The buffer '%s' has no estimates: call set_estimates on it in the generator, or give --size %s=E0xE1.",
                 meta->name, meta->name);
        }
        if ((min && (*min < INT32_MIN || *min > INT32_MAX)) || (extent && (*extent < 0 || *extent > INT32_MAX))) {
            fail(EXIT_USAGE, "usage", "The estimates of dimension %d of '%s' do not fit into 32 bits.", i, meta->name);
        }
        argument->dim[i].min = min ? (int32_t)*min : 0;
        argument->dim[i].extent = extent ? (int32_t)*extent : 0;
    }
}

static _Noreturn void bad_size(const struct argument *argument, const char *size) {
    fail(EXIT_USAGE, "usage",
         "--size %.*s got '%s'; expected %d extents such as 64x48, or with first coordinates 64x48@-2x3.",
         (int)strcspn(argument->meta->name, "$"), argument->meta->name, size, argument->meta->dimensions);
}

/* Reads one number of a size, which a character of `expected` must follow; returns the text after that. */
static const char *take_number(const struct argument *argument, const char *size, const char *text, int64_t lowest,
                               const char *expected, int32_t *number) {
    char *end;
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    const char first = text[0] == '-' && lowest < 0 ? text[1] : text[0];
    if (first < '0' || first > '9' || errno || value < lowest || value > INT32_MAX ||
        !memchr(expected, *end, strlen(expected) + 1)) {
        bad_size(argument, size);
    }
    *number = (int32_t)value;
    return *end ? end + 1 : end;
}

static void take_size(struct argument *argument, const char *size) {
    const int count = argument->meta->dimensions;
    const char *text = size;
    for (int i = 0; i < count; i++) {
        text = take_number(argument, size, text, 0, i + 1 < count ? "x" : "@", &argument->dim[i].extent);
        if (i + 1 < count && !*text) bad_size(argument, size);
    }
    const bool has_mins = count && text[-1] == '@';
    for (int i = 0; i < count && has_mins; i++) {
        text = take_number(argument, size, text, INT32_MIN, i + 1 < count ? "x" : "", &argument->dim[i].min);
        if (i + 1 < count && !*text) bad_size(argument, size);
    }
    if (count == 0) {
        fail(EXIT_USAGE, "usage", "--size %s: the buffer has no dimensions.", argument->meta->name);
    }
}

/* Whether the kernel requires the stride of its answer: that of dimension 0 always; in the others Halide answers with
 * planar strides if any will do. */
static bool stride_is_fixed(const struct argument *argument, int d) {
    int64_t planar = 1;
    for (int k = 0; k < d && planar <= INT32_MAX; k++) {
        planar *= argument->answer[k].extent;
    }
    return d == 0 || argument->answer[d].stride != planar;
}

static void order_dimensions(const struct argument *argument, bool fixed_first, int *order) {
    for (int i = 0; i < argument->meta->dimensions; i++) {
        const bool fixed = stride_is_fixed(argument, i);
        int k = i;
        for (; k > 0; k--) {
            const int other = order[k - 1];
            const bool other_fixed = stride_is_fixed(argument, other);
            const bool by_stride = argument->answer[i].stride < argument->answer[other].stride;
            if (!(fixed_first && fixed != other_fixed ? fixed : by_stride)) break;
            order[k] = other;
        }
        order[k] = i;
    }
}

/* Returns false if a stride that the kernel requires is impossible in this order. */
static bool set_strides_in_order(struct argument *argument, const int *order) {
    bool as_wanted = true;
    int64_t stride = 1;
    for (int k = 0; k < argument->meta->dimensions; k++) {
        const int d = order[k];
        const int32_t wanted = argument->answer[d].stride;
        if (wanted > stride) stride = wanted;
        if (stride != wanted && stride_is_fixed(argument, d)) as_wanted = false;
        if (stride > INT32_MAX) {
            fail(EXIT_RESOURCES, "memory", "The buffer '%s' is too large: a stride does not fit into 32 bits.",
                 argument->meta->name);
        }
        argument->dim[d].stride = (int32_t)stride;
        stride *= argument->dim[d].extent > 0 ? argument->dim[d].extent : 1;
    }
    return as_wanted;
}

/* Sets strides without gaps, in the order of the strides of the kernel's answer; a larger stride of the answer is kept.
 * In a small buffer a row can be shorter than the stride of an interleaved pixel; then the dimensions whose stride the
 * kernel requires come first. */
static void set_strides(struct argument *argument) {
    int order[MAX_DIMENSIONS];
    order_dimensions(argument, false, order);
    if (set_strides_in_order(argument, order)) return;
    order_dimensions(argument, true, order);
    if (set_strides_in_order(argument, order)) return;
    order_dimensions(argument, false, order);
    set_strides_in_order(argument, order);
}

static void prepare_buffer(struct argument *argument, const struct options *options) {
    const struct halide_filter_argument_t *meta = argument->meta;
    if (meta->dimensions < 0 || meta->dimensions > MAX_DIMENSIONS) {
        fail(EXIT_USAGE, "usage", "The buffer '%s' has %d dimensions; at most %d are supported.", meta->name,
             (int)meta->dimensions, MAX_DIMENSIONS);
    }
    const struct override *size = find_override(&options->sizes, meta->name);
    const struct override *file = find_override(&options->inputs, meta->name);
    if (size && file && size->is_default == file->is_default) {
        fail(EXIT_USAGE, "usage", "The input '%s' takes its size from its file: remove --size.", meta->name);
    }
    /* What the program is called with wins over what it was built with. */
    if (size && file && file->is_default) file = NULL;
    if (file) size = NULL;
    argument->input_file = file ? file->value : NULL;
    argument->buffer.type = meta->type;
    argument->buffer.dimensions = meta->dimensions;
    if (argument->input_file) {
        read_input_shape(argument);
    } else {
        take_estimates(argument, size != NULL);
        if (size) take_size(argument, size->value);
    }
    memcpy(argument->requested, argument->dim, sizeof argument->dim);
    set_strides(argument);
}

static bool same_signature(const struct halide_filter_metadata_t *a, const struct halide_filter_metadata_t *b) {
    if (a->version != b->version || a->num_arguments != b->num_arguments) return false;
    for (int i = 0; i < a->num_arguments; i++) {
        const struct halide_filter_argument_t *x = &a->arguments[i], *y = &b->arguments[i];
        if (x->kind != y->kind || x->dimensions != y->dimensions || x->type.code != y->type.code ||
            x->type.bits != y->type.bits || !names_agree(x->name, strlen(x->name), y->name)) {
            return false;
        }
    }
    return true;
}

static bool has_estimate(const struct halide_filter_argument_t *meta) {
    if (meta->kind == halide_argument_kind_input_scalar) return meta->scalar_estimate != NULL;
    for (int i = 0; i < 2 * meta->dimensions; i++) {
        if (!meta->buffer_estimates || !meta->buffer_estimates[i]) return false;
    }
    return true;
}

/* A generator may give its estimates only to autoschedulers. Then a kernel with its manual schedule has none, and takes
 * those of another schedule of the same pipeline in this executable. */
static const struct halide_filter_argument_t *find_estimate(const struct halide_filter_metadata_t *meta, int index) {
    const struct halide_filter_argument_t *own = &meta->arguments[index];
    for (int k = 0; k < runner_kernel_count && !has_estimate(own); k++) {
        const struct halide_filter_metadata_t *other = runner_kernels[k].metadata();
        if (same_signature(meta, other) && has_estimate(&other->arguments[index])) return &other->arguments[index];
    }
    return own;
}

void prepare_arguments(struct invocation *invocation, const struct runner_kernel *kernel,
                       const struct options *options) {
    memset(invocation, 0, sizeof *invocation);
    invocation->kernel = kernel;
    invocation->meta = kernel->metadata();
    if (invocation->meta->version != 1 || invocation->meta->num_arguments > MAX_ARGUMENTS) {
        fail(EXIT_HALIDE, "halide", "The kernel '%s' has metadata of version %d with %d arguments; expected 1 and <= %d.",
             kernel->name, (int)invocation->meta->version, (int)invocation->meta->num_arguments, MAX_ARGUMENTS);
    }
    invocation->count = invocation->meta->num_arguments;
    for (int i = 0; i < invocation->count; i++) {
        invocation->arguments[i].meta = &invocation->meta->arguments[i];
        invocation->arguments[i].estimated = find_estimate(invocation->meta, i);
        invocation->arguments[i].index = i;
    }
    check_names(invocation, &options->scalars, "--scalar");
    check_names(invocation, &options->sizes, "--size");
    check_names(invocation, &options->inputs, "--input");
    for (int i = 0; i < invocation->count; i++) {
        struct argument *argument = &invocation->arguments[i];
        if (is_buffer(argument)) {
            prepare_buffer(argument, options);
            invocation->argv[i] = &argument->buffer;
        } else {
            const struct override *value = find_override(&options->scalars, argument->meta->name);
            set_scalar(argument, value ? value->value : NULL);
            invocation->argv[i] = &argument->scalar;
        }
    }
}

static void widen(struct argument *argument, int d, const halide_dimension_t *wanted) {
    halide_dimension_t *dim = &argument->dim[d];
    if (wanted->extent <= 0) return;
    const int64_t end = (int64_t)dim->min + dim->extent, wanted_end = (int64_t)wanted->min + wanted->extent;
    const int64_t low = dim->extent <= 0 || wanted->min < dim->min ? wanted->min : dim->min;
    const int64_t high = dim->extent <= 0 || wanted_end > end ? wanted_end : end;
    if (high - low > INT32_MAX) {
        fail(EXIT_RESOURCES, "memory", "The kernel requires dimension %d of '%s' from %lld to %lld.", d,
             argument->meta->name, (long long)low, (long long)high);
    }
    dim->min = (int32_t)low;
    dim->extent = (int32_t)(high - low);
}

/* An answer without a part of the requested output is a fixed shape, which wins over wrong estimates. */
static void obey(struct argument *argument) {
    bool leaves_out = false;
    for (int d = 0; d < argument->meta->dimensions; d++) {
        const halide_dimension_t *asked = &argument->requested[d], *answer = &argument->answer[d];
        if (answer->extent <= 0) return;
        const int64_t end = (int64_t)asked->min + asked->extent, answer_end = (int64_t)answer->min + answer->extent;
        if (answer->min > asked->min || answer_end < end) leaves_out = true;
    }
    if (!leaves_out) return;
    memcpy(argument->dim, argument->answer, sizeof argument->dim);
    memcpy(argument->requested, argument->answer, sizeof argument->requested);
}

/* Adopts the kernel's answer; returns whether that changed anything. */
static bool adopt_answer(struct argument *argument, bool exact_outputs) {
    halide_dimension_t before[MAX_DIMENSIONS];
    memcpy(before, argument->dim, sizeof before);
    const bool is_exact = is_output(argument) && exact_outputs;
    if (is_output(argument) && !is_exact) obey(argument);
    for (int d = 0; d < argument->meta->dimensions && !argument->input_file && !is_exact; d++) {
        widen(argument, d, &argument->answer[d]);
    }
    set_strides(argument);
    return memcmp(before, argument->dim, sizeof before) != 0;
}

void start_from_reference(struct invocation *invocation) {
    for (int i = 0; i < invocation->count; i++) {
        struct argument *argument = &invocation->arguments[i];
        if (!argument->has_reference || argument->input_file) continue;
        for (int d = 0; d < argument->meta->dimensions; d++) {
            widen(argument, d, &argument->reference[d]);
        }
        set_strides(argument);
    }
}

void refuse_wider_inputs(const struct invocation *invocation) {
    for (int i = 0; i < invocation->count; i++) {
        const struct argument *argument = &invocation->arguments[i];
        for (int d = 0; d < argument->meta->dimensions && argument->has_reference; d++) {
            const halide_dimension_t *own = &argument->dim[d], *other = &argument->reference[d];
            if (own->min == other->min && own->extent == other->extent) continue;
            fail(EXIT_HALIDE, "halide",
                 "The kernel '%s' requires a larger input '%s' than the reference: from %d to %d in dimension %d, not from "
                 "%d to %d. Its output then differs, and it refuses the smaller input.",
                 invocation->kernel->name, argument->meta->name, (int)own->min, (int)(own->min + own->extent - 1), d,
                 (int)other->min, (int)(other->min + other->extent - 1));
        }
    }
}

void ask_kernel_for_shapes(struct invocation *invocation, bool exact_outputs) {
    bool changed = true;
    /* An answer can depend on the shape of another buffer: query until nothing changes. */
    for (int round = 0; round < MAX_QUERIES && changed; round++) {
        for (int i = 0; i < invocation->count; i++) {
            struct argument *argument = &invocation->arguments[i];
            memcpy(argument->answer, argument->dim, sizeof argument->answer);
            argument->buffer.dim = argument->answer;
            argument->buffer.host = NULL;
        }
        call_once(invocation);
        changed = false;
        for (int i = 0; i < invocation->count; i++) {
            if (!is_buffer(&invocation->arguments[i])) continue;
            if (adopt_answer(&invocation->arguments[i], exact_outputs)) changed = true;
        }
    }
    if (changed) {
        fail(EXIT_HALIDE, "halide",
             "The kernel '%s' requires larger buffers whenever it gets larger ones: its schedule was made for a larger "
             "output. Give a larger --size, or none.",
             invocation->kernel->name);
    }
    for (int i = 0; i < invocation->count; i++) {
        invocation->arguments[i].buffer.dim = invocation->arguments[i].dim;
    }
}
