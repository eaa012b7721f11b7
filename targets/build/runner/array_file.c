/* Raw arrays in files, little-endian:
 *
 *     8 bytes   "HLARRAY1"
 *     uint8     type code (0 int, 1 uint, 2 float, 4 bfloat), uint8 bits, uint16 length of the name
 *     uint32    dimensions
 *     int32     min, extent of every dimension
 *     bytes     the name, not terminated
 *     bytes     the elements without gaps, dimension 0 fastest; a boolean is a byte 0 or 1
 *
 * An input file is one array, whose name does not matter. A reference file is one named array per output of the kernel,
 * in the order of the arguments, then one per input: int32, 2 x dimensions, the first coordinate and the extent that
 * the reference had of each. A kernel may compute other elements than the reference: then those are read that both
 * compute. Files come from elsewhere, so everything in them is checked. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "runner.h"

static const char magic[8] = {'H', 'L', 'A', 'R', 'R', 'A', 'Y', '1'};

struct header {
    struct halide_type_t type;
    int32_t dimensions;
    halide_dimension_t dim[MAX_DIMENSIONS];
    char name[256];
};

static FILE *open_to_read(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) fail(EXIT_RESOURCES, "io", "%s cannot be read: %s.", path, strerror(errno));
    return file;
}

static void read_exactly(FILE *file, const char *path, void *data, size_t bytes) {
    if (bytes && fread(data, 1, bytes, file) != bytes) {
        fail(EXIT_RESOURCES, "io", "%s %s.", path, ferror(file) ? "cannot be read to its end" : "ends too early");
    }
}

static void read_box(FILE *file, const char *path, halide_dimension_t *box, int dimensions) {
    for (int d = 0; d < dimensions; d++) {
        int32_t shape[2];
        read_exactly(file, path, shape, sizeof shape);
        if (shape[1] < 0 || (int64_t)shape[0] + shape[1] > INT32_MAX) {
            fail(EXIT_RESOURCES, "io", "%s is damaged: dimension %d has extent %d from %d.", path, d, (int)shape[1],
                 (int)shape[0]);
        }
        box[d].min = shape[0];
        box[d].extent = shape[1];
    }
}

static void read_header(FILE *file, const char *path, struct header *header) {
    uint8_t start[16];
    uint16_t name_length;
    uint32_t dimensions;
    memset(header, 0, sizeof *header);
    read_exactly(file, path, start, sizeof start);
    memcpy(&name_length, start + 10, sizeof name_length);
    memcpy(&dimensions, start + 12, sizeof dimensions);
    if (memcmp(start, magic, sizeof magic) != 0) {
        fail(EXIT_RESOURCES, "io", "%s is not a raw array file: it does not start with HLARRAY1.", path);
    }
    if (dimensions > MAX_DIMENSIONS || name_length >= sizeof header->name) {
        fail(EXIT_RESOURCES, "io", "%s is damaged: an array of %u dimensions with a name of %u bytes.", path,
             (unsigned)dimensions, (unsigned)name_length);
    }
    header->type.code = start[8];
    header->type.bits = start[9];
    header->type.lanes = 1;
    header->dimensions = (int32_t)dimensions;
    read_box(file, path, header->dim, header->dimensions);
    read_exactly(file, path, header->name, name_length);
}

static bool same_type(const struct header *header, const struct argument *argument) {
    const struct halide_type_t type = argument->meta->type;
    return header->type.code == type.code && header->type.bits == type.bits &&
           header->dimensions == argument->meta->dimensions;
}

static FILE *open_input(struct argument *argument, struct header *header) {
    FILE *file = open_to_read(argument->input_file);
    read_header(file, argument->input_file, header);
    if (!same_type(header, argument)) {
        const struct halide_type_t type = argument->meta->type;
        fail(EXIT_USAGE, "usage", "%s holds %s%d in %d dimensions; the input '%s' is %s%d in %d dimensions.",
             argument->input_file, type_code_name(header->type.code), header->type.bits, (int)header->dimensions,
             argument->meta->name, type_code_name(type.code), type.bits, (int)argument->meta->dimensions);
    }
    return file;
}

void read_input_shape(struct argument *argument) {
    struct header header;
    fclose(open_input(argument, &header));
    memcpy(argument->dim, header.dim, sizeof argument->dim);
}

static void expect_end(FILE *file, const char *path) {
    if (fgetc(file) != EOF) fail(EXIT_RESOURCES, "io", "%s continues after its last array.", path);
    fclose(file);
}

static void *allocate_bytes(size_t bytes, const char *what) {
    void *data = malloc(bytes ? bytes : 1);
    if (!data) fail(EXIT_RESOURCES, "memory", "Not enough memory for %s.", what);
    return data;
}

/* Copies a row between dense memory and the argument's row. */
static void copy_row(uint8_t *to, int64_t to_step, const uint8_t *from, int64_t from_step, int64_t count,
                     size_t element) {
    if (to_step == from_step && to_step == (int64_t)element) {
        memcpy(to, from, (size_t)count * element);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        memcpy(to + i * to_step, from + i * from_step, element);
    }
}

void read_input_data(struct argument *argument) {
    struct header header;
    FILE *file = open_input(argument, &header);
    if (memcmp(header.dim, argument->requested, sizeof header.dim) != 0) {
        fail(EXIT_RESOURCES, "io", "%s changed while it was read.", argument->input_file);
    }
    const size_t element = element_bytes(argument->meta->type);
    const int64_t width = row_width(argument, argument->requested);
    const uint64_t rows = row_count(argument, argument->requested);
    uint8_t *line = allocate_bytes((size_t)width * element, argument->input_file);
    for (uint64_t row = 0; row < rows; row++) {
        int32_t coordinates[MAX_DIMENSIONS];
        read_exactly(file, argument->input_file, line, (size_t)width * element);
        copy_row(row_address(argument, argument->requested, row, coordinates), row_step_bytes(argument), line,
                 (int64_t)element, width, element);
    }
    free(line);
    expect_end(file, argument->input_file);
    argument->buffer.flags |= halide_buffer_flag_host_dirty;
}

static void write_header(FILE *file, uint8_t type_code, uint8_t bits, int dimension_count,
                         const halide_dimension_t *dim, const char *name) {
    const uint16_t name_length = (uint16_t)strlen(name);
    const uint32_t dimensions = (uint32_t)dimension_count;
    const uint8_t type[2] = {type_code, bits};
    fwrite(magic, 1, sizeof magic, file);
    fwrite(type, 1, sizeof type, file);
    fwrite(&name_length, 1, sizeof name_length, file);
    fwrite(&dimensions, 1, sizeof dimensions, file);
    for (uint32_t d = 0; d < dimensions; d++) {
        const int32_t shape[2] = {dim[d].min, dim[d].extent};
        fwrite(shape, 1, sizeof shape, file);
    }
    fwrite(name, 1, name_length, file);
}

static void write_input_shape(FILE *file, const struct argument *argument) {
    const halide_dimension_t dim[2] = {{.extent = 2}, {.extent = argument->meta->dimensions}};
    write_header(file, halide_type_int, 32, 2, dim, argument->meta->name);
    for (int d = 0; d < argument->meta->dimensions; d++) {
        const int32_t shape[2] = {argument->dim[d].min, argument->dim[d].extent};
        fwrite(shape, 1, sizeof shape, file);
    }
}

static void write_array(FILE *file, const struct argument *argument) {
    const struct halide_filter_argument_t *meta = argument->meta;
    const size_t element = element_bytes(meta->type);
    write_header(file, meta->type.code, meta->type.bits, meta->dimensions, argument->requested, meta->name);
    const int64_t width = row_width(argument, argument->requested);
    const uint64_t rows = row_count(argument, argument->requested);
    uint8_t *line = allocate_bytes((size_t)width * element, meta->name);
    for (uint64_t row = 0; row < rows; row++) {
        int32_t coordinates[MAX_DIMENSIONS];
        copy_row(line, (int64_t)element, row_address(argument, argument->requested, row, coordinates),
                 row_step_bytes(argument), width, element);
        fwrite(line, element, (size_t)width, file);
    }
    free(line);
}

void write_reference_file(struct invocation *invocation, const char *path) {
    /* Written to another file and renamed, so that readers see all of it or nothing. */
    const size_t length = strlen(path) + sizeof ".part";
    char *part = allocate_bytes(length, path);
    snprintf(part, length, "%s.part", path);
    FILE *file = fopen(part, "wb");
    if (!file) fail(EXIT_RESOURCES, "io", "%s cannot be written: %s.", part, strerror(errno));
    for (int i = 0; i < invocation->count; i++) {
        if (is_output(&invocation->arguments[i])) write_array(file, &invocation->arguments[i]);
    }
    for (int i = 0; i < invocation->count; i++) {
        if (is_input_buffer(&invocation->arguments[i])) write_input_shape(file, &invocation->arguments[i]);
    }
    const bool failed = ferror(file) != 0;
    if (fclose(file) != 0 || failed || rename(part, path) != 0) {
        const int error = errno;
        remove(part);
        fail(EXIT_RESOURCES, "io", "%s cannot be written: %s.", path, strerror(error));
    }
    free(part);
}

FILE *open_reference(const char *path) {
    return open_to_read(path);
}

static bool is_shape_of(const struct header *header, const struct argument *argument) {
    return header->type.code == halide_type_int && header->type.bits == 32 && header->dimensions == 2 &&
           header->dim[0].extent == 2 && header->dim[1].extent == argument->meta->dimensions &&
           names_agree(header->name, strlen(header->name), argument->meta->name);
}

static void read_input_shape_of_reference(FILE *file, const char *path, struct argument *argument) {
    read_box(file, path, argument->reference, argument->meta->dimensions);
    argument->has_reference = true;
}

/* Returns how many bytes the elements take; no real array takes more than 2^43. */
static uint64_t size_bytes(const struct header *header, const char *path) {
    const uint64_t limit = (uint64_t)1 << 43, most = LONG_MAX < limit ? (uint64_t)LONG_MAX : limit;
    uint64_t bytes = (header->type.bits + 7u) / 8u;
    for (int d = 0; d < header->dimensions; d++) {
        const uint64_t extent = (uint64_t)header->dim[d].extent;
        if (extent == 0) return 0;
        bytes = bytes > most / extent ? most + 1 : bytes * extent;
    }
    if (bytes > most) fail(EXIT_RESOURCES, "io", "%s is damaged: the array '%s' is too large.", path, header->name);
    return bytes;
}

static void skip_elements(FILE *file, const char *path, const struct header *header) {
    if (fseek(file, (long)size_bytes(header, path), SEEK_CUR) != 0) {
        fail(EXIT_RESOURCES, "io", "%s cannot be read to its end.", path);
    }
}

void read_input_shapes_of_reference(struct invocation *invocation, const char *path) {
    FILE *file = open_to_read(path);
    int left = 0; /* The comparison of outputs reports further arrays, and those of another kernel. */
    for (int i = 0; i < invocation->count; i++) left += is_buffer(&invocation->arguments[i]);
    for (int next; left > 0 && (next = fgetc(file)) != EOF; left--) {
        struct header header;
        struct argument *found = NULL;
        ungetc(next, file);
        read_header(file, path, &header);
        for (int i = 0; i < invocation->count && !found; i++) {
            struct argument *argument = &invocation->arguments[i];
            if (is_input_buffer(argument) && is_shape_of(&header, argument)) found = argument;
        }
        if (found) {
            read_input_shape_of_reference(file, path, found);
        } else {
            skip_elements(file, path, &header);
        }
    }
    fclose(file);
}

/* Skips elements by reading them, so that a file that is too short is found. */
static void read_past(FILE *file, const char *path, uint64_t elements, size_t element) {
    uint8_t skipped[1024];
    for (uint64_t left = elements * element; left > 0;) {
        const size_t bytes = left < sizeof skipped ? (size_t)left : sizeof skipped;
        read_exactly(file, path, skipped, bytes);
        left -= bytes;
    }
}

/* Sets `common` to what is in both boxes; its extents are 0 where they have nothing in common. */
static void take_common_box(halide_dimension_t *common, const halide_dimension_t *a, const halide_dimension_t *b,
                            int dimensions) {
    memset(common, 0, MAX_DIMENSIONS * sizeof *common);
    for (int d = 0; d < dimensions; d++) {
        const int64_t a_end = (int64_t)a[d].min + a[d].extent, b_end = (int64_t)b[d].min + b[d].extent;
        const int64_t end = a_end < b_end ? a_end : b_end;
        common[d].min = a[d].min > b[d].min ? a[d].min : b[d].min;
        common[d].extent = end > common[d].min ? (int32_t)(end - common[d].min) : 0;
    }
}

/* Whether a row is in the box. */
static bool is_in(const halide_dimension_t *box, const int32_t *coordinates, int dimensions) {
    for (int d = 1; d < dimensions; d++) {
        const int64_t place = (int64_t)coordinates[d] - box[d].min;
        if (place < 0 || place >= box[d].extent) return false;
    }
    return true;
}

/* Reads all elements of the reference, and keeps those that are common. */
static void read_common_elements(FILE *file, const char *path, const struct argument *argument,
                                 struct reference_array *array) {
    const int dimensions = argument->meta->dimensions;
    const size_t element = element_bytes(argument->meta->type);
    const uint64_t width = (uint64_t)row_width(argument, array->box), rows = row_count(argument, array->box);
    const uint64_t wanted = (uint64_t)row_width(argument, array->common);
    const bool is_part = wanted > 0 && wanted < width;
    const uint64_t before = is_part ? (uint64_t)((int64_t)array->common[0].min - array->box[0].min) : 0;
    uint8_t *next = array->data;
    for (uint64_t row = 0; row < rows; row++) {
        int32_t coordinates[MAX_DIMENSIONS];
        row_coordinates(argument, array->box, row, coordinates);
        if (is_in(array->common, coordinates, dimensions)) {
            read_past(file, path, before, element);
            read_exactly(file, path, next, (size_t)wanted * element);
            read_past(file, path, width - before - wanted, element);
            next += (size_t)wanted * element;
        } else {
            read_past(file, path, width, element);
        }
    }
}

void read_reference_array(FILE *file, const char *path, const struct argument *argument,
                          struct reference_array *array) {
    struct header header;
    read_header(file, path, &header);
    if (!same_type(&header, argument) || !names_agree(header.name, strlen(header.name), argument->meta->name)) {
        const struct halide_type_t type = argument->meta->type;
        fail(EXIT_RESOURCES, "reference",
             "%s was made for another kernel: it has '%s' (%s%d, %d dimensions), but the next output is '%s' (%s%d, %d "
             "dimensions).",
             path, header.name, type_code_name(header.type.code), header.type.bits, (int)header.dimensions,
             argument->meta->name, type_code_name(type.code), type.bits, (int)argument->meta->dimensions);
    }
    size_bytes(&header, path);
    memcpy(array->box, header.dim, sizeof array->box);
    take_common_box(array->common, array->box, argument->requested, argument->meta->dimensions);
    const uint64_t elements = row_count(argument, array->common) * (uint64_t)row_width(argument, array->common);
    array->data = allocate_bytes((size_t)elements * element_bytes(argument->meta->type), path);
    read_common_elements(file, path, argument, array);
}

void close_reference(FILE *file, const char *path, const struct invocation *invocation) {
    for (int i = 0; i < invocation->count; i++) {
        struct header header;
        if (!is_input_buffer(&invocation->arguments[i])) continue;
        read_header(file, path, &header);
        skip_elements(file, path, &header);
    }
    expect_end(file, path);
}
