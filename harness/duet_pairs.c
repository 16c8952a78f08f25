/* SPDX-License-Identifier: Apache-2.0
 *
 * From two sides and a sweep to pairs; see duet_pairs.h.
 */
#include "duet_pairs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../kernels/schedule/schedule.h"
#include "build_info.h"
#include "environment.h"
#include "file_digest.h"
#include "foreign.h"
#include "intern.h"
#include "isa.h"
#include "operands.h"
#include "registry.h"

/* What the user said of a side. */
struct side {
    const char *library; /* NULL: this build */
    const char *kernel;  /* NULL: the point's */
    const char *prefix;  /* of its kernels in the registry */
    const char *digest;  /* NULL: unknown */
};

/* Both sides may be of this build. */
static const char *own_digest(void)
{
    static const char *digest;
    if (!digest)
        digest = *build_commit && build_dirty == 0 ? intern(build_commit) : file_digest("/proc/self/exe");
    return digest;
}

static int read_side(const char *text, const char *prefix, struct side *side, struct error *error)
{
    char shown[QUOTED_BYTES];
    const char *suffix = foreign_library_suffix(text);
    if (!suffix) {
        *side = (struct side){.kernel = intern(text), .prefix = "", .digest = own_digest()};
        return registry_origin(text) ? 0
                                     : error_usage(error, "%s is neither a kernel (attnbench list kernels) nor FILE.so",
                                                   quoted(text, shown));
    }
    const char *colon = strchr(suffix, ':');
    const size_t length = colon ? (size_t)(colon - text) : strlen(text);
    *side = (struct side){
        .library = intern_format("%.*s", (int)length, text),
        .kernel = colon ? intern(colon + 1) : NULL,
        .prefix = prefix,
    };
    int rc = foreign_add_library(side->library, prefix, error);
    if (rc == 0)
        side->digest = file_digest(side->library);
    if (rc == 0 && side->kernel && !registry_origin(intern_format("%s%s", prefix, side->kernel)))
        rc = error_usage(error, "%s has no kernel %s", side->library, quoted(side->kernel, shown));
    return rc;
}

/* A reason that begins with the kernel's name as the registry has it: as the library has it. */
static const char *without_prefix(const char *reason, const char *prefix)
{
    const size_t length = strlen(prefix);
    return reason && strncmp(reason, prefix, length) == 0 ? reason + length : reason;
}

/* Why the side can't do the point; NULL: it can, as far as can be known without running its code. */
static const char *refusal(const struct point *point, const char *name, const char *prefix, const char *label)
{
    struct attn_problem problem;
    int64_t *lengths = malloc(((size_t)point->spec.B + 1) * 2 * sizeof *lengths);
    const char *reason = lengths ? NULL : "no memory for the lengths of its sequences";
    if (!registry_origin(name))
        reason = "it has no kernel of this name";
    if (!reason) {
        spec_problem(&point->spec, lengths, lengths + point->spec.B, &problem);
        reason = registry_refusal(name, &problem, isa_available());
    }
    const struct attn_schedule *schedule = attn_schedule_find(point->schedule_requested);
    if (!reason && schedule && schedule->refuse)
        reason = schedule->refuse(registry_attention(name, point->spec.rule), &problem, point->threads);
    free(lengths);
    return reason ? intern_format("%s: %s", label, without_prefix(reason, prefix)) : NULL;
}

/* Why the kernel can't be compared in a duet's worker, whose threads are bound: those that a kernel starts itself would
 * share one CPU. NULL: it can. */
static const char *own_threads(const struct point *point, const char *name, const char *label)
{
    const uint64_t caps = registry_attention(name, point->spec.rule)->caps;
    const bool always = (caps & ATTN_CAP_OWN_THREADS) && !(caps & ATTN_CAP_SPANS);
    return always || strcmp(point->schedule_requested, attn_schedule_own.name) == 0
               ? intern_format("%s: threads of its own: attnbench run compares it", label)
               : NULL;
}

/* The worker's and the referee's operands, the second output, and the copies that cold calls rotate over. */
static double needed_bytes(const struct point *point, const struct topology *topology)
{
    const struct problem_spec *spec = &point->spec;
    const double pairs = (double)spec->B * (double)spec->H * (double)spec->S_q * (double)spec->S_kv;
    const double weights = spec->weights ? pairs * sizeof(float) : 0;
    const double cold = point->cache == CACHE_COLD ? 4 * (double)topology_llc_total_bytes(topology) : 0;
    double out = (double)dtype_bytes(spec->dtype);
    struct attn_args shapes;
    operands_shapes(spec, &shapes);
    for (int i = 0; i < 4; i++)
        out *= (double)shapes.out.size[i];
    return 2 * operands_bytes(spec) + out + weights + cold;
}

static void pair_up(struct point *point, const struct side sides[DUET_SIDES], struct duet_pair *pair)
{
    /* A sweep over the kernels of a file has their names with its prefix. */
    const char *colon = strrchr(point->kernel, ':'), *base = colon ? colon + 1 : point->kernel;
    pair->point = point;
    if (point->skip_reason)
        point->skip_reason = intern(
            without_prefix(point->skip_reason, intern_format("%.*s", (int)(base - point->kernel), point->kernel)));
    for (int s = 0; s < DUET_SIDES; s++) {
        const bool open = !point->skip_reason;
        const char *kernel = sides[s].kernel ? sides[s].kernel : intern(base);
        const char *name = intern_format("%s%s", sides[s].prefix, kernel);
        pair->side[s].kernel = kernel;
        pair->side[s].library = sides[s].library;
        pair->side[s].label = sides[s].library ? intern_format("%s:%s", sides[s].library, kernel) : kernel;
        pair->side[s].digest = sides[s].digest;
        const struct registry_origin *origin = registry_origin(name);
        if (!point->skip_reason && !sides[s].library && origin && origin->kind != REGISTRY_BUILT_IN)
            point->skip_reason = intern_format("%s runs in a process of its own: attnbench run compares it", kernel);
        if (!point->skip_reason)
            point->skip_reason = refusal(point, name, sides[s].prefix, pair->side[s].label);
        if (!point->skip_reason)
            point->skip_reason = own_threads(point, name, pair->side[s].label);
        pair->lost = open && point->skip_reason && s == DUET_B;
    }
    if (strcmp(sides[DUET_A].prefix, "") != 0 || colon)
        point->kernel = pair->side[DUET_A].kernel;
}

/* The kernels of one side's library that the other's has no counterpart of. */
static const char *only_in(const struct side *side, const struct side *other)
{
    const size_t length = strlen(side->prefix);
    const char *list = NULL;
    for (const char *const *name = registry_names(); *name; name++) {
        const char *bare = *name + length;
        if (strncmp(*name, side->prefix, length) == 0 && !registry_origin(intern_format("%s%s", other->prefix, bare)))
            list = list ? intern_format("%s, %s", list, bare) : intern(bare);
    }
    return list;
}

int duet_pairs_make(const struct options *options, const struct topology *topology, struct duet_pairs *pairs,
                    struct error *error)
{
    static const char *const prefixes[DUET_SIDES] = {"a:", "b:"};
    struct side sides[DUET_SIDES];
    *pairs = (struct duet_pairs){0};
    for (int s = 0; s < DUET_SIDES; s++) {
        const int code = read_side(options->sides[s], prefixes[s], &sides[s], error);
        if (code < 0)
            return code;
    }
    /* A kernel that is named is the one to plan with, side A's before side B's; the other side's is met at the same
     * points. Where none is named, the sweep's are those of side A. */
    const int named = sides[DUET_A].kernel ? DUET_A : sides[DUET_B].kernel ? DUET_B : DUET_SIDES;
    const char *prefix = sides[named == DUET_SIDES ? DUET_A : named].prefix;
    int rc = named == DUET_SIDES
                 ? 0
                 : request_set(options->request, "kernel", sides[named].kernel, options->sides[named], error);
    if (rc < 0)
        return rc;
    request_set_kernel_prefix(options->request, *prefix ? prefix : NULL);
    if (!sides[DUET_A].kernel && sides[DUET_B].kernel)
        sides[DUET_A].kernel = sides[DUET_B].kernel;
    if (!sides[DUET_B].kernel && sides[DUET_A].kernel)
        sides[DUET_B].kernel = sides[DUET_A].kernel;
    rc = request_plan(options->request, topology, false, &pairs->plan, error);
    if (rc < 0)
        return rc;
    pairs->pairs = calloc(pairs->plan.count + 1, sizeof *pairs->pairs);
    if (!pairs->pairs) {
        duet_pairs_release(pairs);
        return error_system(error, ENOMEM, "%zu pairs", pairs->plan.count);
    }
    for (int s = 0; s < DUET_SIDES && named == DUET_SIDES; s++)
        if (sides[DUET_A].library && sides[DUET_B].library)
            pairs->only_in[s] = only_in(&sides[s], &sides[!s]);
    for (pairs->count = 0; pairs->count < pairs->plan.count; pairs->count++) {
        struct point *point = &pairs->plan.points[pairs->count];
        pair_up(point, sides, &pairs->pairs[pairs->count]);
        if (!point->skip_reason)
            point->skip_reason =
                environment_memory_refusal(needed_bytes(point, topology), pairs->plan.effort.memory_limit);
    }
    return 0;
}

void duet_pairs_release(struct duet_pairs *pairs)
{
    free(pairs->pairs);
    plan_release(&pairs->plan);
    *pairs = (struct duet_pairs){0};
}
