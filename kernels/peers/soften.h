/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax of one row of scores, for peers that bring matrix products alone. Two spellings of it: portable vectors, and
 * AVX2 in a file of its own, which peer_soften chooses where the machine has it.
 *
 * A row begins at a multiple of 16 bytes.
 */
#ifndef KERNELS_PEERS_SOFTEN_H
#define KERNELS_PEERS_SOFTEN_H

#include <stdint.h>

struct peer_softmax {
    /* score[i] becomes cap tanh(score[i] / cap); cap > 0. */
    void (*cap)(float *score, int64_t count, float cap);
    /* Scores become weights relative to the row's maximum, e^(score - maximum); returns their sum. -inf becomes 0. NaN
     * if a score is NaN or +inf, or all are -inf. */
    float (*soften)(float *score, int64_t count);
    /* x[i] becomes factor x[i]. No alignment is asked for. */
    void (*scale)(float *x, int64_t count, float factor);
};

extern const struct peer_softmax peer_softmax_portable, peer_softmax_avx2;

/* The fastest that this machine runs. */
const struct peer_softmax *peer_softmax_choose(void);

#endif
