/* Unpacks a file that was sent compressed (raw DEFLATE, RFC 1951). The input is not trusted. */
#include <errno.h>
#include <setjmp.h>
#include <string.h>

#include "agent.h"

enum { WINDOW_BYTES = 1 << 15, LONGEST_CODE_BITS = 15, LITERALS = 288, DISTANCES = 30 };

struct inflater {
    FILE *input, *output;
    uint32_t bits; /* the next ones, lowest first */
    int bit_count;
    uint8_t window[WINDOW_BYTES]; /* a ring of the last bytes that came out */
    uint64_t total_bytes;         /* all that came out */
    uint64_t most_bytes;
    jmp_buf given_up;
};

/* A canonical Huffman code: how many codes there are of each length, and the symbols in the order of their codes. */
struct code {
    uint16_t counts[LONGEST_CODE_BITS + 1];
    uint16_t symbols[LITERALS];
};

/* Ends inflate_file. The reason is an errno of a file, or 0 where the input is damaged, too long or too short. */
static _Noreturn void give_up(struct inflater *in, int reason) {
    errno = reason;
    longjmp(in->given_up, 1);
}

static uint8_t next_byte(struct inflater *in) {
    const int byte = getc_unlocked(in->input);
    if (byte == EOF) give_up(in, ferror(in->input) ? errno : 0);
    return (uint8_t)byte;
}

static uint32_t take_bits(struct inflater *in, int count) {
    for (; in->bit_count < count; in->bit_count += 8) {
        in->bits |= (uint32_t)next_byte(in) << in->bit_count;
    }
    const uint32_t taken = in->bits & ((1u << count) - 1);
    in->bits >>= count;
    in->bit_count -= count;
    return taken;
}

static void put_byte(struct inflater *in, uint8_t byte) {
    if (in->total_bytes == in->most_bytes) give_up(in, 0);
    in->window[in->total_bytes++ % WINDOW_BYTES] = byte;
    if (putc_unlocked(byte, in->output) == EOF) give_up(in, errno);
    if (in->total_bytes % WINDOW_BYTES == 0) report_alive();
}

/* Gives up on too many codes for their lengths. An incomplete code is found out in use. */
static void make_code(struct inflater *in, struct code *code, const uint8_t *lengths, int symbols) {
    uint16_t places[LONGEST_CODE_BITS + 1];
    memset(code->counts, 0, sizeof code->counts);
    for (int s = 0; s < symbols; s++) code->counts[lengths[s]]++;
    int left = 1;
    places[1] = 0;
    for (int bits = 1; bits <= LONGEST_CODE_BITS; bits++) {
        left = 2 * left - code->counts[bits];
        if (left < 0) give_up(in, 0);
        if (bits < LONGEST_CODE_BITS) places[bits + 1] = (uint16_t)(places[bits] + code->counts[bits]);
    }
    for (int s = 0; s < symbols; s++) {
        if (lengths[s]) code->symbols[places[lengths[s]]++] = (uint16_t)s;
    }
}

static int take_symbol(struct inflater *in, const struct code *code) {
    int value = 0, first = 0, index = 0;
    for (int bits = 1; bits <= LONGEST_CODE_BITS; bits++) {
        value |= (int)take_bits(in, 1);
        const int count = code->counts[bits];
        if (value - count < first) return code->symbols[index + value - first];
        index += count;
        first = 2 * (first + count);
        value *= 2;
    }
    give_up(in, 0);
}

/* RFC 1951, 3.2.5. */
static void take_block(struct inflater *in, const struct code *literals, const struct code *distances) {
    static const uint16_t length_bases[] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                            31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
    static const uint8_t length_bits[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                          2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
    static const uint16_t distance_bases[] = {1,   2,   3,   4,   5,   7,    9,    13,   17,   25,   33,   49,   65,    97,    129,
                                              193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
    static const uint8_t distance_bits[] = {0, 0, 0, 0, 1, 1, 2, 2,  3,  3,  4,  4,  5,  5,  6,
                                            6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13};
    for (int symbol; (symbol = take_symbol(in, literals)) != 256;) {
        if (symbol < 256) {
            put_byte(in, (uint8_t)symbol);
            continue;
        }
        if (symbol > 285) give_up(in, 0);
        const int length = length_bases[symbol - 257] + (int)take_bits(in, length_bits[symbol - 257]);
        const int place = take_symbol(in, distances);
        if (place >= DISTANCES) give_up(in, 0);
        const uint32_t distance = distance_bases[place] + take_bits(in, distance_bits[place]);
        if (distance > in->total_bytes) give_up(in, 0);
        for (int i = 0; i < length; i++) put_byte(in, in->window[(in->total_bytes - distance) % WINDOW_BYTES]);
    }
}

static void take_stored(struct inflater *in) {
    in->bits = 0;
    in->bit_count = 0;
    const uint32_t length = take_bits(in, 16), complement = take_bits(in, 16);
    if (length != (~complement & 0xffff)) give_up(in, 0);
    for (uint32_t i = 0; i < length; i++) put_byte(in, next_byte(in));
}

static void take_fixed(struct inflater *in) {
    uint8_t lengths[LITERALS];
    struct code literals, distances;
    for (int s = 0; s < LITERALS; s++) lengths[s] = (uint8_t)(s < 144 ? 8 : s < 256 ? 9 : s < 280 ? 7 : 8);
    make_code(in, &literals, lengths, LITERALS);
    memset(lengths, 5, DISTANCES);
    make_code(in, &distances, lengths, DISTANCES);
    take_block(in, &literals, &distances);
}

static void take_dynamic(struct inflater *in) {
    static const uint8_t order[] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    uint8_t lengths[LITERALS + 32] = {0};
    struct code code, literals, distances;
    const int literal_count = (int)take_bits(in, 5) + 257, distance_count = (int)take_bits(in, 5) + 1;
    const int length_count = (int)take_bits(in, 4) + 4;
    for (int i = 0; i < length_count; i++) lengths[order[i]] = (uint8_t)take_bits(in, 3);
    if (literal_count > 286 || distance_count > DISTANCES) give_up(in, 0);
    make_code(in, &code, lengths, 19);
    memset(lengths, 0, sizeof lengths);
    for (int at = 0; at < literal_count + distance_count;) {
        const int symbol = take_symbol(in, &code);
        uint8_t length = (uint8_t)symbol;
        int times = 1;
        if (symbol == 16 && at == 0) give_up(in, 0);
        if (symbol >= 16) {
            length = symbol == 16 ? lengths[at - 1] : 0;
            times = symbol == 16 ? 3 + (int)take_bits(in, 2)
                    : symbol == 17 ? 3 + (int)take_bits(in, 3) : 11 + (int)take_bits(in, 7);
        }
        if (at + times > literal_count + distance_count) give_up(in, 0);
        for (; times > 0; times--) lengths[at++] = length;
    }
    make_code(in, &literals, lengths, literal_count);
    make_code(in, &distances, lengths + literal_count, distance_count);
    take_block(in, &literals, &distances);
}

bool inflate_file(FILE *input, FILE *output, uint64_t most_bytes) {
    static struct inflater in;
    in = (struct inflater){.input = input, .output = output, .most_bytes = most_bytes};
    if (setjmp(in.given_up)) return false;
    for (bool last = false; !last;) {
        last = take_bits(&in, 1);
        const uint32_t kind = take_bits(&in, 2);
        if (kind == 0) take_stored(&in);
        else if (kind == 1) take_fixed(&in);
        else if (kind == 2) take_dynamic(&in);
        else give_up(&in, 0);
    }
    return true;
}
