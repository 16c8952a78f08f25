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
#include "file_digest.h"
#include "foreign.h"
#include "intern.h"
#include "isa.h"
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
    const char *end = strstr(text, ".so");
    if (!end) {
        *side = (struct side){.kernel = intern(text), .prefix = "", .digest = own_digest()};
        return registry_origin(text) ? 0
                                     : error_usage(error, "%s is neither a kernel (attnbench list kernels) nor FILE.so",
                                                   quoted(text, shown));
    }
    const char *colon = strchr(end, ':');
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

/* Why the side can't do the point; NULL: it can, as far as can be known without running its code. */
static const char *refusal(const struct point *point, const char *name, const char *label)
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
    return reason ? intern_format("%s: %s", label, reason) : NULL;
}

static void pair_up(struct point *point, const struct side sides[DUET_SIDES], struct duet_pair *pair)
{
    /* A sweep over the kernels of a file has their names with its prefix. */
    const char *colon = strrchr(point->kernel, ':'), *base = colon ? colon + 1 : point->kernel;
    pair->point = point;
    /* The plan's reason names the kernel as the registry does. */
    if (point->skip_reason && colon &&
        strncmp(point->skip_reason, sides[DUET_A].prefix, strlen(sides[DUET_A].prefix)) == 0)
        point->skip_reason = intern(point->skip_reason + strlen(sides[DUET_A].prefix));
    for (int s = 0; s < DUET_SIDES; s++) {
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
            point->skip_reason = refusal(point, name, pair->side[s].label);
    }
    if (strcmp(sides[DUET_A].prefix, "") != 0 || colon)
        point->kernel = pair->side[DUET_A].kernel;
}

/* The kernels of B's library that A's has no counterpart of. */
static const char *left_out(const struct side sides[DUET_SIDES])
{
    const size_t length = strlen(sides[DUET_B].prefix);
    const char *list = NULL;
    for (const char *const *name = registry_names(); *name; name++) {
        const char *bare = *name + length;
        if (strncmp(*name, sides[DUET_B].prefix, length) == 0 &&
            !registry_origin(intern_format("%s%s", sides[DUET_A].prefix, bare)))
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
    if (named == DUET_SIDES && sides[DUET_A].library && sides[DUET_B].library)
        pairs->left_out = left_out(sides);
    for (pairs->count = 0; pairs->count < pairs->plan.count; pairs->count++)
        pair_up(&pairs->plan.points[pairs->count], sides, &pairs->pairs[pairs->count]);
    return 0;
}

void duet_pairs_release(struct duet_pairs *pairs)
{
    free(pairs->pairs);
    plan_release(&pairs->plan);
    *pairs = (struct duet_pairs){0};
}
