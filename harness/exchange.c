/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared mailbox and parcels; see exchange.h.
 */
#include "exchange.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/shm.h>

static size_t weights_offset(size_t out_bytes)
{
    return (out_bytes + 63) / 64 * 64;
}

/* A new segment, attached and marked for removal: Linux lets others attach it by number until the last one detaches. */
static int segment_create(size_t bytes, int *segment, void **base)
{
    *segment = shmget(IPC_PRIVATE, bytes, 0600);
    if (*segment < 0)
        return -errno;
    *base = shmat(*segment, NULL, 0);
    int number = *base == (void *)-1 ? errno : 0;
    shmctl(*segment, IPC_RMID, NULL);
    return -number;
}

int exchange_create(struct exchange *exchange, struct error *error)
{
    void *base = NULL;
    int rc = segment_create(sizeof(struct mailbox), &exchange->segment, &base);
    if (rc < 0)
        return error_system(error, -rc, "cannot create shared memory");
    exchange->mailbox = base;
    exchange->parcel = NULL;
    atomic_store(&exchange->mailbox->turn, -1);
    return 0;
}

int exchange_attach(int segment, struct exchange *exchange, struct error *error)
{
    void *base = shmat(segment, NULL, 0);
    if (base == (void *)-1)
        return error_system(error, errno, "cannot attach shared memory");
    *exchange = (struct exchange){.segment = segment, .mailbox = base};
    return 0;
}

void exchange_release(struct exchange *exchange)
{
    exchange_drop(exchange);
    if (exchange->mailbox)
        shmdt(exchange->mailbox);
    *exchange = (struct exchange){.segment = -1};
}

int exchange_put(struct exchange *exchange, const void *out, size_t out_bytes, const void *weights,
                 size_t weights_bytes)
{
    int segment;
    void *base = NULL;
    size_t bytes = weights_offset(out_bytes) + weights_bytes;
    exchange_drop(exchange);
    int rc = segment_create(bytes ? bytes : 1, &segment, &base); /* an empty result is a result */
    if (rc < 0)
        return rc;
    assert(base);
    exchange->parcel = base;
    if (out_bytes)
        memcpy(base, out, out_bytes);
    if (weights_bytes)
        memcpy((char *)base + weights_offset(out_bytes), weights, weights_bytes);
    return segment;
}

void exchange_drop(struct exchange *exchange)
{
    if (exchange->parcel)
        shmdt(exchange->parcel);
    exchange->parcel = NULL;
}

int exchange_map(int segment, size_t out_bytes, size_t weights_bytes, const void **out, const void **weights)
{
    struct shmid_ds status;
    if (shmctl(segment, IPC_STAT, &status) < 0)
        return -errno;
    if (status.shm_segsz < weights_offset(out_bytes) + weights_bytes)
        return -EMSGSIZE;
    const void *base = shmat(segment, NULL, SHM_RDONLY);
    if (base == (const void *)-1)
        return -errno;
    *out = base;
    *weights = weights_bytes ? (const char *)base + weights_offset(out_bytes) : NULL;
    return 0;
}

void exchange_unmap(const void *out)
{
    shmdt(out);
}
