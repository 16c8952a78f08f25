/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory for one tensor: on huge pages, between guard pages, or plain; with canaries that tell of stray writes.
 * See operands.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "intern.h"
#include "memory_policy.h"
#include "operands.h"

/* CANARY: bytes on each side that nobody may write to; a multiple of a cache line, so that data stays aligned. */
enum { CANARY = 256, HUGE_PAGE = 2 << 20 };

static unsigned char canary_byte(const unsigned char *address)
{
    return (unsigned char)(0xa5u ^ ((uintptr_t)address * 0x9du));
}

static void canary_write(unsigned char *from, const unsigned char *to)
{
    for (; from < to; from++)
        *from = canary_byte(from);
}

static bool canary_intact(const unsigned char *from, const unsigned char *to)
{
    for (; from < to; from++)
        if (*from != canary_byte(from))
            return false;
    return true;
}

/* The canaries' outer ends. Guarded blocks fault behind the data; in front there is a rest of a page. */
static void canary_ends(const struct memory_block *block, unsigned char **front, unsigned char **behind)
{
    unsigned char *data = block->data;
    *front = data - CANARY;
    *behind = data + block->bytes + CANARY;
    if (block->kind == MEMORY_GUARDED) {
        *front = (unsigned char *)block->base + sysconf(_SC_PAGESIZE);
        *behind = data + block->bytes;
    }
}

static size_t round_up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

static void *map(size_t bytes, int protection)
{
    void *base = mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return base == MAP_FAILED ? NULL : base;
}

/* A mapping of whole huge pages that starts at one; the surplus at both ends is given back. */
static int allocate_huge(struct memory_block *block)
{
    size_t wanted = round_up(block->bytes + 2 * CANARY, HUGE_PAGE);
    unsigned char *base = map(wanted + HUGE_PAGE, PROT_READ | PROT_WRITE);
    if (!base)
        return errno;
    size_t ahead = round_up((uintptr_t)base, HUGE_PAGE) - (uintptr_t)base;
    if (ahead)
        munmap(base, ahead);
    if (ahead < HUGE_PAGE)
        munmap(base + ahead + wanted, HUGE_PAGE - ahead);
    block->base = base + ahead;
    block->mapped = wanted;
    block->data = base + ahead + CANARY;
    /* A refusal (no THP in this kernel) shows in memory_page_mode. */
    madvise(block->base, wanted, MADV_HUGEPAGE);
    return memory_policy_bind(block->base, wanted);
}

static int allocate_guarded(struct memory_block *block)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), inner = round_up(block->bytes, page);
    unsigned char *base = map(inner + 2 * page, PROT_NONE);
    if (!base)
        return errno;
    block->base = base;
    block->mapped = inner + 2 * page;
    block->data = base + page + inner - block->bytes;
    if (inner && mprotect(base + page, inner, PROT_READ | PROT_WRITE) < 0)
        return errno;
    return memory_policy_bind(base + page, inner);
}

static int allocate_plain(struct memory_block *block)
{
    size_t wanted = block->bytes + 2 * CANARY;
    void *base = NULL;
    int refused = posix_memalign(&base, 64, wanted);
    if (refused)
        return refused;
    block->base = base;
    block->mapped = wanted;
    block->data = (unsigned char *)base + CANARY;
    return 0;
}

int memory_allocate(struct memory_block *block, size_t bytes, enum memory_kind kind, struct error *error)
{
    *block = (struct memory_block){.bytes = bytes, .kind = kind};
    int refused = ENOMEM;
    if (bytes < PTRDIFF_MAX - 2 * (size_t)HUGE_PAGE) {
        if (kind == MEMORY_HUGE)
            refused = allocate_huge(block);
        else if (kind == MEMORY_GUARDED)
            refused = allocate_guarded(block);
        else
            refused = allocate_plain(block);
    }
    if (refused) {
        memory_release(block);
        return error_system(error, refused, "cannot allocate %zu bytes", bytes);
    }
    unsigned char *front, *behind;
    canary_ends(block, &front, &behind);
    canary_write(front, block->data);
    canary_write((unsigned char *)block->data + bytes, behind);
    return 0;
}

void memory_release(struct memory_block *block)
{
    if (block->base) {
        if (block->kind == MEMORY_PLAIN)
            free(block->base);
        else
            munmap(block->base, block->mapped);
    }
    *block = (struct memory_block){.kind = block->kind};
}

const char *memory_canary_broken(const struct memory_block *block)
{
    if (!block->data)
        return NULL;
    unsigned char *front, *behind;
    canary_ends(block, &front, &behind);
    if (!canary_intact((unsigned char *)block->data + block->bytes, behind))
        return "wrote behind the end";
    if (!canary_intact(front, block->data))
        return "wrote before the start";
    return NULL;
}

static bool overlaps(const struct memory_block *const *blocks, int count, uintptr_t from, uintptr_t to)
{
    for (int i = 0; i < count; i++) {
        uintptr_t base = (uintptr_t)blocks[i]->base;
        if (blocks[i]->bytes && base && base < to && base + blocks[i]->mapped > from)
            return true;
    }
    return false;
}

const char *memory_page_mode(const struct memory_block *const *blocks, int count)
{
    FILE *file = fopen("/proc/self/smaps", "re");
    if (!file)
        return NULL;
    char *line = NULL;
    size_t capacity = 0;
    bool ours = false;
    uint64_t resident = 0, huge = 0, value;
    uintptr_t from, to;
    while (getline(&line, &capacity, file) >= 0) {
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &from, &to) == 2)
            ours = overlaps(blocks, count, from, to);
        else if (ours && sscanf(line, "Rss: %" SCNu64 " kB", &value) == 1)
            resident += value;
        else if (ours && (sscanf(line, "AnonHugePages: %" SCNu64 " kB", &value) == 1 ||
                          sscanf(line, "Private_Hugetlb: %" SCNu64 " kB", &value) == 1))
            huge += value;
    }
    free(line);
    fclose(file);
    if (resident == 0)
        return NULL;
    return intern(huge == 0 ? "4k" : huge >= resident ? "2m" : "mixed");
}
