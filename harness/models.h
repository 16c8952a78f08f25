/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention shapes of published models, for --model and `list models`.
 */
#ifndef HARNESS_MODELS_H
#define HARNESS_MODELS_H

#include <stdbool.h>

#include "spec.h"

struct model {
    const char *name;
    const char *source;      /* where the sizes come from */
    int64_t H, H_kv, D, D_v; /* of one layer */
    int64_t S;               /* a typical length: what the model was trained on, at most 2048 */
    enum causal causal;      /* when a prompt is processed */
    int64_t window;          /* keys that a query sees, itself included; 0: all */
    double softcap, scale;   /* 0: none; 0: 1/sqrt(D) */
    bool bias;               /* a learnt or relative position bias is added to the scores */
    bool decodes;            /* generates token by token with a cache: --decode makes sense */
};

extern const struct model models[];
extern const int models_count;

const struct model *model_find(const char *name); /* NULL: unknown */

#endif
