/* SPDX-License-Identifier: Apache-2.0
 *
 * What duet and gate compare: two sides as the user names them, met at every point of a sweep.
 */
#ifndef HARNESS_DUET_PAIRS_H
#define HARNESS_DUET_PAIRS_H

#include "duet.h"
#include "options.h"

struct duet_pairs {
    struct plan plan;        /* what the pairs' points belong to */
    struct duet_pair *pairs; /* [count]; a point's skip_reason says why a pair can't be compared */
    size_t count;
    /* "x, y": kernels that only this side has, so nothing to compare them with; interned; NULL: none */
    const char *only_in[DUET_SIDES];
};

/*
 * Reads options->sides: a kernel's name, or FILE.so[:KERNEL]; a file alone stands for the kernels of the sweep, or,
 * beside a kernel's name, for the one of that name. Expands the sweep on the topology. A pair's digests are those of
 * the files' content (file_digest.h); that of a kernel of this build is the build's commit, or, where it is not a
 * commit's, the program's digest. Errors name the side; exit code 4 where a file's ABI is another. Skipped is what a
 * side can't do, what threads of a library's own would do, and what needs more memory than --memory-limit or the
 * machine has.
 */
int duet_pairs_make(const struct options *options, const struct topology *topology, struct duet_pairs *pairs,
                    struct error *error);
void duet_pairs_release(struct duet_pairs *pairs);

#endif
