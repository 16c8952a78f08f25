/* SPDX-License-Identifier: Apache-2.0
 *
 * closes_files: closes the first files of its process, the standard ones among them.
 */
#include <unistd.h>

#include "sound.h"

static int run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *state, void *scratch)
{
    for (int fd = 0; fd <= 20; fd++)
        close(fd);
    return sound_run(problem, args, span, phase, state, scratch);
}

const struct attn_kernel *const *attn_kernels(uint32_t *abi)
{
    return sound_table(sound_kernel("closes_files", "closes file descriptors 0 to 20", run), abi);
}
