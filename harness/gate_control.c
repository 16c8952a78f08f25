/* SPDX-License-Identifier: Apache-2.0
 *
 * The controls of a gate: identical code on both sides; see gate_run.h.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "file_copy.h"
#include "gate_run.h"
#include "intern.h"
#include "json_util.h"
#include "work.h"

/* Below so many FLOPs a byte what a core does in a second takes more bytes than memory gives it: a core with two FMA
 * units of 256 bits does about 100 GFLOP/s, and gets about 10 GB/s. */
static const double balance = 10;

/* Controls get a part of --max-time: without them a verdict is worth less, without points there is none. */
static const double controls_share = 0.25;

enum { MOST_TRIES = 4 /* representatives of a kind, where kernels refuse what their plug-in said they do */ };

/* What a control vouches for: identical code may be the same by one clock and differ by the other. */
static const struct kind {
    bool memory, cpu;
} kinds[] = {{false, true}, {false, false}, {true, true}, {true, false}};

static double intensity(const struct duet_pair *pair)
{
    struct work work;
    work_count(&pair->point->spec, &work);
    return work.bytes_min > 0 ? work.flops_useful / work.bytes_min : INFINITY;
}

static bool is_memory_bound(const struct duet_pair *pair)
{
    return intensity(pair) < balance;
}

static const char *class_name(bool memory)
{
    return memory ? "memory" : "compute";
}

const char *gate_class(const struct duet_pair *pair)
{
    return class_name(is_memory_bound(pair));
}

static bool is_of(const struct kind *kind, const struct duet_pair *pair)
{
    return !pair->point->skip_reason && is_memory_bound(pair) == kind->memory &&
           duet_judges_cpu(pair->point) == kind->cpu;
}

/* Of those not tried, the pair that shows its kind most: the most, or the fewest, FLOPs a byte; cold before warm for
 * memory. Of equals the last: kernels come slowest first. NULL: there is none. */
static const struct duet_pair *representative(const struct duet_pairs *pairs, const struct kind *kind,
                                              const bool *tried)
{
    const struct duet_pair *best = NULL;
    for (size_t p = 0; p < pairs->count; p++) {
        const struct duet_pair *pair = &pairs->pairs[p];
        if (tried[p] || !is_of(kind, pair))
            continue;
        const bool colder =
            kind->memory && best && pair->point->cache == CACHE_COLD && best->point->cache == CACHE_WARM;
        const bool warmer =
            kind->memory && best && pair->point->cache == CACHE_WARM && best->point->cache == CACHE_COLD;
        if (!best || colder ||
            (!warmer && (kind->memory ? intensity(pair) <= intensity(best) : intensity(pair) >= intensity(best))))
            best = pair;
    }
    return best;
}

static bool is_change(const json_t *record)
{
    const char *verdict = json_get_string(record, "verdict", "");
    return strcmp(verdict, "slower") == 0 || strcmp(verdict, "faster") == 0;
}

/* The least slowdown that matters to any point of the kind: a control that could not see it would vouch for nothing. */
static double least_tau(const struct duet_session *session, const struct kind *kind)
{
    double least = INFINITY;
    for (size_t p = 0; p < session->pairs.count; p++) {
        const struct duet_pair *pair = &session->pairs.pairs[p];
        const double tau = duet_tau(&session->run, pair->point);
        if (is_of(kind, pair) && tau < least)
            least = tau;
    }
    return least;
}

/* Judged by the two-sided rule: identical code may be neither. */
static json_t *measure(struct duet_session *session, const struct duet_pair *pair, const struct kind *kind)
{
    const bool one_sided = session->run.one_sided;
    session->run.one_sided = false;
    json_t *first = duet_decide(&session->run, pair), *again = NULL;
    if (is_change(first) && !duet_session_interrupted())
        again = duet_decide(&session->run, pair);
    session->run.one_sided = one_sided;
    return json_pack("{s:s,s:s,s:s,s:o,s:o}", "class", class_name(kind->memory), "judged_by",
                     kind->cpu ? "cpu" : "wall", "kernel", pair->side[DUET_A].kernel, "first", first, "again",
                     again ? again : json_null());
}

/* A pair like this one, but of side A's code with that of the copy. */
static json_t *control(struct duet_session *session, const struct duet_pair *like, const struct kind *kind, int copy)
{
    struct duet_pair pair = *like;
    struct point point = *like->point;
    point.tau = least_tau(session, kind);
    pair.point = &point;
    pair.side[DUET_B] = pair.side[DUET_A];
    pair.side[DUET_B].library = intern_format("/proc/%ld/fd/%d", (long)getpid(), copy);
    pair.side[DUET_B].label = intern_format("a copy of %s", pair.side[DUET_A].label);
    return measure(session, &pair, kind);
}

/* The control of a kind: of the first representative that no code of its kernel refuses, which only a process of the
 * duet finds out; of the last one tried where all are refused; NULL where there is none. */
static json_t *find_control(struct duet_session *session, const struct kind *kind, bool *tried, int copy)
{
    const struct duet_pair *like;
    json_t *found = NULL;
    bool refused = true;
    for (int tries = 0; refused && tries < MOST_TRIES && !duet_session_interrupted() &&
                        (like = representative(&session->pairs, kind, tried));
         tries++) {
        json_decref(found);
        found = control(session, like, kind, copy);
        refused = strcmp(json_get_string(json_object_get(found, "first"), "status", ""), "skipped") == 0;
        tried[like - session->pairs.pairs] = true;
    }
    return found;
}

int gate_controls_run(struct duet_session *session, json_t *controls, struct error *error)
{
    const double now_ns = clock_ns(), deadline_ns = session->run.deadline_ns;
    bool *tried = calloc(session->pairs.count + 1, sizeof *tried);
    int copy = -1, rc = tried ? 0 : error_system(error, ENOMEM, "%zu pairs", session->pairs.count);
    if (rc == 0 && session->pairs.count > 0) /* the same code, to be loaded a second time by this process's children */
        rc = file_copy(session->pairs.pairs[0].side[DUET_A].library, "attnbench-control", &copy, error);
    session->run.deadline_ns = now_ns + controls_share * (deadline_ns - now_ns);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds && rc == 0 && !duet_session_interrupted(); k++) {
        json_t *found = find_control(session, &kinds[k], tried, copy);
        if (found)
            json_array_append_new(controls, found);
    }
    session->run.deadline_ns = deadline_ns;
    if (copy >= 0)
        close(copy);
    free(tried);
    return rc;
}
