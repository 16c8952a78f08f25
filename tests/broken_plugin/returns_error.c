/* SPDX-License-Identifier: Apache-2.0
 *
 * returns_error: says that it failed, by an error number.
 */
#include <errno.h>

#include "sound.h"

static int run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *state, void *scratch)
{
    sound_run(problem, args, span, phase, state, scratch);
    return -EIO;
}

const struct attn_kernel *const *attn_kernels(uint32_t *abi)
{
    return sound_table(sound_kernel("returns_error", "returns -EIO", run), abi);
}
