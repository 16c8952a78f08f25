/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory shared by coordinator, worker and referee: a mailbox that tells whose code is running, and the copy of a
 * kernel's output that the referee judges. Shared memory has no huge pages, so results are copied here, never computed
 * here. System V segments rather than memory files: a limit on file sizes (RLIMIT_FSIZE), which is about results on
 * disk, does not count against them. Every segment is marked for removal as soon as it is attached, so a kill leaves
 * none.
 */
#ifndef HARNESS_EXCHANGE_H
#define HARNESS_EXCHANGE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"

/* Lives in the first page. The worker writes, the coordinator reads, except stop. */
struct mailbox {
    _Atomic int32_t turn;          /* group member whose code runs now; -1: the harness's own */
    _Atomic int64_t turn_began_ns; /* CLOCK_MONOTONIC */
    _Atomic int32_t stop;          /* the coordinator asks to finish with what there is */
};

struct exchange {
    int segment; /* System V identifier, told to children; -1: none */
    struct mailbox *mailbox;
    void *parcel; /* worker: what was put last, until it is dropped */
};

/* A new segment with an empty mailbox; children attach it by its number while this process lives. */
int exchange_create(struct exchange *exchange, struct error *error);
/* The child's side. */
int exchange_attach(int segment, struct exchange *exchange, struct error *error);
void exchange_release(struct exchange *exchange);

/* Worker: puts out and weights (weights_bytes may be 0) into a segment of their own; returns its number, or -errno. It
 * lasts until exchange_drop or the next put. */
int exchange_put(struct exchange *exchange, const void *out, size_t out_bytes, const void *weights,
                 size_t weights_bytes);
void exchange_drop(struct exchange *exchange);

/* Referee: attaches what was put; *weights follows *out at the next multiple of 64 bytes, NULL without weights. 0 or
 * -errno. Release with exchange_unmap. */
int exchange_map(int segment, size_t out_bytes, size_t weights_bytes, const void **out, const void **weights);
void exchange_unmap(const void *out);

#endif
