/* SPDX-License-Identifier: Apache-2.0
 *
 * writes_files: writes into every file that its process has open, the harness's pipes among them.
 */
#include <unistd.h>

#include "sound.h"

static int run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *state, void *scratch)
{
    static const char garbage[] = "what is no JSON\n";
    for (int fd = 0; fd < 1024; fd++)
        if (write(fd, garbage, sizeof garbage - 1) < 0)
            continue;
    return sound_run(problem, args, span, phase, state, scratch);
}

const struct attn_kernel *const *attn_kernels(uint32_t *abi)
{
    return sound_table(sound_kernel("writes_files", "writes to file descriptors 0 to 1023", run), abi);
}
