/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside the oracle: properties of dtypes, elements of tensors, the work space of a row.
 */
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fill.h"
#include "oracle_stage.h"

struct dtype_model dtype_model(enum attn_dtype dtype)
{
    if (dtype == ATTN_BF16) /* vdpbf16ps flushes subnormals of inputs and sums */
        return (struct dtype_model){0x1p-8, 0x1p-8, 0x1p-126, 0x1p-126, 0x1p-126, 0x1.ffp127};
    if (dtype == ATTN_F16)
        return (struct dtype_model){0x1p-11, 0x1p-11, 0x1p-25, 0x1p-149, 0x1p-25, 65520.0};
    return (struct dtype_model){UNIT, 0, 0, 0x1p-149, 0x1p-149, FLT_MAX};
}

double *oracle_doubles(int64_t count, int64_t width)
{
    int64_t elements;
    if (__builtin_mul_overflow(count, width, &elements) || elements > INT64_MAX / 16)
        return NULL;
    return calloc((size_t)elements + 1, sizeof(double));
}

int row_scratch_create(struct row_scratch *scratch, const struct attn_problem *problem, int64_t keys, bool projected)
{
    int64_t padded = keys + 2 * PANEL, errors = projected ? padded : 0, D = projected ? problem->D : 0;
    memset(scratch, 0, sizeof *scratch);
    scratch->seen_size = 16;
    while (scratch->seen_size < 2 * (size_t)padded)
        scratch->seen_size *= 2;
    scratch->q_square = oracle_doubles(D, 1);
    scratch->q_lean = oracle_doubles(D, 1);
    scratch->score = oracle_doubles(padded, 1);
    scratch->variance = oracle_doubles(padded, 1);
    scratch->weight = oracle_doubles(padded, 1);
    scratch->shared = oracle_doubles(errors, 1);
    scratch->extra = oracle_doubles(errors, 1);
    scratch->tied = oracle_doubles(errors, 1);
    scratch->lean = oracle_doubles(errors, SKETCH);
    scratch->twins = oracle_doubles(errors, 1);
    scratch->allowed = calloc((size_t)padded, sizeof *scratch->allowed);
    scratch->repeated = calloc((size_t)padded, sizeof *scratch->repeated);
    scratch->seen = calloc(scratch->seen_size, sizeof *scratch->seen);
    scratch->sums = oracle_doubles(problem->D_v, ROW_SUMS);
    if (scratch->q_square && scratch->q_lean && scratch->score && scratch->variance && scratch->weight &&
        scratch->shared && scratch->extra && scratch->tied && scratch->lean && scratch->twins && scratch->allowed &&
        scratch->repeated && scratch->seen && scratch->sums)
        return 0;
    row_scratch_destroy(scratch);
    return -ENOMEM;
}

void row_scratch_destroy(struct row_scratch *scratch)
{
    free(scratch->q_square);
    free(scratch->q_lean);
    free(scratch->score);
    free(scratch->variance);
    free(scratch->weight);
    free(scratch->shared);
    free(scratch->extra);
    free(scratch->tied);
    free(scratch->lean);
    free(scratch->twins);
    free(scratch->allowed);
    free(scratch->repeated);
    free(scratch->seen);
    free(scratch->sums);
    memset(scratch, 0, sizeof *scratch);
}

float read_element(const struct attn_tensor *tensor, enum attn_dtype dtype, int64_t b, int64_t h, int64_t s, int64_t d)
{
    int64_t at = b * tensor->stride[0] + h * tensor->stride[1] + s * tensor->stride[2] + d;
    if (dtype == ATTN_F32)
        return ((const float *)tensor->data)[at];
    uint16_t stored = ((const uint16_t *)tensor->data)[at];
    return dtype == ATTN_BF16 ? float_from_bf16(stored) : float_from_f16(stored);
}

void read_row(const struct attn_tensor *tensor, enum attn_dtype dtype, int64_t b, int64_t h, int64_t s, float *row)
{
    int64_t offset = b * tensor->stride[0] + h * tensor->stride[1] + s * tensor->stride[2], size = tensor->size[3];
    if (dtype == ATTN_F32) {
        memcpy(row, (const float *)tensor->data + offset, (size_t)size * sizeof *row);
        return;
    }
    const uint16_t *from = (const uint16_t *)tensor->data + offset;
    for (int64_t d = 0; d < size; d++)
        row[d] = dtype == ATTN_BF16 ? float_from_bf16(from[d]) : float_from_f16(from[d]);
}

void oracle_open_ranges(const struct oracle *oracle, int64_t B)
{
    for (int64_t e = 0; e < B * oracle->range_heads * oracle->D_v; e++) {
        oracle->v_min[e] = -DBL_MAX;
        oracle->v_max[e] = DBL_MAX;
        oracle->v_tolerance[e] = 1;
    }
}
