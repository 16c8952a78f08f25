/* SPDX-License-Identifier: Apache-2.0
 *
 * splitkv: one head's keys over several threads, then merged. What decoding needs: with few queries and few key heads
 * there is nothing else to cut.
 *
 * The tasks are those of bhq, blocks of at least 64 query rows, with the keys that some row of the block may see cut
 * into up to `splits` parts. Every part leaves its output, not yet divided, and each row's maximum m and sum l in the
 * workspace. Behind a barrier the threads share the rows:
 *
 *   M = max m;  out = sum(e^(m - M) out_part) / sum(e^(m - M) l)
 *
 * which is the softmax over all keys exactly, but for rounding. Only then is it rounded to the problem's dtype.
 *
 * A part in which a row has no key gives (-inf, 0) and is passed over. One whose scores are all -inf has weight 0
 * beside any other, whatever its sum says; alone it is NaN (0/0). A maximum of NaN or +inf, and a sum of NaN, spoil the
 * row.
 */
#include <math.h>

#include "round.h"
#include "team.h"

enum {
    TASKS_A_THREAD = 4, /* a thread held up by others leaves at most its task under way to be waited for */
    LEAST_ROWS = 64,    /* of a query block: that many queries use a key while it is close */
    LEAST_KEYS = 64     /* of a part: below, the merge would cost as much as it gains */
};

#define FAR                                                                                                            \
    (INT64_MAX / 4) /* a window limit beyond it is as good as open; sums with positions don't overflow within          \
                     */

struct key_cut {
    struct attn_cut units;  /* what the keys are cut for: batch entry x head group x query block */
    int64_t splits;         /* most parts of a unit's keys */
    int64_t k_grain, least; /* parts begin at multiples of k_grain, and are at least so long; but for the last one */
};

/* The keys of one unit: parts of `length` from begin on, the last one shorter. parts is 0 where no row sees a key. */
struct key_parts {
    int64_t begin, length, parts;
};

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Follows from the problem, the plan and the number of threads alone: run and workspace must agree. */
static struct key_cut key_cut_make(const struct attn_problem *problem, const struct attn_plan *plan, int threads)
{
    const bool late_blocks_are_long = problem->right != INT64_MAX && problem->left == INT64_MAX;
    struct key_cut cut = {.units = attn_cut_make(problem, plan, LEAST_ROWS, late_blocks_are_long)};
    cut.k_grain = plan->k_grain;
    cut.least = ceil_div(LEAST_KEYS, plan->k_grain) * plan->k_grain;
    const int64_t most = ceil_div(problem->S_kv, cut.least), units = cut.units.tasks;
    const int64_t wanted = threads > 1 && units > 0 ? ceil_div((int64_t)threads * TASKS_A_THREAD, units) : 1;
    cut.splits = wanted;
    while (cut.splits < 2 * wanted - 1 && units * cut.splits % threads != 0) /* as many tasks for each thread */
        cut.splits++;
    cut.splits = units * cut.splits % threads == 0 ? cut.splits : wanted;
    if (cut.splits > most)
        cut.splits = most > 0 ? most : 1;
    return cut;
}

/* What some query of q0..q1-1 of batch entry b may see. */
static struct key_parts key_parts_of(const struct attn_problem *problem, const struct key_cut *cut, int64_t b,
                                     int64_t q0, int64_t q1)
{
    const int64_t diag = problem->diag ? problem->diag[b] : 0;
    int64_t first = 0, last = problem->kv_len ? problem->kv_len[b] : problem->S_kv;
    if (problem->left < FAR && q0 + diag - problem->left + 1 > first)
        first = q0 + diag - problem->left + 1;
    if (problem->right < FAR && q1 + diag + problem->right < last)
        last = q1 + diag + problem->right;
    if (first >= last)
        return (struct key_parts){0};
    struct key_parts keys = {.begin = first / cut->k_grain * cut->k_grain};
    /* No coarser than the grain: parts of 576 of 4096 keys would leave the last of 8 with 64. */
    keys.length = ceil_div(ceil_div(last - keys.begin, cut->splits), cut->k_grain) * cut->k_grain;
    keys.length = keys.length < cut->least ? cut->least : keys.length;
    keys.parts = ceil_div(last - keys.begin, keys.length);
    return keys;
}

static int64_t row_count(const struct attn_problem *problem)
{
    return problem->B * problem->H * problem->S_q;
}

/* The workspace: row_max and row_sum [splits][B][H][S_q], then the outputs [splits][B][H][S_q][D_v]. */
static int64_t state_floats(const struct attn_problem *problem, const struct key_cut *cut)
{
    return ceil_div(cut->splits * row_count(problem), 16) * 16; /* whole cache lines */
}

static float *part_output(const struct attn_job *job, const struct key_cut *cut, int64_t split)
{
    return (float *)job->workspace + 2 * state_floats(job->problem, cut) +
           split * row_count(job->problem) * job->problem->D_v;
}

static size_t workspace(const struct attn_problem *problem, const struct attn_plan *plan, int threads)
{
    const struct key_cut cut = key_cut_make(problem, plan, threads);
    return sizeof(float) * (size_t)(2 * state_floats(problem, &cut) + cut.splits * row_count(problem) * problem->D_v);
}

static int run_part(const struct attn_job *job, const void *context, int64_t task, int thread)
{
    const struct key_cut *cut = context;
    const struct attn_problem *problem = job->problem;
    struct attn_span span = attn_cut_span(problem, &cut->units, task / cut->splits);
    const struct key_parts keys = key_parts_of(problem, cut, span.b0, span.q0, span.q1);
    span.split = task % cut->splits;
    if (span.split >= keys.parts)
        return 0;
    span.k0 = keys.begin + span.split * keys.length;
    span.k1 = span.k0 + keys.length < problem->S_kv ? span.k0 + keys.length : problem->S_kv;
    struct attn_args args = *job->args;
    args.row_max = job->workspace;
    args.row_sum = args.row_max + state_floats(problem, cut);
    args.out = (struct attn_tensor){
        .data = part_output(job, cut, span.split),
        .size = {problem->B, problem->H, problem->S_q, problem->D_v},
        .stride = {problem->H * problem->S_q * problem->D_v, problem->S_q * problem->D_v, problem->D_v, 1},
    };
    return job->kernel->run(problem, &args, &span, job->plan->phases - 1, job->state, job->scratch[thread]);
}

/* Of parts whose states stand `stride` apart: M, and the sum of e^(m - M) l. No key at all: (-INFINITY, 0). Parts with
 * the maximum -inf have no weight beside a larger one; alone they decide between no key (0) and 0/0 (NaN). */
static void merge_states(const float *max, const float *sum, int64_t stride, int64_t parts, double *top, double *total)
{
    *top = -INFINITY;
    *total = 0;
    for (int64_t part = 0; part < parts; part++)
        if (!(max[part * stride] <= *top) && !isnan(*top)) /* true for NaN as well, which then stays */
            *top = max[part * stride];
    for (int64_t part = 0; part < parts; part++) {
        if (max[part * stride] != -INFINITY)
            *total += exp(max[part * stride] - *top) * sum[part * stride];
        else if (*top == -INFINITY)
            *total += sum[part * stride];
    }
}

static void store_row(const struct attn_tensor *out, enum attn_dtype dtype, int64_t offset, const float *row, int64_t n)
{
    if (dtype == ATTN_F32)
        memcpy((float *)out->data + offset, row, sizeof *row * (size_t)n);
    else if (dtype == ATTN_BF16)
        for (int64_t d = 0; d < n; d++)
            ((uint16_t *)out->data)[offset + d] = attn_round_bf16(row[d]);
    else
        for (int64_t d = 0; d < n; d++)
            ((uint16_t *)out->data)[offset + d] = attn_round_f16(row[d]);
}

/* Adds the parts of one row up in the place of its first. */
static void merge_row(const struct attn_job *job, const struct key_cut *cut, int64_t row)
{
    const struct attn_problem *problem = job->problem;
    const struct attn_tensor *out = &job->args->out;
    const int64_t rows = row_count(problem), D_v = problem->D_v;
    const int64_t i = row % problem->S_q, h = row / problem->S_q % problem->H, b = row / problem->S_q / problem->H;
    const int64_t q0 = i / cut->units.q_block * cut->units.q_block, q1 = q0 + cut->units.q_block;
    const int64_t parts = key_parts_of(problem, cut, b, q0, q1 < problem->S_q ? q1 : problem->S_q).parts;
    const float *max = (const float *)job->workspace + row, *sum = max + state_floats(problem, cut);
    float *merged = part_output(job, cut, 0) + row * D_v;
    double top, total;
    merge_states(max, sum, rows, parts, &top, &total);
    if (top == -INFINITY) {
        for (int64_t d = 0; d < D_v; d++)
            merged[d] = total == 0 ? 0 : NAN;
    } else {
        for (int64_t part = 0; part < parts; part++) {
            const float *from = part_output(job, cut, part) + row * D_v;
            const bool seen = max[part * rows] != -INFINITY;
            const float factor = seen ? (float)(exp(max[part * rows] - top) / total) : 0;
            for (int64_t d = 0; d < D_v; d++)
                merged[d] = (part ? merged[d] : 0) + (seen ? factor * from[d] : 0);
        }
    }
    store_row(out, problem->dtype, b * out->stride[0] + h * out->stride[1] + i * out->stride[2], merged, D_v);
}

static void merge_rows(const struct attn_job *job, const void *context, int thread, int threads)
{
    const int64_t rows = row_count(job->problem), end = rows * (thread + 1) / threads;
    for (int64_t row = rows * thread / threads; row < end; row++)
        merge_row(job, context, row);
}

static int run(const struct attn_job *job)
{
    struct attn_problem problem = *job->problem;
    problem.flags |= ATTN_FLAG_PARTIAL;
    struct attn_job partial = *job;
    partial.problem = &problem;
    const struct key_cut cut = key_cut_make(&problem, job->plan, job->threads);
    const struct attn_team_work work = {
        .tasks = cut.units.tasks * cut.splits,
        .by_demand = true,
        .context = &cut,
        .task = run_part,
        .finish = merge_rows,
    };
    return attn_team_work(&partial, &work);
}

static const char *refuse(const struct attn_kernel *kernel, const struct attn_problem *problem, int threads)
{
    const uint64_t needed = ATTN_CAP_PARTIAL | ATTN_CAP_SPLIT_KEYS;
    const char *reason = attn_team_refuse(kernel, problem, threads);
    if (!reason && problem->rule == ATTN_MATMUL)
        reason = "splitkv is for attention: matmul has no keys";
    if (!reason && (kernel->caps & needed) != needed)
        reason = "the kernel can't do a part of the keys";
    if (!reason && (problem->flags & ATTN_FLAG_WEIGHTS))
        reason = "splitkv does not return weights";
    if (!reason && (problem->flags & ATTN_FLAG_PARTIAL))
        reason = "splitkv does not return partial results";
    return reason;
}

const struct attn_schedule attn_schedule_splitkv = {
    .name = "splitkv",
    .summary = "one head's keys over several threads, then merged",
    .refuse = refuse,
    .workspace = workspace,
    .kernel_flags = ATTN_FLAG_PARTIAL,
    .run = run,
};
