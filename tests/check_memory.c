/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of operands: guard pages fault, canaries tell of stray writes, pages are what smaps says, sizes are exact.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "harness/fill.h"
#include "harness/operands.h"

static struct memory_block allocate(size_t bytes, enum memory_kind kind)
{
    struct memory_block block;
    struct error error;
    assert_int_equal(memory_allocate(&block, bytes, kind, &error), 0);
    assert_non_null(block.data);
    assert_int_equal(block.bytes, bytes);
    return block;
}

/* Whether touching this byte kills a child with SIGSEGV. */
static bool faults(volatile unsigned char *address, bool write)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        signal(SIGSEGV, SIG_DFL);
        unsigned char seen = *address;
        if (write)
            *address = (unsigned char)(seen + 1);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

static void guard_pages_fault_on_both_sides(void **state)
{
    (void)state;
    const size_t sizes[] = {0, 4, 100, 4096, 4100, 70000};
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct memory_block block = allocate(sizes[i], MEMORY_GUARDED);
        unsigned char *data = block.data;
        memset(data, 1, block.bytes);
        assert_true(faults(data + block.bytes, false));
        assert_true(faults(data + block.bytes, true));
        assert_true(faults(data - page, false));
        if (block.bytes > 0) {
            assert_false(faults(data, true));
            assert_false(faults(data + block.bytes - 1, true));
        }
        assert_null(memory_canary_broken(&block));
        memory_release(&block);
    }
}

static void canaries_tell_which_side_was_overwritten(void **state)
{
    (void)state;
    const enum memory_kind kinds[] = {MEMORY_HUGE, MEMORY_PLAIN};
    for (int k = 0; k < 2; k++) {
        struct memory_block block = allocate(1000, kinds[k]);
        unsigned char *data = block.data;
        assert_int_equal((uintptr_t)data % 64, 0);
        memset(data, 0, block.bytes);
        assert_null(memory_canary_broken(&block));
        for (ptrdiff_t at = -64; at < 1000 + 64; at++) {
            if (at >= 0 && at < 1000)
                continue;
            data[at] ^= 0x40;
            const char *broken = memory_canary_broken(&block);
            assert_non_null(broken);
            assert_non_null(strstr(broken, at < 0 ? "before" : "behind"));
            data[at] ^= 0x40;
        }
        assert_null(memory_canary_broken(&block));
        memory_release(&block);
    }
    /* In front of guarded data there is a rest of a page, which is watched too. */
    struct memory_block block = allocate(100, MEMORY_GUARDED);
    ((unsigned char *)block.data)[-1] ^= 1;
    assert_non_null(memory_canary_broken(&block));
    memory_release(&block);
}

static void page_mode_is_read_back(void **state)
{
    (void)state;
    struct memory_block plain = allocate(9 << 20, MEMORY_GUARDED), huge = allocate(9 << 20, MEMORY_HUGE);
    const struct memory_block *first[] = {&plain}, *second[] = {&huge}, *both[] = {&plain, &huge};
    memset(plain.data, 1, plain.bytes);
    memset(huge.data, 1, huge.bytes);
    /* "always" in the kernel's setting gives huge pages unasked; "never" gives none: both are told as they are. */
    const char *small = memory_page_mode(first, 1), *large = memory_page_mode(second, 1);
    assert_non_null(small);
    assert_non_null(large);
    assert_true((uintptr_t)huge.base % (2 << 20) == 0);
    if (strcmp(small, "4k") == 0 && strcmp(large, "2m") == 0)
        assert_string_equal(memory_page_mode(both, 2), "mixed");
    else
        print_message("# huge pages here: plain %s, asked for %s\n", small, large);
    memory_release(&plain);
    memory_release(&huge);
    assert_null(memory_page_mode(second, 1));
}

static void impossible_sizes_are_errors(void **state)
{
    (void)state;
    for (int kind = MEMORY_HUGE; kind <= MEMORY_PLAIN; kind++) {
        struct memory_block block;
        struct error error = {0};
        assert_true(memory_allocate(&block, SIZE_MAX - 5, (enum memory_kind)kind, &error) < 0);
        assert_non_null(strstr(error.text, "allocate"));
        assert_null(block.data);
        memory_release(&block);
    }
}

static struct problem_spec everything(void)
{
    struct problem_spec spec = spec_default();
    spec.B = 2;
    spec.H = 6;
    spec.H_kv = 3;
    spec.S_q = 5;
    spec.S_kv = 7;
    spec.D = 11;
    spec.D_v = 13;
    spec.weights = true;
    spec.bias = true;
    spec.mask_share = 0.5;
    return spec;
}

static void operands_have_the_sizes_and_strides_of_their_layout(void **state)
{
    (void)state;
    const int64_t expected[][4] = {
        {6 * 5 * 11, 5 * 11, 11, 1}, {5 * 6 * 11, 11, 6 * 11, 1}, {5 * 11, 2 * 5 * 11, 11, 1}};
    for (int layout = LAYOUT_BHSD; layout <= LAYOUT_HBSD; layout++)
        for (int kind = MEMORY_HUGE; kind <= MEMORY_PLAIN; kind++) {
            struct problem_spec spec = everything();
            struct operands o;
            struct error error;
            spec.layout = (enum layout)layout;
            assert_int_equal(operands_create(&spec, (enum memory_kind)kind, &o, &error), 0);
            assert_memory_equal(o.args.q.stride, expected[layout], sizeof expected[layout]);
            const int64_t weights[4] = {6 * 5 * 7, 5 * 7, 7, 1}, bias[4] = {0, 5 * 7, 7, 1}, mask[4] = {5 * 7, 0, 7, 1};
            const int64_t pairs[4] = {2, 6, 5, 7};
            assert_memory_equal(o.args.weights.stride, weights, sizeof weights);
            assert_memory_equal(o.args.bias.stride, bias, sizeof bias);
            assert_memory_equal(o.args.mask.stride, mask, sizeof mask);
            assert_memory_equal(o.args.mask.size, pairs, sizeof pairs);
            double bytes = (double)(o.q.bytes + o.k.bytes + o.v.bytes + o.out.bytes + o.weights.bytes + o.bias.bytes +
                                    o.mask.bytes);
            assert_true(operands_bytes(&spec) == bytes);
            assert_int_equal(o.v.bytes, 4 * 2 * 3 * 7 * 13);
            operands_fill(&o, 0, 2);
            operands_poison(&o, 2);
            for (size_t i = 0; i < o.out.bytes / 4; i++)
                assert_true(((float *)o.out.data)[i] != ((float *)o.out.data)[i]);
            for (size_t i = 0; i < o.weights.bytes / 4; i++)
                assert_true(((float *)o.weights.data)[i] != ((float *)o.weights.data)[i]);
            assert_null(memory_canary_broken(&o.out));
            assert_null(memory_canary_broken(&o.q));
            operands_destroy(&o);
        }
}

static void poison_is_nan_in_every_dtype(void **state)
{
    (void)state;
    for (int dtype = ATTN_BF16; dtype <= ATTN_F16; dtype++) {
        struct problem_spec spec = everything();
        struct operands o;
        struct error error;
        spec.dtype = (enum attn_dtype)dtype;
        assert_int_equal(operands_create(&spec, MEMORY_PLAIN, &o, &error), 0);
        assert_true(operands_bytes(&spec) == (double)(o.q.bytes + o.k.bytes + o.v.bytes + o.out.bytes +
                                                      o.weights.bytes + o.bias.bytes + o.mask.bytes));
        operands_poison(&o, 1);
        for (size_t i = 0; i < o.out.bytes / 2; i++) {
            uint16_t x = ((uint16_t *)o.out.data)[i];
            float value = dtype == ATTN_BF16 ? float_from_bf16(x) : float_from_f16(x);
            assert_true(value != value);
        }
        operands_destroy(&o);
    }
}

static void aliases_share_memory_and_count_once(void **state)
{
    (void)state;
    struct problem_spec spec = spec_default();
    struct operands o;
    struct error error;
    spec.alias = ALIAS_KV;
    assert_int_equal(operands_create(&spec, MEMORY_GUARDED, &o, &error), 0);
    assert_ptr_equal(o.args.v.data, o.args.k.data);
    assert_ptr_not_equal(o.args.q.data, o.args.k.data);
    assert_true(operands_bytes(&spec) == 3.0 * 512 * 64 * 4);
    assert_true(o.problem.flags & ATTN_FLAG_ALIASED);
    operands_fill(&o, 0, 1);
    operands_destroy(&o);
    spec.alias = ALIAS_QKV;
    assert_int_equal(operands_create(&spec, MEMORY_GUARDED, &o, &error), 0);
    assert_ptr_equal(o.args.v.data, o.args.q.data);
    assert_ptr_equal(o.args.k.data, o.args.q.data);
    assert_true(operands_bytes(&spec) == 2.0 * 512 * 64 * 4);
    operands_fill(&o, 0, 1);
    operands_destroy(&o);
}

static void zero_sizes_are_legal(void **state)
{
    (void)state;
    for (int zero = 0; zero < 3; zero++)
        for (int kind = MEMORY_HUGE; kind <= MEMORY_PLAIN; kind++) {
            struct problem_spec spec = everything();
            struct operands o;
            struct error error;
            *(zero == 0 ? &spec.B : zero == 1 ? &spec.S_q : &spec.S_kv) = 0;
            assert_int_equal(operands_create(&spec, (enum memory_kind)kind, &o, &error), 0);
            operands_fill(&o, 0, 2);
            operands_poison(&o, 1);
            assert_non_null(o.args.out.data);
            (void)operands_input_digest(&o);
            operands_destroy(&o);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(guard_pages_fault_on_both_sides),
        cmocka_unit_test(canaries_tell_which_side_was_overwritten),
        cmocka_unit_test(page_mode_is_read_back),
        cmocka_unit_test(impossible_sizes_are_errors),
        cmocka_unit_test(operands_have_the_sizes_and_strides_of_their_layout),
        cmocka_unit_test(poison_is_nan_in_every_dtype),
        cmocka_unit_test(aliases_share_memory_and_count_once),
        cmocka_unit_test(zero_sizes_are_legal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
