/* What the device is: for its profile, and for people. */
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "agent.h"

enum { MAX_CACHES_OF_CORE = 10, MAX_CACHES = 4096, NAME_BYTES = 64 };

/* A core's cache, and the cores that share it. */
struct cache {
    int level;
    char type[16];
    double size_bytes;
    char shared[256];
};

/* open (session, lease fields, and first: all else that had this token is dead): takes the lease, makes the session's
 * folder, and deletes old ones. */
void command_open(const struct request *request) {
    struct lease lease;
    struct utsname system;
    char boot[BOOT_BYTES];
    const struct slot slot = need_lease(request, &lease);
    close(slot.folder);
    remove_old_sessions(request, find_field(request, "first") != NULL);
    close(open_session(request));
    if (uname(&system) != 0) fail_io("uname fails");
    boot_identity(boot);
    event_begin("result");
    event_string("boot", boot);
    event_string("architecture", system.machine);
    event_end();
}

/* Bytes of '32K' or '8M'. */
static double parse_size(const char *text) {
    char *end;
    const double size = strtod(text, &end);
    return *end == 'K' ? size * 1024 : *end == 'M' ? size * 1024 * 1024 : size;
}

static bool read_cache(int core, int index, struct cache *cache) {
    char name[NAME_BYTES], size[32];
    snprintf(name, sizeof name, "cache/index%d/level", index);
    const double level = read_core_number(core, name);
    if (!isfinite(level)) return false;
    cache->level = level >= 0 && level < 100 ? (int)level : 0;
    snprintf(name, sizeof name, "cache/index%d/type", index);
    if (!read_core_text(core, name, cache->type, sizeof cache->type)) return false;
    snprintf(name, sizeof name, "cache/index%d/shared_cpu_list", index);
    if (!read_core_text(core, name, cache->shared, sizeof cache->shared)) return false;
    snprintf(name, sizeof name, "cache/index%d/size", index);
    cache->size_bytes = read_core_text(core, name, size, sizeof size) ? parse_size(size) : 0;
    return cache->size_bytes > 0;
}

/* The cores of a list such as '0-3,8'. */
static void event_core_list(const char *key, const char *text) {
    event_open(key, '[');
    while (*text) {
        char *end;
        const unsigned long first = strtoul(text, &end, 10);
        unsigned long last = first;
        if (end == text) break;
        if (*end == '-') last = strtoul(end + 1, &end, 10);
        for (unsigned long core = first; core <= last && core < MAX_CORES; core++) {
            event_integer(NULL, (int64_t)core);
        }
        if (*end != ',') break;
        text = end + 1;
    }
    event_close(']');
}

/* Every cache once, however many cores share it. */
static void event_caches(void) {
    static struct cache seen[MAX_CACHES];
    int count = 0;
    event_open("caches", '[');
    for (int core = 0; core < core_count(); core++) {
        for (int index = 0; index < MAX_CACHES_OF_CORE && count < MAX_CACHES; index++) {
            struct cache *cache = &seen[count];
            int same = 0;
            if (!read_cache(core, index, cache)) continue;
            while (same < count && (seen[same].level != cache->level || strcmp(seen[same].type, cache->type) != 0 ||
                                    strcmp(seen[same].shared, cache->shared) != 0)) {
                same++;
            }
            if (same < count) continue;
            count++;
            event_open(NULL, '{');
            event_integer("level", cache->level);
            event_string("type", cache->type);
            event_integer("size_bytes", (int64_t)cache->size_bytes);
            event_core_list("shared_cores", cache->shared);
            event_close('}');
        }
    }
    event_close(']');
}

/* probe: null for what cannot be found out. */
void command_probe(const struct request *request) {
    char boot[BOOT_BYTES];
    (void)request;
    boot_identity(boot);
    event_begin("result");
    event_machine();
    event_cores("cores", NULL);
    event_caches();
    event_temperatures("temperature_zones");
    event_dsp();
    event_string("boot", boot);
    event_end();
}
