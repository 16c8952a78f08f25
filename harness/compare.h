/* SPDX-License-Identifier: Apache-2.0
 *
 * Two results files point by point: A, and B in relation to it. Both were measured on their own, one after the other:
 * what comes out describes, and decides nothing.
 */
#ifndef HARNESS_COMPARE_H
#define HARNESS_COMPARE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "journal.h"

/* What every form of output says of itself, and why. */
#define COMPARE_METHOD "sequential, not interleaved: no verdict"
#define COMPARE_WHY                                                                                                    \
    "adjacent launches of one memory-bound function differ by over 5 % in 87 % of cases with nothing changed "         \
    "(measured on a shared 2-core virtual machine)"

/* One file's record of a point. */
struct compare_side {
    const json_t *context, *record; /* borrowed from the results; NULL: the file has none */
    double median_ns;               /* NaN: not ok */
    double low_ns, high_ns;         /* 95 % interval of the median; NaN: none */
    bool noisy;
};

enum compare_kind {
    COMPARE_FIGURES, /* ok in both */
    COMPARE_STATUS,  /* of another status */
    COMPARE_NEITHER, /* of the same status in both, and not ok */
    COMPARE_MISSING, /* in A alone */
    COMPARE_ADDED    /* in B alone */
};

struct compare_pair {
    enum compare_kind kind;
    struct compare_side a, b;
    /* Median of B over median of A. The interval reaches from B's low end over A's high end to B's high end over A's
     * low end: conservative. Two independent 95 % intervals so combined hold the ratio of the medians of long-tailed
     * times in 97.5 % of cases where one side hardly varies, in over 99 % where both do alike (tests/check_compare.c
     * simulates it). NaN where a side has none. */
    double ratio, low, high;
};

/* Something besides the builds that differs between the two sides of pairs. */
struct compare_difference {
    const char *field;
    char *a, *b;   /* malloc'd */
    size_t points; /* pairs of which it holds */
    bool refused;  /* such points are not comparable; else it is worth a warning */
};

struct comparison {
    struct compare_pair *pairs; /* pairs with figures first, largest change first; then by kind, in file order */
    size_t pair_count;
    size_t counts[COMPARE_ADDED + 1]; /* pairs of each kind */
    struct compare_difference *differences;
    size_t difference_count;
    json_t *chosen_a, *chosen_b; /* record_latest of each file */
};

/*
 * Matches points by record_key, in four turns: those of the same machine, dtype and seed; what is left, of any machine;
 * of any dtype and seed; of any of them. Differences tell what later turns disregarded. The results must outlive it.
 */
void compare_results(const struct results *a, const struct results *b, struct comparison *comparison);
void compare_release(struct comparison *comparison);

/*
 * The 95 % interval of a record's median: by order statistics of its samples; of a record over several launches the
 * recorded one, since samples of one launch are not independent. Of a noisy one the whole range of its samples, if that
 * is wider: order statistics know nothing of what shifted all of them. False: none (fewer than 6 samples, 2 to 5
 * launches, not ok).
 */
bool compare_interval(const json_t *record, double *low_ns, double *high_ns);

/* A change that the figures bear out by themselves: both clean, and 1 outside the interval. */
bool compare_stands_out(const struct compare_pair *pair);
bool compare_noisy(const struct compare_pair *pair);
/* The record that tells which point it is: B's, or A's where B has none. */
const json_t *compare_point(const struct compare_pair *pair);

#endif
