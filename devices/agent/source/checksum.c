/* CRC-32 (that of zlib), and SHA-256 in hexadecimal. */
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

void sha256_end(SHA2_CTX *hash, char hex[SHA256_HEX_BYTES]) {
    uint8_t digest[SHA256_DIGEST_LENGTH];
    SHA256Final(digest, hash);
    for (size_t i = 0; i < sizeof digest; i++) {
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    }
}

void sha256_of(const char *text, char hex[SHA256_HEX_BYTES]) {
    SHA2_CTX hash;
    SHA256Init(&hash);
    SHA256Update(&hash, (const uint8_t *)text, strlen(text));
    sha256_end(&hash, hex);
}
