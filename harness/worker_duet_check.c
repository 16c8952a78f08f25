/* SPDX-License-Identifier: Apache-2.0
 *
 * Looking at what the calls of a duet computed, and at what they did besides that shows in no output but could disturb
 * the other side; see worker_duet.h. Nothing here is timed.
 */
#include <errno.h>

#include "intern.h"
#include "trespass.h"
#include "worker_duet.h"

static const char *name_of(const struct duet *duet, int side)
{
    return side < 0 ? "one of both" : duet->sides[side].label;
}

static const char *broken_canary(const struct duet *duet)
{
    const struct memory_block *blocks[] = {&duet->out, &duet->weights, &duet->rotation.copies};
    const char *broken = operands_canary_broken(&duet->rotation.operands);
    for (size_t b = 0; b < sizeof blocks / sizeof *blocks && !broken; b++)
        broken = memory_canary_broken(blocks[b]);
    return broken ? intern_format("wrote out of bounds (%s)", broken) : NULL;
}

/* What a call must not do; NULL: it did nothing of it. */
static const char *misdeed(const struct duet *duet)
{
    const char *found = broken_canary(duet);
    for (int s = 0; s < SIDES && !found; s++)
        found = member_canary_broken(&duet->sides[s].member);
    if (!found && operands_input_digest(&duet->rotation.operands) != duet->input_digest)
        found = "wrote to its inputs";
    if (!found && team_flushes_subnormals(&duet->worker->team))
        found = TEAM_FLOAT_MODE_LEFT;
    return found;
}

int worker_duet_trespass(const struct duet *duet, int side, struct error *error)
{
    const char *found = trespass_found(false, duet->threads);
    return found ? error_wrong(error, EIO, "%s %s", name_of(duet, side), found) : 0;
}

int worker_duet_inspect(struct duet *duet, int side, struct error *error)
{
    const char *found = misdeed(duet);
    if (found)
        return error_wrong(error, EIO, "%s %s", name_of(duet, side), found);
    int rc = worker_duet_trespass(duet, side, error);
    if (rc < 0)
        return rc;
    rc = team_inspect(&duet->worker->team, error);
    return rc < 0 ? error_prefix(error, rc, "%s", name_of(duet, side)) : 0;
}

/* A call of one side that is looked at. */
static int inspected_call(struct duet *duet, int s, const struct attn_args *args, struct error *error)
{
    worker_turn(duet->worker, s);
    const int rc = member_call(&duet->sides[s].member, args);
    worker_turn(duet->worker, -1);
    if (rc < 0)
        return error_system(error, -rc, "%s returned an error", duet->sides[s].label);
    return worker_duet_inspect(duet, s, error);
}

int worker_duet_qualify(struct duet *duet, struct error *error)
{
    duet->input_digest = operands_input_digest(&duet->rotation.operands);
    /* A library that is compiled with -ffast-math turns FTZ on as it is loaded: neither side is to run so. */
    int rc = team_inspect(&duet->worker->team, error);
    for (int s = 0; s < SIDES && rc == 0; s++)
        rc = inspected_call(duet, s, &duet->args[s], error);
    return rc;
}

int worker_duet_show(struct duet *duet, struct error *error)
{
    struct operands *operands = &duet->rotation.operands;
    const int threads = duet->worker->team.threads;
    int rc = 0;
    rotation_fill(&duet->rotation, 1, threads);
    duet->input_digest = operands_input_digest(operands);
    for (int s = 0; s < SIDES && rc == 0; s++) {
        operands_poison(operands, threads);
        rc = inspected_call(duet, s, &duet->rotation.args[0], error);
        if (rc < 0)
            return error_prefix(error, rc, "on the data that are verified");
        rc = worker_show_output(duet->worker, s, operands, operands->out.data);
        if (rc < 0)
            error_system(error, -rc, "%s, on the data that are verified", duet->sides[s].label);
    }
    return rc;
}
