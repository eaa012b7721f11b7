/* CRC-32 (that of zlib) and SHA-256 (FIPS 180-4). */
#include <string.h>

#include "agent.h"

uint32_t crc32_of(const void *data, size_t length) {
    const uint8_t *bytes = data;
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < length; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
        }
    }
    return ~crc;
}

static const uint32_t ROUND_CONSTANTS[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t word, int bits) { return word >> bits | word << (32 - bits); }

static void add_block(struct sha256 *hash, const uint8_t *block) {
    uint32_t schedule[64], v[8];
    for (int i = 0; i < 16; i++) {
        const uint8_t *word = block + 4 * i;
        schedule[i] = (uint32_t)word[0] << 24 | (uint32_t)word[1] << 16 | (uint32_t)word[2] << 8 | word[3];
    }
    for (int i = 16; i < 64; i++) {
        const uint32_t a = schedule[i - 15], b = schedule[i - 2];
        schedule[i] = schedule[i - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + schedule[i - 7] +
                      (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
    }
    memcpy(v, hash->state, sizeof v);
    for (int i = 0; i < 64; i++) {
        const uint32_t first = v[7] + (rotate(v[4], 6) ^ rotate(v[4], 11) ^ rotate(v[4], 25)) +
                               ((v[4] & v[5]) ^ (~v[4] & v[6])) + ROUND_CONSTANTS[i] + schedule[i];
        const uint32_t second = (rotate(v[0], 2) ^ rotate(v[0], 13) ^ rotate(v[0], 22)) +
                                ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += first;
        v[0] = first + second;
    }
    for (int i = 0; i < 8; i++) {
        hash->state[i] += v[i];
    }
}

void sha256_begin(struct sha256 *hash) {
    static const uint32_t START[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(hash->state, START, sizeof START);
    hash->length_bytes = 0;
}

void sha256_add(struct sha256 *hash, const void *data, size_t length) {
    const uint8_t *bytes = data;
    while (length > 0) {
        const size_t filled = hash->length_bytes % 64;
        const size_t taken = length < 64 - filled ? length : 64 - filled;
        memcpy(hash->block + filled, bytes, taken);
        hash->length_bytes += taken;
        bytes += taken;
        length -= taken;
        if (hash->length_bytes % 64 == 0) add_block(hash, hash->block);
    }
}

void sha256_end(struct sha256 *hash, char hex[SHA256_HEX_BYTES]) {
    const uint64_t length_bits = hash->length_bytes * 8;
    uint8_t length[8];
    for (int i = 0; i < 8; i++) {
        length[i] = (uint8_t)(length_bits >> (56 - 8 * i));
    }
    sha256_add(hash, "\x80", 1);
    while (hash->length_bytes % 64 != 56) {
        sha256_add(hash, "", 1);
    }
    sha256_add(hash, length, sizeof length);
    for (int i = 0; i < 8; i++) {
        snprintf(hex + 8 * i, 9, "%08x", (unsigned)hash->state[i]);
    }
}

void sha256_of(const char *text, char hex[SHA256_HEX_BYTES]) {
    struct sha256 hash;
    sha256_begin(&hash);
    sha256_add(&hash, text, strlen(text));
    sha256_end(&hash, hex);
}
