/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies of the operands that cold calls rotate over; see contestant.h.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "contestant.h"

enum { NAMED = 6, TENSORS = NAMED + ATTN_MOST_PARAMS, PAGE = 4096 };

/* The blocks that every copy has of its own, and where its args point to them. */
static struct memory_block *block_of(struct operands *operands, int tensor)
{
    struct memory_block *blocks[NAMED] = {&operands->q,       &operands->k,    &operands->v,
                                          &operands->weights, &operands->bias, &operands->mask};
    return tensor < NAMED ? blocks[tensor] : &operands->param_block[tensor - NAMED];
}

/* Copy number `copy`'s own parameters. */
static struct attn_tensor *params_of(struct rotation *rotation, int64_t copy)
{
    return rotation->params + copy * ATTN_MOST_PARAMS;
}

static struct attn_tensor *tensor_of(struct rotation *rotation, int64_t copy, int tensor)
{
    struct attn_args *args = &rotation->args[copy];
    struct attn_tensor *tensors[NAMED] = {&args->q, &args->k, &args->v, &args->weights, &args->bias, &args->mask};
    return tensor < NAMED ? tensors[tensor] : &params_of(rotation, copy)[tensor - NAMED];
}

static size_t page_rounded(size_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

static size_t copy_bytes(struct operands *operands)
{
    size_t bytes = page_rounded(operands->out.bytes);
    for (int t = 0; t < TENSORS; t++)
        bytes += page_rounded(block_of(operands, t)->bytes);
    /* A copy must not start at the same cache set as the one before it. */
    return bytes + PAGE;
}

/* Lays copy number `copy` (1..) into the block; aliased tensors stay aliased. */
static void lay_copy(struct rotation *rotation, int64_t copy)
{
    struct attn_args *args = &rotation->args[copy];
    char *next = (char *)rotation->copies.data + (size_t)(copy - 1) * copy_bytes(&rotation->operands);
    *args = rotation->operands.args;
    memcpy(params_of(rotation, copy), params_of(rotation, 0), ATTN_MOST_PARAMS * sizeof *rotation->params);
    if (args->param)
        args->param = params_of(rotation, copy);
    args->out.data = next;
    next += page_rounded(rotation->operands.out.bytes);
    for (int t = 0; t < TENSORS; t++) {
        struct memory_block *block = block_of(&rotation->operands, t);
        if (!block->data)
            continue;
        for (int u = 0; u < TENSORS; u++)
            if (tensor_of(rotation, 0, u)->data == block->data)
                tensor_of(rotation, copy, u)->data = next;
        next += page_rounded(block->bytes);
    }
}

int rotation_create(const struct problem_spec *spec, enum cache_state cache, double llc_bytes, int threads,
                    struct rotation *rotation, struct error *error)
{
    *rotation = (struct rotation){.count = 1};
    int rc = operands_create(spec, MEMORY_HUGE, &rotation->operands, error);
    if (rc < 0)
        return rc;
    size_t one = copy_bytes(&rotation->operands);
    if (cache == CACHE_COLD)
        rotation->count = (int64_t)ceil(4 * llc_bytes / (double)one);
    if (rotation->count < 1)
        rotation->count = 1;
    rotation->args = calloc((size_t)rotation->count, sizeof *rotation->args);
    rotation->params = calloc((size_t)rotation->count * ATTN_MOST_PARAMS, sizeof *rotation->params);
    if (!rotation->args || !rotation->params)
        rc = error_system(error, ENOMEM, "%lld copies of the operands", (long long)rotation->count);
    if (rc == 0 && rotation->count > 1)
        rc = memory_allocate(&rotation->copies, one * (size_t)(rotation->count - 1), MEMORY_HUGE, error);
    if (rc < 0) {
        rotation_release(rotation);
        return rc;
    }
    rotation->args[0] = rotation->operands.args;
    memcpy(rotation->params, rotation->operands.param, ATTN_MOST_PARAMS * sizeof *rotation->params);
    for (int64_t c = 1; c < rotation->count; c++)
        lay_copy(rotation, c);
    rotation_fill(rotation, 0, threads);
    return 0;
}

void rotation_release(struct rotation *rotation)
{
    operands_destroy(&rotation->operands);
    memory_release(&rotation->copies);
    free(rotation->args);
    free(rotation->params);
    *rotation = (struct rotation){0};
}

void rotation_spread(struct rotation *rotation, int threads)
{
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t c = 1; c < rotation->count; c++)
        for (int t = 0; t < TENSORS; t++) {
            struct memory_block *block = block_of(&rotation->operands, t);
            if (block->data)
                memcpy(tensor_of(rotation, c, t)->data, block->data, block->bytes);
        }
    rotation_poison(rotation, threads);
}

void rotation_fill(struct rotation *rotation, uint32_t set, int threads)
{
    operands_fill(&rotation->operands, set, threads);
    rotation_spread(rotation, threads);
}

void rotation_poison(struct rotation *rotation, int threads)
{
    operands_poison(&rotation->operands, threads);
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t c = 1; c < rotation->count; c++) {
        memcpy(rotation->args[c].out.data, rotation->operands.out.data, rotation->operands.out.bytes);
        if (rotation->operands.weights.data)
            memcpy(rotation->args[c].weights.data, rotation->operands.weights.data, rotation->operands.weights.bytes);
    }
}
