/* SPDX-License-Identifier: Apache-2.0
 *
 * The affinity mask from before main: with OMP_PROC_BIND set, an OpenMP runtime binds the main thread in a constructor,
 * and what could be used is lost. .preinit_array runs before any constructor, so the mask is saved there, by a bare
 * system call into static memory, since no library is set up yet.
 */
#include <errno.h>
#include <sched.h>
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

int placement_bind_self(int32_t cpu)
{
    if (cpu < 0 || (size_t)cpu >= 8 * (size_t)MASK_BYTES)
        return -EINVAL;
    const size_t bits = 8 * sizeof(unsigned long), word = (size_t)cpu / bits;
    const unsigned long bit = 1ul << ((size_t)cpu % bits);
    unsigned long mask[MASK_WORDS] = {0};
    mask[word] = bit;
    if (syscall(SYS_sched_setaffinity, 0, (word + 1) * sizeof mask[0], mask) != 0)
        return -errno;
    long bytes = syscall(SYS_sched_getaffinity, 0, sizeof mask, mask);
    if (bytes <= 0)
        return -errno;
    for (size_t i = 0; i < (size_t)bytes / sizeof mask[0]; i++)
        if (mask[i] != (i == word ? bit : 0))
            return -EXDEV;
    return 0;
}

int32_t placement_current_cpu(void)
{
    return sched_getcpu();
}
