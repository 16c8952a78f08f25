/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors of 0 and -inf; see onednn_mask.h.
 */
#include "onednn_mask.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../elements_portable.h"
#include "blocks.h"

void onednn_range(const struct attn_problem *problem, int64_t b, int64_t *begin, int64_t *end)
{
    int64_t other;
    peer_visible(problem, b, 0, begin, &other);
    peer_visible(problem, b, problem->S_q - 1, &other, end);
    if (*end < *begin)
        *end = *begin;
}

bool onednn_mask_row(const struct attn_problem *problem, const struct attn_args *args, int64_t b, int64_t h, int64_t i,
                     int64_t begin, int64_t end, float *add)
{
    const struct attn_tensor *bias = &args->bias, *mask = &args->mask;
    const float *added = bias->data ? row_in(bias, ATTN_F32, b, h, i) : NULL;
    const uint8_t *shown =
        mask->data ? (const uint8_t *)mask->data + b * mask->stride[0] + h * mask->stride[1] + i * mask->stride[2]
                   : NULL;
    int64_t first, last, left = 0;
    peer_visible(problem, b, i, &first, &last);
    for (int64_t j = begin; j < end; j++) {
        const float more = added ? added[j * bias->stride[3]] : 0;
        const bool seen = j >= first && j < last && more != -INFINITY && (!shown || shown[j * mask->stride[3]]);
        add[j - begin] = seen ? more : -INFINITY;
        left += seen;
    }
    if (left == 0)
        memset(add, 0, (size_t)(end - begin) * sizeof *add);
    return left == 0;
}

int onednn_mask_position(const struct attn_problem *problem, int64_t b, float **add)
{
    int64_t begin, end, first, last;
    bool hidden = false;
    onednn_range(problem, b, &begin, &end);
    for (int64_t i = 0; i < problem->S_q && !hidden; i++) {
        peer_visible(problem, b, i, &first, &last);
        hidden = last > first && (first > begin || last < end);
    }
    if (!hidden || end == begin)
        return 0;
    float *row = *add = calloc((size_t)problem->S_q, (size_t)(end - begin) * sizeof *row);
    if (!row)
        return -ENOMEM;
    for (int64_t i = 0; i < problem->S_q; i++, row += end - begin) {
        peer_visible(problem, b, i, &first, &last);
        for (int64_t j = begin; j < end; j++)
            row[j - begin] = (j >= first && j < last) || first == last ? 0 : -INFINITY;
    }
    return 0;
}
