/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory shared by coordinator, worker and referee: a mailbox that tells whose code is running, and the copy of a
 * kernel's output that the referee judges. POSIX shared memory has no huge pages, so results are copied here, never
 * computed here.
 */
#ifndef HARNESS_EXCHANGE_H
#define HARNESS_EXCHANGE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"

/* Lives in the first page. The worker writes, the coordinator reads, except stop. */
struct mailbox {
    _Atomic int32_t turn;         /* group member whose code runs now; -1: the harness's own */
    _Atomic int64_t turn_began_ns; /* CLOCK_MONOTONIC */
    _Atomic int32_t stop;         /* the coordinator asks to finish with what there is */
};

struct exchange {
    int fd;
    struct mailbox *mailbox;
};

/* A new anonymous file, with an empty mailbox; the descriptor is inherited by children. */
int exchange_create(struct exchange *exchange, struct error *error);
/* The child's side: maps the mailbox of an inherited descriptor. */
int exchange_attach(int fd, struct exchange *exchange, struct error *error);
void exchange_release(struct exchange *exchange);

/* Worker: puts out and weights (weights_bytes may be 0) behind the mailbox. 0 or -errno. */
int exchange_put(const struct exchange *exchange, const void *out, size_t out_bytes, const void *weights,
                 size_t weights_bytes);
/* Referee: maps what was put; *out is page-aligned, *weights follows at the next multiple of 64 bytes. Release with exchange_unmap. */
int exchange_map(const struct exchange *exchange, size_t out_bytes, size_t weights_bytes, const void **out,
                 const void **weights);
void exchange_unmap(const void *out, size_t out_bytes, size_t weights_bytes);

#endif
