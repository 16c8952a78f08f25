/* SPDX-License-Identifier: Apache-2.0
 *
 * The affinity mask from before main: with OMP_PROC_BIND set, an OpenMP runtime binds the main thread in a constructor,
 * and what could be used is lost. .preinit_array runs before any constructor, so the mask is saved there, by a bare
 * system call into static memory, since no library is set up yet.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "placement.h"
#include "topology.h"

/* 131072 CPUs; the kernel of today stops at 8192, so a mask that does not fit is one we can't know. */
enum { MASK_BYTES = 16384, MASK_WORDS = MASK_BYTES / sizeof(unsigned long) };

static unsigned long saved_mask[MASK_WORDS];
static long saved_bytes; /* what the kernel wrote; <= 0: it refused */

#define NOT_SANITIZED                                                                                                  \
    __attribute__((no_sanitize("address"), no_sanitize("thread"), no_sanitize("undefined"), no_instrument_function))

NOT_SANITIZED static void save_affinity(int argc, char **argv, char **environment)
{
    (void)argc, (void)argv, (void)environment;
    saved_bytes = syscall(SYS_sched_getaffinity, 0, sizeof saved_mask, saved_mask);
}

__attribute__((section(".preinit_array"), used)) static void (*const save_affinity_entry)(int, char **,
                                                                                          char **) = save_affinity;

hwloc_const_cpuset_t affinity_at_start(void)
{
    static hwloc_bitmap_t mask;
    if (!mask) {
        mask = hwloc_bitmap_alloc();
        if (saved_bytes > 0)
            hwloc_bitmap_from_ulongs(mask, (unsigned)((size_t)saved_bytes / sizeof(unsigned long)), saved_mask);
        else
            hwloc_bitmap_fill(mask);
    }
    return mask;
}

int affinity_restore(void)
{
    if (saved_bytes <= 0)
        return -ENOTSUP;
    return syscall(SYS_sched_setaffinity, 0, (size_t)saved_bytes, saved_mask) == 0 ? 0 : -errno;
}

int placement_bind_thread(pid_t thread, const int32_t *cpus, int count)
{
    const size_t bits = 8 * sizeof(unsigned long);
    unsigned long mask[MASK_WORDS] = {0}, seen[MASK_WORDS] = {0};
    size_t words = 0;
    for (int i = 0; i < count; i++) {
        if (cpus[i] < 0 || (size_t)cpus[i] >= 8 * (size_t)MASK_BYTES)
            return -EINVAL;
        const size_t word = (size_t)cpus[i] / bits;
        mask[word] |= 1ul << ((size_t)cpus[i] % bits);
        if (word >= words)
            words = word + 1;
    }
    if (syscall(SYS_sched_setaffinity, thread, words * sizeof mask[0], mask) != 0)
        return -errno;
    if (syscall(SYS_sched_getaffinity, thread, sizeof seen, seen) <= 0)
        return -errno;
    return memcmp(mask, seen, sizeof mask) == 0 ? 0 : -EXDEV;
}

const char *placement_bind_reason(int code)
{
    return code == -EXDEV ? "its mask is not what was asked for" : strerror(-code);
}

int placement_bind_self(int32_t cpu)
{
    return placement_bind_thread(0, &cpu, 1);
}

bool placement_is_bound(pid_t thread, int32_t cpu)
{
    const size_t bits = 8 * sizeof(unsigned long), word = (size_t)cpu / bits;
    unsigned long seen[MASK_WORDS] = {0};
    if (syscall(SYS_sched_getaffinity, thread, sizeof seen, seen) <= 0)
        return false;
    for (size_t i = 0; i < MASK_WORDS; i++)
        if (seen[i] != (i == word ? 1ul << ((size_t)cpu % bits) : 0))
            return false;
    return true;
}

int32_t placement_current_cpu(void)
{
    return sched_getcpu();
}
