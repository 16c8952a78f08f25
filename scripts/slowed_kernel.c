/* SPDX-License-Identifier: Apache-2.0
 *
 * A kernel made slower by a known share, to see whether a verdict notices: the kernel itself, and behind each of its
 * spans a chain of multiplications that takes SHARE of the time that its spans took so far. The chain uses no memory
 * and no vector unit, so it costs the same beside any kernel, whatever the machine. What it really costs is measured by
 * whoever uses it (scripts/prove-gate), not believed.
 *
 * Built by scripts/prove-gate into a shared object with the kernels' own objects: KERNEL is the table entry,
 * -DKERNEL=attn_kernel_avx512 -DSHARE=0.02. One thread at a time.
 */
#include <stdint.h>
#include <time.h>

#include "../kernels/attn.h"

#ifndef KERNEL /* what an editor sees */
#define KERNEL attn_kernel_naive
#define SHARE 0.0
#endif

extern const struct attn_kernel KERNEL;

enum { CALIBRATION_LINKS = 100000, CALIBRATIONS = 20 };

static double link_ns;              /* time of one multiplication in the chain */
static double spans_ns, span_count; /* of all spans so far: their mean is steadier than the last one */

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static void chain(int64_t links)
{
    volatile uint64_t end;
    uint64_t x = 1;
    for (int64_t i = 0; i < links; i++)
        x = x * UINT64_C(6364136223846793005) + 1;
    end = x;
    (void)end;
}

/* The least of several: a visitor on this CPU can only make it longer. */
static void calibrate(void)
{
    for (int c = 0; c < CALIBRATIONS; c++) {
        const double began = cpu_ns();
        chain(CALIBRATION_LINKS);
        const double one = (cpu_ns() - began) / CALIBRATION_LINKS;
        link_ns = link_ns == 0 || one < link_ns ? one : link_ns;
    }
}

static int run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *state, void *scratch)
{
    if (link_ns == 0)
        calibrate();
    const double began = cpu_ns();
    const int rc = KERNEL.run(problem, args, span, phase, state, scratch);
    spans_ns += cpu_ns() - began;
    span_count += 1;
    chain((int64_t)(SHARE * spans_ns / span_count / link_ns));
    return rc;
}

__attribute__((visibility("default"))) attn_kernels_function attn_kernels;

const struct attn_kernel *const *attn_kernels(uint32_t *abi)
{
    static struct attn_kernel slowed;
    static const struct attn_kernel *table[] = {&slowed, 0};
    slowed = KERNEL;
    slowed.run = run;
    *abi = ATTN_ABI;
    return table;
}
