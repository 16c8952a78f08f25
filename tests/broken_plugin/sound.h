/* SPDX-License-Identifier: Apache-2.0
 *
 * The sound plug-in under the broken ones: the kernel of tests/broken/base.h in a shared object. Each file of this
 * folder does one thing besides that a kernel must not do, so that what is reported is that and nothing else.
 */
#ifndef TESTS_BROKEN_PLUGIN_SOUND_H
#define TESTS_BROKEN_PLUGIN_SOUND_H

#include "../broken/base.h"

attn_kernels_function attn_kernels; /* what a plug-in exports */

typedef int sound_function(const struct attn_problem *problem, const struct attn_args *args,
                           const struct attn_span *span, int32_t phase, void *state, void *scratch);

/* Attention as it should be. */
static inline int sound_run(const struct attn_problem *problem, const struct attn_args *args,
                            const struct attn_span *span, int32_t phase, void *state, void *scratch)
{
    static const struct base_steps sound;
    (void)phase;
    (void)state;
    return base_run(problem, args, span, &sound, scratch);
}

static inline struct attn_kernel sound_kernel(const char *name, const char *summary, sound_function *run)
{
    const struct attn_kernel kernel = {
        .abi = ATTN_ABI,
        .struct_size = sizeof kernel,
        .name = name,
        .summary = summary,
        .rules = ATTN_BIT(ATTN_SCALED_DOT_PRODUCT),
        .dtypes = ATTN_BIT(ATTN_F32),
        .plan = base_plan,
        .run = run,
    };
    return kernel;
}

/* A table of this one kernel; it stays valid. */
static inline const struct attn_kernel *const *sound_table(struct attn_kernel kernel, uint32_t *abi)
{
    static struct attn_kernel kept;
    static const struct attn_kernel *const table[] = {&kept, NULL};
    kept = kernel;
    *abi = ATTN_ABI;
    return table;
}

#endif
