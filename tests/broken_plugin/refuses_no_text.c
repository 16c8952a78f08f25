/* SPDX-License-Identifier: Apache-2.0
 *
 * refuses_no_text: gives a reason that is no text, where the harness expects one.
 */
#include "sound.h"

static const char *refuse(const struct attn_problem *problem)
{
    (void)problem;
    return "\xff\xfe";
}

const struct attn_kernel *const *attn_kernels(uint32_t *abi)
{
    struct attn_kernel kernel = sound_kernel("refuses_no_text", "its reason is no UTF-8", sound_run);
    kernel.refuse = refuse;
    return sound_table(kernel, abi);
}
