/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of peer programs; see peer_programs.h.
 */
#include "peer_programs.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "intern.h"

enum { FOLDERS = 4 };
#define ALL_DTYPES (ATTN_BIT(ATTN_F32) | ATTN_BIT(ATTN_BF16) | ATTN_BIT(ATTN_F16))

static const struct attn_kernel torch = {
    .abi = ATTN_ABI,
    .struct_size = sizeof torch,
    .name = "torch",
    .summary = "PyTorch on the CPU: scaled_dot_product_attention, or bmm, softmax, bmm where it has none",
    .rules = ATTN_BIT(ATTN_SCALED_DOT_PRODUCT),
    .dtypes = ALL_DTYPES,
    .caps = ATTN_CAP_OWN_THREADS,
};
static const struct attn_kernel onnxruntime = {
    .abi = ATTN_ABI,
    .struct_size = sizeof onnxruntime,
    .name = "onnxruntime",
    .summary = "ONNX Runtime on the CPU: MultiHeadAttention, GroupQueryAttention",
    .rules = ATTN_BIT(ATTN_SCALED_DOT_PRODUCT),
    .dtypes = ALL_DTYPES,
    .caps = ATTN_CAP_OWN_THREADS,
};
static const struct attn_kernel openvino = {
    .abi = ATTN_ABI,
    .struct_size = sizeof openvino,
    .name = "openvino",
    .summary = "OpenVINO's CPU plug-in: ScaledDotProductAttention",
    .rules = ATTN_BIT(ATTN_SCALED_DOT_PRODUCT),
    .dtypes = ALL_DTYPES,
    .caps = ATTN_CAP_OWN_THREADS,
};

const struct attn_kernel *const peer_programs[] = {&torch, &onnxruntime, &openvino, NULL};

const char *peer_folder(const char *relative)
{
    const char *folders[FOLDERS];
    const int count = config_folders(folders, FOLDERS);
    for (int f = 0; f < count; f++) { /* beside configs/, in a checkout as in an installation */
        char real[PATH_MAX];
        if (realpath(intern_format("%s/../%s", folders[f], relative), real) && access(real, R_OK) == 0)
            return intern(real);
    }
    return NULL;
}

const struct registry_origin *peer_program_origin(const char *name)
{
    enum { PROGRAMS = sizeof peer_programs / sizeof *peer_programs - 1 };
    static struct registry_origin origins[PROGRAMS];
    for (size_t p = 0; p < PROGRAMS; p++) {
        if (strcmp(peer_programs[p]->name, name) != 0)
            continue;
        if (!origins[p].command) {
            const char *script = peer_folder(intern_format("scripts/peers/%s.py", name));
            const char *folder = peer_folder("build/peers/venv/bin");
            const char *python = folder ? intern_format("%s/python", folder) : "python3";
            origins[p] = (struct registry_origin){REGISTRY_PEER, intern("peer"), NULL};
            origins[p].command =
                json_pack("[s,s]", python, script ? script : intern_format("scripts/peers/%s.py", name));
        }
        return &origins[p];
    }
    return NULL;
}
