/* SPDX-License-Identifier: Apache-2.0
 *
 * Replay of the stop rule on bootstrapped draws; see bootstrap.h.
 */
#include "bootstrap.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "fill.h"

/* A data set no problem has, so that these draws are a stream of their own. */
#define BOOTSTRAP_SET UINT32_C(0xb0075742)

size_t bootstrap_block_length(size_t n)
{
    size_t length = 1;
    while (length * length * length < n)
        length++;
    return length;
}

static size_t block_length(const struct bootstrap_request *request)
{
    return request->block_length > 0 ? request->block_length : bootstrap_block_length(request->n);
}

void bootstrap_draw(const struct bootstrap_request *request, uint64_t verdict, size_t count, double *draws)
{
    const size_t length = block_length(request), starts = request->n - length + 1;
    const double effect = log1p(request->effect);
    for (size_t i = 0, start = 0; i < count; i++) {
        /* Every verdict has room for 2^20 blocks. */
        if (i % length == 0)
            start =
                (size_t)(fill_uniform(fill_bits(request->seed, BOOTSTRAP_SET, FILL_Q, (verdict << 20) + i / length)) *
                         (double)starts);
        draws[i] = request->recorded[start + i % length] + effect;
    }
}

static int check(const struct bootstrap_request *request)
{
    const struct sequential_rule *rule = request->rule;
    if (request->n == 0 || block_length(request) > request->n || !(request->effect > -1) || isinf(request->effect))
        return -EINVAL;
    for (size_t i = 0; i < request->n; i++)
        if (!isfinite(request->recorded[i]))
            return -EINVAL;
    /* Without a value the rule is judged alone. */
    struct sequential_verdict verdict;
    return sequential_gate(NULL, 0, rule, &verdict);
}

int bootstrap_replay(const struct bootstrap_request *request, struct bootstrap_counts *counts)
{
    int code = check(request);
    if (code < 0)
        return code;
    const size_t most = request->rule->looks[request->rule->look_count - 1];
    struct bootstrap_counts sum = {.verdicts = request->verdicts, .mean_processes = NAN};
    uint64_t processes = 0, by_decision[SEQUENTIAL_INCONCLUSIVE + 1] = {0};
    double *draws = malloc(most * sizeof *draws);
    if (!draws)
        return -ENOMEM;
    for (uint64_t i = 0; i < request->verdicts; i++) {
        struct sequential_verdict verdict;
        bootstrap_draw(request, i, most, draws);
        code = request->which == BOOTSTRAP_GATE ? sequential_gate(draws, most, request->rule, &verdict)
                                                : sequential_duet(draws, most, request->rule, &verdict);
        if (code < 0)
            goto done;
        by_decision[verdict.decision]++;
        processes += verdict.processes;
    }
    sum.slower = by_decision[SEQUENTIAL_SLOWER];
    sum.same = by_decision[SEQUENTIAL_SAME];
    sum.faster = by_decision[SEQUENTIAL_FASTER];
    sum.inconclusive = by_decision[SEQUENTIAL_INCONCLUSIVE];
    if (request->verdicts > 0)
        sum.mean_processes = (double)processes / (double)request->verdicts;
    *counts = sum;
done:
    free(draws);
    return code;
}
