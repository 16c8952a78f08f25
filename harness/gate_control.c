/* SPDX-License-Identifier: Apache-2.0
 *
 * The controls of a gate: identical code on both sides; see gate_run.h.
 */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "file_copy.h"
#include "gate_run.h"
#include "intern.h"
#include "json_util.h"
#include "work.h"

/* Below so many FLOPs a byte what a core does in a second takes more bytes than memory gives it: a core with two FMA
 * units of 256 bits does about 100 GFLOP/s, and gets about 10 GB/s. */
static const double balance = 10;
static const char *const class_names[GATE_CLASSES] = {"compute", "memory"};

static double intensity(const struct duet_pair *pair)
{
    struct work work;
    work_count(&pair->point->spec, &work);
    return work.bytes_min > 0 ? work.flops_useful / work.bytes_min : INFINITY;
}

/* The pair that shows its class most: the most, or the fewest, FLOPs a byte; cold before warm for memory. Of equals the
 * last: kernels come slowest first. */
static const struct duet_pair *representative(const struct duet_pairs *pairs, bool memory)
{
    const struct duet_pair *best = NULL;
    for (size_t p = 0; p < pairs->count; p++) {
        const struct duet_pair *pair = &pairs->pairs[p];
        if (pair->point->skip_reason || (intensity(pair) < balance) != memory)
            continue;
        const bool colder = memory && best && pair->point->cache == CACHE_COLD && best->point->cache == CACHE_WARM;
        const bool warmer = memory && best && pair->point->cache == CACHE_WARM && best->point->cache == CACHE_COLD;
        if (!best || colder ||
            (!warmer && (memory ? intensity(pair) <= intensity(best) : intensity(pair) >= intensity(best))))
            best = pair;
    }
    return best;
}

static bool is_change(const json_t *record)
{
    const char *verdict = json_get_string(record, "verdict", "");
    return strcmp(verdict, "slower") == 0 || strcmp(verdict, "faster") == 0;
}

/* The least slowdown that matters to any point of the class: a control that could not see it would vouch for nothing.
 */
static double least_tau(const struct duet_session *session, bool memory)
{
    double least = INFINITY;
    for (size_t p = 0; p < session->pairs.count; p++) {
        const struct duet_pair *pair = &session->pairs.pairs[p];
        const double tau = duet_tau(&session->run, pair->point);
        if (!pair->point->skip_reason && (intensity(pair) < balance) == memory && tau < least)
            least = tau;
    }
    return least;
}

/* Judged by the two-sided rule: identical code may be neither. */
static json_t *control(struct duet_session *session, const struct duet_pair *pair, const char *name)
{
    const bool one_sided = session->run.one_sided;
    session->run.one_sided = false;
    json_t *first = duet_decide(&session->run, pair), *again = NULL;
    if (is_change(first) && !duet_session_interrupted())
        again = duet_decide(&session->run, pair);
    session->run.one_sided = one_sided;
    return json_pack("{s:s,s:s,s:o,s:o}", "class", name, "kernel", pair->side[DUET_A].kernel, "first", first, "again",
                     again ? again : json_null());
}

int gate_controls_run(struct duet_session *session, json_t *controls, struct error *error)
{
    const char *base = NULL;
    int copy = -1, rc = 0;
    for (int c = 0; c < GATE_CLASSES && rc == 0 && !duet_session_interrupted(); c++) {
        const struct duet_pair *like = representative(&session->pairs, c == 1);
        if (!like)
            continue;
        if (!base) {
            base = like->side[DUET_A].library;
            /* the same code, to be loaded a second time; the path works in this process's children */
            rc = file_copy(base, "attnbench-control", &copy, error);
        }
        struct duet_pair pair = *like;
        struct point point = *like->point;
        point.tau = least_tau(session, c == 1);
        pair.point = &point;
        pair.side[DUET_B] = pair.side[DUET_A];
        pair.side[DUET_B].library = intern_format("/proc/%ld/fd/%d", (long)getpid(), copy);
        pair.side[DUET_B].label = intern_format("a copy of %s", pair.side[DUET_A].label);
        if (rc == 0)
            json_array_append_new(controls, control(session, &pair, class_names[c]));
    }
    if (copy >= 0)
        close(copy);
    return rc;
}
