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
        int64_t row = (oracle->b[r] * oracle->out_heads + oracle->h[r]) * problem->S_q + oracle->i[r];
        if (folder->expect_out)
            memcpy(oracle->out + r * oracle->D_v, folder->expect_out + row * oracle->D_v,
                   (size_t)oracle->D_v * sizeof(double));
        for (int64_t w = 0; folder->expect_weights && oracle->weights && w < oracle->weight_heads; w++) {
            int64_t h = oracle->h[r] * oracle->weight_heads + w;
            row = (oracle->b[r] * problem->H + h) * problem->S_q + oracle->i[r];
            memcpy(oracle->weights + (r * oracle->weight_heads + w) * oracle->S_kv,
                   folder->expect_weights + row * oracle->S_kv, (size_t)oracle->S_kv * sizeof(double));
        }
    }
}
