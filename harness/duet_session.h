/* SPDX-License-Identifier: Apache-2.0
 *
 * What duet and gate go through alike: flags, pairs, processes, journal, interrupts.
 */
#ifndef HARNESS_DUET_SESSION_H
#define HARNESS_DUET_SESSION_H

#include "duet_pairs.h"
#include "journal.h"

struct duet_session {
    struct options options;
    struct topology topology;
    struct duet_pairs pairs;
    struct duet_run run;
    struct journal *journal; /* NULL: none was asked for */
    json_t *context;
    json_t *records; /* array, to be filled: of every pair in turn */
};

/* The command line of "duet" or "gate". *done: help was printed. Then, whatever came of it, duet_session_end. */
int duet_session_parse(const char *command, int argc, char **argv, struct duet_session *session, bool *done,
                       struct error *error);

/* Pairs from the options, a journal, and a run whose rule is for --tau and whose time is --max-time from now. From here
 * on an interrupt ends what is under way. */
int duet_session_begin(int argc, char **argv, struct duet_session *session, struct error *error);
void duet_session_end(struct duet_session *session);

bool duet_session_interrupted(void);

/* The record of a pair: duet_decide's, or why it is skipped, with "lost" true where that is because of side B alone.
 * The caller's. */
json_t *duet_session_judge(struct duet_session *session, const struct duet_pair *pair);

/* Tells a record on stderr as number `index` of `count`, from 0. */
void duet_session_tell(const struct duet_session *session, size_t index, size_t count, const json_t *record);
/* Appends it to the journal, if there is one. */
int duet_session_write(struct duet_session *session, const json_t *record, struct error *error);

/* {"schema", "context", "points"}: what -o json prints. */
json_t *duet_session_document(const struct duet_session *session);

#endif
