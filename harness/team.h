/* SPDX-License-Identifier: Apache-2.0
 *
 * The OpenMP team of a worker: of fixed size, bound once, read back at every turn.
 */
#ifndef HARNESS_TEAM_H
#define HARNESS_TEAM_H

#include <stdbool.h>
#include <stdint.h>

#include "error.h"

struct team {
    int threads;
    int32_t *cpus;      /* [threads] where each must run; NULL: unbound */
    int32_t *actual;    /* [threads] where each was seen last */
    int64_t migrations; /* times that a thread was seen elsewhere than before */
};

/* Makes threads and binds thread i to cpus[i] (copied; NULL: unbound). */
int team_create(int threads, const int32_t *cpus, struct team *team, struct error *error);
void team_release(struct team *team);

/* Every thread clears FTZ and DAZ, reads its mask and its CPU back. -EXDEV and a message if one is not where it was
 * bound. */
int team_inspect(struct team *team, struct error *error);

/* Whether any thread has FTZ or DAZ on. */
bool team_flushes_subnormals(const struct team *team);
#define TEAM_FLOAT_MODE_LEFT "left another floating-point mode (FTZ, DAZ, rounding or exceptions)"

#endif
