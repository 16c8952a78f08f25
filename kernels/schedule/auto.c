/* SPDX-License-Identifier: Apache-2.0
 *
 * auto: the schedule that suits a problem. A kernel that does no spans runs on its own threads; else:
 *
 *   1. One thread: serial.
 *   2. Count the pieces that can be had without cutting keys: batch x key heads where queries are few (the query heads
 *      of a group then belong together), else batch x heads x blocks of 64 queries. Where they leave threads idle for
 *      over an eighth of the time, and a piece has 256 keys or more for each thread that would share it: splitkv, if
 *      the kernel can do parts and no weights are wanted.
 *   3. Few queries, all sequences equally long, and the same number of pieces for every thread: bh, whose threads meet
 *      the same heads in each call.
 *   4. Else bhq.
 *
 * A product of matrices has no keys to cut: on more than one thread it is bh where there are at least 16 matrices for
 * each thread, as many for each, and bhq elsewhere.
 */
#include "schedule.h"

#include <stdbool.h>

enum { QUERY_BLOCK = 64, LEAST_KEYS_A_THREAD = 256, LEAST_MATRICES_A_THREAD = 16 };

/* Threads that work on one piece under splitkv. */
static int64_t sharing(int64_t pieces, int threads)
{
    return pieces < threads ? (threads + pieces - 1) / pieces : 2;
}

/* Keys that a query can see at most. */
static int64_t visible_keys(const struct attn_problem *problem)
{
    int64_t far = problem->kv_len ? 0 : problem->S_kv;
    for (int64_t b = 0; problem->kv_len && b < problem->B; b++)
        far = problem->kv_len[b] > far ? problem->kv_len[b] : far;
    const int64_t left = problem->left < far ? problem->left : far;
    const int64_t right = problem->right < far ? problem->right : far;
    return left + right < far ? left + right : far;
}

const struct attn_schedule *attn_schedule_choose(const struct attn_kernel *kernel, const struct attn_problem *problem,
                                                 int threads)
{
    if ((kernel->caps & ATTN_CAP_OWN_THREADS) && !(kernel->caps & ATTN_CAP_SPANS))
        return &attn_schedule_own;
    if (threads == 1)
        return &attn_schedule_serial;
    if (problem->rule == ATTN_MATMUL) {
        const int64_t matrices = problem->B * problem->H;
        const bool even = matrices >= (int64_t)threads * LEAST_MATRICES_A_THREAD && matrices % threads == 0;
        return even ? &attn_schedule_bh : &attn_schedule_bhq;
    }
    const bool few_queries = problem->S_q < QUERY_BLOCK;
    const int64_t blocks = (problem->S_q + QUERY_BLOCK - 1) / QUERY_BLOCK;
    const int64_t pieces = problem->B * (few_queries ? problem->H_kv : problem->H * blocks);
    const int64_t rounds = (pieces + threads - 1) / threads; /* in which every thread has a piece, or would have */
    const bool idle = 8 * pieces < 7 * rounds * threads;
    if (idle && visible_keys(problem) >= sharing(pieces, threads) * LEAST_KEYS_A_THREAD &&
        !attn_schedule_splitkv.refuse(kernel, problem, threads))
        return &attn_schedule_splitkv;
    if (few_queries && !problem->kv_len && pieces % threads == 0)
        return &attn_schedule_bh;
    return &attn_schedule_bhq;
}
