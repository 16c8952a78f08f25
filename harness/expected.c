/* SPDX-License-Identifier: Apache-2.0
 *
 * Expectations of a case folder; see expected.h.
 */
#include "expected.h"

#include <string.h>

void expected_replace(const struct case_folder *folder, struct oracle *oracle)
{
    const struct attn_problem *problem = &folder->operands.problem;
    for (int64_t r = 0; r < oracle->rows; r++) {
        int64_t row = (oracle->b[r] * problem->H + oracle->h[r]) * problem->S_q + oracle->i[r];
        if (folder->expect_out)
            memcpy(oracle->out + r * oracle->D_v, folder->expect_out + row * oracle->D_v,
                   (size_t)oracle->D_v * sizeof(double));
        if (folder->expect_weights && oracle->weights)
            memcpy(oracle->weights + r * oracle->S_kv, folder->expect_weights + row * oracle->S_kv,
                   (size_t)oracle->S_kv * sizeof(double));
    }
}
