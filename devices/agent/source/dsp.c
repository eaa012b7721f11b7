/* A phone's Hexagon DSP: whether a program may open it, and the signature that lets it run programs of ours. */
#include <dirent.h>
#include <string.h>
#include <unistd.h>

#include "agent.h"

enum { PATH_BYTES = 512 };

/* FastRPC's device files, as kernels and Qualcomm's own library have called them. */
static const char *const NODES[] = {"/dev/fastrpc-cdsp", "/dev/fastrpc-cdsp-secure", "/dev/fastrpc-adsp",
                                    "/dev/fastrpc-adsp-secure", "/dev/adsprpc-smd", "/dev/adsprpc-smd-secure"};
/* Where the Hexagon SDK's signer puts a device's signature, and Halide's scripts look for it. */
static const char *const SIGNATURE_FOLDERS[] = {"/vendor/lib/rfsa/dsp/testsig", "/vendor/lib/rfsa/adsp",
                                                "/system/lib/rfsa/adsp"};
static const char SIGNATURE[] = "testsig";

static void event_node(const char *node) {
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s%s", DEVICE_ROOT, node);
    if (access(path, F_OK) != 0) return;
    event_open(NULL, '{');
    event_string("path", node);
    event_boolean("usable", access(path, R_OK) == 0);
    event_close('}');
}

static bool holds_signature(const char *folder) {
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s%s", DEVICE_ROOT, folder);
    DIR *files = opendir(path);
    const struct dirent *file = NULL;
    if (!files) return false;
    while ((file = readdir(files)) && strncmp(file->d_name, SIGNATURE, sizeof SIGNATURE - 1) != 0) {
    }
    closedir(files);
    return file != NULL;
}

void event_dsp(void) {
    const char *signed_in = NULL;
    event_open("dsp", '{');
    event_open("nodes", '[');
    for (size_t i = 0; i < sizeof NODES / sizeof *NODES; i++) {
        event_node(NODES[i]);
    }
    event_close(']');
    for (size_t i = 0; i < sizeof SIGNATURE_FOLDERS / sizeof *SIGNATURE_FOLDERS && !signed_in; i++) {
        if (holds_signature(SIGNATURE_FOLDERS[i])) signed_in = SIGNATURE_FOLDERS[i];
    }
    event_string("signature_folder", signed_in);
    event_close('}');
}
