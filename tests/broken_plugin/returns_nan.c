/* SPDX-License-Identifier: Apache-2.0
 *
 * returns_nan: its output is NaN, which no comparison with a bound finds greater.
 */
#include "sound.h"

static int run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *state, void *scratch)
{
    (void)phase;
    (void)state;
    (void)scratch;
    for (int64_t b = span->b0; b < span->b1; b++)
        for (int64_t h = span->h0; h < span->h1; h++)
            for (int64_t i = span->q0; i < span->q1; i++)
                for (int64_t d = 0; d < problem->D_v; d++)
                    ((float *)args->out.data)[base_offset(&args->out, b, h, i) + d] = NAN;
    return 0;
}

const struct attn_kernel *const *attn_kernels(uint32_t *abi)
{
    return sound_table(sound_kernel("returns_nan", "fills the output with NaN", run), abi);
}
