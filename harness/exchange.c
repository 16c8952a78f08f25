/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared mailbox and output area; see exchange.h.
 */
#include "exchange.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

/* A multiple of every page size in use (64 KiB on some ARM and POWER kernels), since it is a mapping offset. */
enum { MAILBOX_BYTES = 65536 };

static size_t weights_offset(size_t out_bytes)
{
    return (out_bytes + 63) / 64 * 64;
}

int exchange_create(struct exchange *exchange, struct error *error)
{
    int fd = memfd_create("attnbench-exchange", 0);
    if (fd < 0)
        return error_system(error, errno, "cannot create shared memory");
    if (ftruncate(fd, MAILBOX_BYTES) < 0) {
        int number = errno;
        close(fd);
        return error_system(error, number, "cannot size shared memory");
    }
    int rc = exchange_attach(fd, exchange, error);
    if (rc < 0) {
        close(fd);
        return rc;
    }
    atomic_store(&exchange->mailbox->turn, -1);
    return 0;
}

int exchange_attach(int fd, struct exchange *exchange, struct error *error)
{
    void *page = mmap(NULL, MAILBOX_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED)
        return error_system(error, errno, "cannot map shared memory");
    exchange->fd = fd;
    exchange->mailbox = page;
    return 0;
}

void exchange_release(struct exchange *exchange)
{
    if (exchange->mailbox)
        munmap(exchange->mailbox, MAILBOX_BYTES);
    if (exchange->fd >= 0)
        close(exchange->fd);
    *exchange = (struct exchange){.fd = -1};
}

static int put(int fd, const void *data, size_t bytes, off_t offset)
{
    const char *from = data;
    while (bytes) {
        ssize_t n = pwrite(fd, from, bytes, offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        from += n;
        bytes -= (size_t)n;
        offset += n;
    }
    return 0;
}

int exchange_put(const struct exchange *exchange, const void *out, size_t out_bytes, const void *weights,
                 size_t weights_bytes)
{
    off_t end = (off_t)(MAILBOX_BYTES + weights_offset(out_bytes) + weights_bytes);
    if (ftruncate(exchange->fd, end) < 0)
        return -errno;
    int rc = put(exchange->fd, out, out_bytes, MAILBOX_BYTES);
    if (rc == 0)
        rc = put(exchange->fd, weights, weights_bytes, (off_t)(MAILBOX_BYTES + weights_offset(out_bytes)));
    return rc;
}

int exchange_map(const struct exchange *exchange, size_t out_bytes, size_t weights_bytes, const void **out,
                 const void **weights)
{
    size_t bytes = weights_offset(out_bytes) + weights_bytes;
    *out = *weights = NULL;
    if (bytes == 0)
        return 0;
    void *base = mmap(NULL, bytes, PROT_READ, MAP_SHARED, exchange->fd, MAILBOX_BYTES);
    if (base == MAP_FAILED)
        return -errno;
    *out = base;
    if (weights_bytes)
        *weights = (const char *)base + weights_offset(out_bytes);
    return 0;
}

void exchange_unmap(const void *out, size_t out_bytes, size_t weights_bytes)
{
    size_t bytes = weights_offset(out_bytes) + weights_bytes;
    if (bytes)
        munmap((void *)out, bytes);
}
