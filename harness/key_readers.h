/* SPDX-License-Identifier: Apache-2.0
 *
 * How one value of each kind of key reads: appended to the list with its place, or an error that names the value.
 * All have the type of key.read.
 */
#ifndef HARNESS_KEY_READERS_H
#define HARNESS_KEY_READERS_H

#include "keys.h"

int read_rule(const struct key *, const char *item, const char *where, struct value_list *, struct error *);
int read_model(const struct key *, const char *item, const char *where, struct value_list *, struct error *);
int read_boolean(const struct key *, const char *item, const char *where, struct value_list *, struct error *);
int read_size(const struct key *, const char *item, const char *where, struct value_list *, struct error *);
int read_positive(const struct key *, const char *item, const char *where, struct value_list *, struct error *);
int read_name(const struct key *, const char *item, const char *where, struct value_list *, struct error *);
int read_kv_lengths(const struct key *, const char *item, const char *where, struct value_list *, struct error *);
int read_mask(const struct key *, const char *item, const char *where, struct value_list *, struct error *);
int read_window(const struct key *, const char *item, const char *where, struct value_list *, struct error *);
int read_softcap(const struct key *, const char *item, const char *where, struct value_list *, struct error *);
int read_scale(const struct key *, const char *item, const char *where, struct value_list *, struct error *);
int read_threads(const struct key *, const char *item, const char *where, struct value_list *, struct error *);
int read_text(const struct key *, const char *item, const char *where, struct value_list *, struct error *);
int read_mem(const struct key *, const char *item, const char *where, struct value_list *, struct error *);
int read_schedule(const struct key *, const char *item, const char *where, struct value_list *, struct error *);
int read_seed(const struct key *, const char *item, const char *where, struct value_list *, struct error *);
int read_duration(const struct key *, const char *item, const char *where, struct value_list *, struct error *);
int read_count(const struct key *, const char *item, const char *where, struct value_list *, struct error *);
int read_bytes(const struct key *, const char *item, const char *where, struct value_list *, struct error *);
int read_counters(const struct key *, const char *item, const char *where, struct value_list *, struct error *);

/* What a thread count of "max" reads as. */
#define THREADS_MAX INT64_C(-1)

#endif
