/* Lists the kernels of this executable. */
#include <string.h>

#include "runner.h"

const char *type_code_name(int code) {
    switch (code) {
    case halide_type_int: return "int";
    case halide_type_uint: return "uint";
    case halide_type_float: return "float";
    case halide_type_handle: return "handle";
    case halide_type_bfloat: return "bfloat";
    default: return "unknown";
    }
}

const char *kind_name(int kind) {
    switch (kind) {
    case halide_argument_kind_input_scalar: return "input_scalar";
    case halide_argument_kind_input_buffer: return "input_buffer";
    case halide_argument_kind_output_buffer: return "output_buffer";
    default: return "unknown";
    }
}

static void list_scalar(const char *key, const struct halide_scalar_value_t *value, struct halide_type_t type) {
    if (!value || type.code == halide_type_handle || type.code == halide_type_bfloat) {
        event_null(key);
    } else if (type.code == halide_type_float) {
        if (type.bits == 32) {
            event_number(key, value->u.f32);
        } else if (type.bits == 64) {
            event_number(key, value->u.f64);
        } else {
            event_null(key);
        }
    } else if (type.bits == 1) {
        event_boolean(key, value->u.b);
    } else if (type.code == halide_type_int) {
        event_integer(key, type.bits == 8    ? value->u.i8
                           : type.bits == 16 ? value->u.i16
                           : type.bits == 32 ? value->u.i32
                                             : value->u.i64);
    } else {
        event_unsigned(key, type.bits == 8    ? value->u.u8
                            : type.bits == 16 ? value->u.u16
                            : type.bits == 32 ? value->u.u32
                                              : value->u.u64);
    }
}

static void list_estimate(const int64_t *value) {
    if (value) {
        event_integer(NULL, *value);
    } else {
        event_null(NULL);
    }
}

static void list_argument(const struct halide_filter_argument_t *argument) {
    event_open(NULL, '{');
    event_string("name", argument->name);
    event_string("kind", kind_name(argument->kind));
    event_string("type_code", type_code_name(argument->type.code));
    event_integer("bits", argument->type.bits);
    event_integer("dimensions", argument->dimensions);
    if (argument->kind == halide_argument_kind_input_scalar) {
        list_scalar("default", argument->scalar_def, argument->type);
        list_scalar("estimate", argument->scalar_estimate, argument->type);
    } else if (argument->buffer_estimates) {
        event_open("estimates", '[');
        for (int i = 0; i < argument->dimensions; i++) {
            event_open(NULL, '[');
            list_estimate(argument->buffer_estimates[2 * i]);
            list_estimate(argument->buffer_estimates[2 * i + 1]);
            event_close(']');
        }
        event_close(']');
    } else {
        event_null("estimates");
    }
    event_close('}');
}

void list_kernels(void) {
    for (int i = 0; i < runner_kernel_count; i++) {
        const struct halide_filter_metadata_t *meta = runner_kernels[i].metadata();
        event_begin("kernel");
        event_string("name", runner_kernels[i].name);
        event_string("target", meta->target);
        event_open("arguments", '[');
        for (int k = 0; k < meta->num_arguments; k++) {
            list_argument(&meta->arguments[k]);
        }
        event_close(']');
        event_end();
    }
}
