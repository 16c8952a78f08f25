/* SPDX-License-Identifier: Apache-2.0
 *
 * The ceiling loops do all of the work that they are credited with: time grows with iterations, every byte read counts,
 * every byte and no other is written or copied, functions are what they say.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef __SSE2__
#include <xmmintrin.h>
#endif

#include <cmocka.h>

#include "harness/isa.h"
#include "harness/probe.h"
#include "harness/statistics.h"

static const int stream_counts[] = {1, 2, 4};
enum { STREAM_COUNTS = 3, BYTES = 8192, MARGIN = 256 };

static double thread_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double seconds_of(const struct flop_probe *probe, uint64_t iterations)
{
    const double begin = thread_seconds();
    probe->run(iterations);
    return thread_seconds() - begin;
}

static void need(uint64_t isa)
{
    if (isa & ~isa_available()) {
        print_message("this machine lacks %s\n", isa_names(isa & ~isa_available()));
        skip();
    }
}

/* Runs of one length and of its fourfold take turns: whoever shares the core comes and goes, and meets both alike. */
static void flops_take_time(void **state)
{
    const struct flop_probe *probe = *state;
    enum { TURNS = 25, ONCE = 20000, FOURFOLD = 4 * ONCE };
    double ratios[TURNS], shortest = INFINITY;
    need(probe->isa);
    probe->run(0);
    for (int t = 0; t < TURNS; t++) {
        const double once = seconds_of(probe, ONCE), fourfold = seconds_of(probe, FOURFOLD);
        assert_true(once > 0);
        ratios[t] = fourfold / once;
        shortest = fmin(shortest, fourfold);
    }
    if (!isa_emulated()) {
        const double ratio = statistics_median(ratios, TURNS);
        assert_true(ratio > 3);
        assert_true(ratio < 6);
        /* No CPU of today starts more than four 512-bit FMAs a cycle, at 10 GHz. */
        assert_true(probe->flops_per_iteration * FOURFOLD / shortest < 4.0 * 64 * 10e9);
    }
}

static unsigned char *buffer_with_margin(unsigned char **base)
{
    *base = aligned_alloc(64, BYTES + 2 * MARGIN);
    assert_non_null(*base);
    return *base + MARGIN;
}

static void every_byte_is_read(void **state)
{
    const struct stream_probe *probe = *state;
    unsigned char *base, *buffer;
    need(probe->isa);
    buffer = buffer_with_margin(&base);
    for (size_t i = 0; i < BYTES; i++)
        buffer[i] = (unsigned char)(i * 37 + i / 251);
    for (int s = 0; s < STREAM_COUNTS; s++) {
        const uint64_t before = probe->read(buffer, BYTES, stream_counts[s]);
        for (size_t i = 0; i < BYTES; i++) {
            buffer[i] ^= 0x10;
            assert_true(probe->read(buffer, BYTES, stream_counts[s]) != before);
            buffer[i] ^= 0x10;
        }
        memset(base, 0xff, MARGIN);
        memset(buffer + BYTES, 0xff, MARGIN);
        assert_true(probe->read(buffer, BYTES, stream_counts[s]) == before);
    }
    free(base);
}

static void every_byte_is_written(void **state)
{
    const struct stream_probe *probe = *state;
    unsigned char *base, *buffer;
    need(probe->isa);
    buffer = buffer_with_margin(&base);
    for (int s = 0; s < STREAM_COUNTS; s++) {
        /* Two runs over two backgrounds: a byte that was not written differs between them. */
        unsigned char first[BYTES];
        memset(base, 0xa5, BYTES + 2 * MARGIN);
        probe->write(buffer, BYTES, stream_counts[s]);
        memcpy(first, buffer, BYTES);
        memset(buffer, 0x5a, BYTES);
        probe->write(buffer, BYTES, stream_counts[s]);
        assert_memory_equal(first, buffer, BYTES);
        for (size_t i = 0; i < MARGIN; i++) {
            assert_int_equal(base[i], 0xa5);
            assert_int_equal(buffer[BYTES + i], 0xa5);
        }
    }
    free(base);
}

static void every_byte_is_copied(void **state)
{
    const struct stream_probe *probe = *state;
    unsigned char *base, *to, *from_base, *from;
    need(probe->isa);
    to = buffer_with_margin(&base);
    from = buffer_with_margin(&from_base);
    for (size_t i = 0; i < BYTES; i++)
        from[i] = (unsigned char)(i * 37 + i / 251);
    memset(base, 0xa5, BYTES + 2 * MARGIN);
    probe->copy(to, from, BYTES);
    assert_memory_equal(to, from, BYTES);
    for (size_t i = 0; i < MARGIN; i++) {
        assert_int_equal(base[i], 0xa5);
        assert_int_equal(to[BYTES + i], 0xa5);
    }
    free(base);
    free(from_base);
}

static void functions_are_accurate(void **state)
{
    const struct function_probe *probe = *state;
    enum { COUNT = 1024 };
    static _Alignas(64) float x[COUNT], y[COUNT];
    const bool is_exp = strcmp(probe->function, "exp") == 0;
    need(probe->isa);
    for (int i = 0; i < COUNT; i++)
        x[i] = is_exp ? -16.0f * (float)i / COUNT : 8.0f * (float)i / COUNT - 4.0f;
    probe->apply(x, y, COUNT);
    for (int i = 0; i < COUNT; i++) {
        const double exact = is_exp ? exp((double)x[i]) : tanh((double)x[i]);
        /* exp: the argument's own rounding, times log2(e), counts |x| half ulps beside the function's 2. */
        const double ulps = is_exp ? 3 + fabs((double)x[i]) : 4;
        assert_true(fabs((double)y[i] - exact) <= ulps * 0x1p-23 * fabs(exact));
    }
}

/* A point's roof is picked by dtype alone, so elements that no dtype names must not stand in that table. */
static void no_roof_is_made_of_other_elements(void **state)
{
    (void)state;
    for (int p = 0; flop_probes[p]; p++)
        assert_string_equal(flop_probes[p]->element, flop_probes[p]->dtype == ATTN_BF16 ? "bf16" : "f32");
    for (int p = 0; other_flop_probes[p]; p++) {
        assert_true(strcmp(other_flop_probes[p]->element, "f32") != 0);
        assert_true(strcmp(other_flop_probes[p]->element, "bf16") != 0);
    }
}

static void tables_are_in_order(void **state)
{
    (void)state;
    int flops = 0, streams = 0;
    for (; flop_probes[flops]; flops++)
        assert_true(flop_probes[flops]->flops_per_iteration > 0);
    for (; stream_probes[streams]; streams++)
        assert_true(streams == 0 || stream_probes[streams]->isa > stream_probes[streams - 1]->isa);
    assert_int_equal(flops, 5);
    assert_int_equal(streams, 3);
    int others = 0, functions = 0;
    for (; other_flop_probes[others]; others++)
        assert_true(other_flop_probes[others]->flops_per_iteration > 0);
    while (function_probes[functions])
        functions++;
    assert_int_equal(others, 5);
    assert_int_equal(functions, 6);
    assert_ptr_equal(flop_probes[0], &flop_probe_sse2);
    assert_ptr_equal(stream_probes[0], &stream_probe_sse2);
}

static void float_mode_is_told_and_cleared(void **state)
{
    (void)state;
#ifdef __SSE2__
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | 1u << 15);
    assert_int_equal(probe_float_mode(), 1u << 15);
    _mm_setcsr(before | 1u << 6);
    assert_int_equal(probe_float_mode(), 1u << 6);
    _mm_setcsr(before | 1u << 15 | 1u << 6);
    probe_clear_float_mode();
    assert_int_equal(probe_float_mode(), 0);
    assert_int_equal(_mm_getcsr() & 0x7f80, before & 0x7f80); /* rounding and exception masks stay */
    volatile float tiny = 1e-39f;
    assert_true(tiny * 0.5f > 0);
#else
    skip();
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"flops: sse2 mul+add", flops_take_time, NULL, NULL, (void *)&flop_probe_sse2},
        {"flops: ymm fma", flops_take_time, NULL, NULL, (void *)&flop_probe_ymm_fma},
        {"flops: zmm fma", flops_take_time, NULL, NULL, (void *)&flop_probe_zmm_fma},
        {"flops: ymm bf16", flops_take_time, NULL, NULL, (void *)&flop_probe_ymm_bf16},
        {"flops: zmm bf16", flops_take_time, NULL, NULL, (void *)&flop_probe_zmm_bf16},
        {"flops: sse2 mul+add f64", flops_take_time, NULL, NULL, (void *)&flop_probe_sse2_f64},
        {"flops: ymm fma f64", flops_take_time, NULL, NULL, (void *)&flop_probe_ymm_fma_f64},
        {"flops: zmm fma f64", flops_take_time, NULL, NULL, (void *)&flop_probe_zmm_fma_f64},
        {"flops: ymm int8", flops_take_time, NULL, NULL, (void *)&flop_probe_ymm_int8},
        {"flops: zmm int8", flops_take_time, NULL, NULL, (void *)&flop_probe_zmm_int8},
        {"read: sse2", every_byte_is_read, NULL, NULL, (void *)&stream_probe_sse2},
        {"read: ymm", every_byte_is_read, NULL, NULL, (void *)&stream_probe_ymm},
        {"read: zmm", every_byte_is_read, NULL, NULL, (void *)&stream_probe_zmm},
        {"write: sse2", every_byte_is_written, NULL, NULL, (void *)&stream_probe_sse2},
        {"write: ymm", every_byte_is_written, NULL, NULL, (void *)&stream_probe_ymm},
        {"write: zmm", every_byte_is_written, NULL, NULL, (void *)&stream_probe_zmm},
        {"copy: sse2", every_byte_is_copied, NULL, NULL, (void *)&stream_probe_sse2},
        {"copy: ymm", every_byte_is_copied, NULL, NULL, (void *)&stream_probe_ymm},
        {"copy: zmm", every_byte_is_copied, NULL, NULL, (void *)&stream_probe_zmm},
        {"function: sse2 exp", functions_are_accurate, NULL, NULL, (void *)&function_probe_sse2_exp},
        {"function: ymm exp", functions_are_accurate, NULL, NULL, (void *)&function_probe_ymm_exp},
        {"function: zmm exp", functions_are_accurate, NULL, NULL, (void *)&function_probe_zmm_exp},
        {"function: sse2 tanh", functions_are_accurate, NULL, NULL, (void *)&function_probe_sse2_tanh},
        {"function: ymm tanh", functions_are_accurate, NULL, NULL, (void *)&function_probe_ymm_tanh},
        {"function: zmm tanh", functions_are_accurate, NULL, NULL, (void *)&function_probe_zmm_tanh},
        cmocka_unit_test(tables_are_in_order),
        cmocka_unit_test(no_roof_is_made_of_other_elements),
        cmocka_unit_test(float_mode_is_told_and_cleared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
