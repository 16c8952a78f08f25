/* SPDX-License-Identifier: Apache-2.0
 *
 * ISA detection against two other witnesses (the compiler's run-time library and the kernel's list of flags), and
 * ATTNBENCH_ISA in fresh processes, since the answer is kept after the first call.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "harness/isa.h"

#define AVX2_BITS (ATTN_ISA_AVX2 | ATTN_ISA_FMA | ATTN_ISA_F16C)

/* isa_available() of a process that began with this value of ATTNBENCH_ISA (NULL: not set). */
static uint64_t available_with(const char *value)
{
    int ends[2];
    uint64_t bits = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (value)
            setenv("ATTNBENCH_ISA", value, 1);
        else
            unsetenv("ATTNBENCH_ISA");
        bits = isa_available();
        _exit(write(ends[1], &bits, sizeof bits) == sizeof bits ? 0 : 1);
    }
    int status;
    assert_int_equal(read(ends[0], &bits, sizeof bits), sizeof bits);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(ends[0]);
    close(ends[1]);
    return bits;
}

static void agrees_with_the_compiler(void **state)
{
    (void)state;
#ifdef __x86_64__
    const uint64_t bits = available_with(NULL);
    __builtin_cpu_init();
    assert_int_equal((bits & ATTN_ISA_AVX2) != 0, __builtin_cpu_supports("avx2") != 0);
    assert_int_equal((bits & ATTN_ISA_FMA) != 0, __builtin_cpu_supports("fma") != 0);
    assert_int_equal((bits & ATTN_ISA_AVX512F) != 0, __builtin_cpu_supports("avx512f") != 0);
    assert_int_equal((bits & ATTN_ISA_AVX512BW) != 0, __builtin_cpu_supports("avx512bw") != 0);
    assert_int_equal((bits & ATTN_ISA_AVX512DQ) != 0, __builtin_cpu_supports("avx512dq") != 0);
    assert_int_equal((bits & ATTN_ISA_AVX512VL) != 0, __builtin_cpu_supports("avx512vl") != 0);
    assert_int_equal((bits & ATTN_ISA_AVX512_VNNI) != 0, __builtin_cpu_supports("avx512vnni") != 0);
    assert_int_equal((bits & ATTN_ISA_AVX512_BF16) != 0, __builtin_cpu_supports("avx512bf16") != 0);
#else
    assert_int_equal(available_with(NULL), 0);
#endif
}

/* The kernel lists a flag only where it also saves the registers. */
static void agrees_with_the_kernel(void **state)
{
    (void)state;
    static const struct {
        uint64_t bit;
        const char *flag;
    } flags[] = {{ATTN_ISA_AVX2, " avx2 "},         {ATTN_ISA_FMA, " fma "},
                 {ATTN_ISA_F16C, " f16c "},         {ATTN_ISA_AVX512F, " avx512f "},
                 {ATTN_ISA_AVX512BW, " avx512bw "}, {ATTN_ISA_AVX512_BF16, " avx512_bf16 "},
                 {ATTN_ISA_AVX512DQ, " avx512dq "}, {ATTN_ISA_AVX512_VNNI, " avx512_vnni "}};
    char *line = NULL;
    size_t capacity = 0;
    bool found = false;
    FILE *file = isa_emulated() ? NULL : fopen("/proc/cpuinfo", "r");
    while (file && !found && getline(&line, &capacity, file) > 0)
        found = strncmp(line, "flags", 5) == 0;
    if (file)
        fclose(file);
    if (!found) {
        free(line);
        print_message("no flags in /proc/cpuinfo, or emulated\n");
        skip();
        return;
    }
    line[strcspn(line, "\n")] = ' ';
    const uint64_t bits = available_with(NULL);
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        assert_int_equal((bits & flags[i].bit) != 0, strstr(line, flags[i].flag) != NULL);
    free(line);
}

static void the_variable_lowers(void **state)
{
    (void)state;
    const uint64_t all = available_with(NULL);
    assert_int_equal(available_with("scalar"), 0);
    assert_int_equal(available_with("avx2"), all & AVX2_BITS);
    assert_int_equal(available_with("avx512"), all);
    assert_int_equal(available_with(""), all);
}

static void an_unknown_value_is_refused(void **state)
{
    (void)state;
    static const char *const good[] = {"scalar", "avx2", "avx512", ""};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        setenv("ATTNBENCH_ISA", good[i], 1);
        assert_null(isa_check_environment());
    }
    setenv("ATTNBENCH_ISA", "AVX-512", 1);
    const char *message = isa_check_environment();
    assert_non_null(message);
    assert_non_null(strstr(message, "AVX-512"));
    assert_non_null(strstr(message, "ATTNBENCH_ISA"));
    unsetenv("ATTNBENCH_ISA");
    assert_null(isa_check_environment());
}

static void names_and_json(void **state)
{
    (void)state;
    assert_string_equal(isa_names(AVX2_BITS), "avx2 fma f16c");
    assert_string_equal(isa_names(ATTN_ISA_AVX512_BF16), "avx512_bf16");
    assert_string_equal(isa_names(0), "");
    /* What is available is what both the CPU and the operating system offer. */
    const uint64_t bits = available_with(NULL);
    uint64_t by_json = 0;
    json_t *object = isa_to_json();
    for (unsigned position = 0; position < 9; position++) {
        const uint64_t bit = ATTN_BIT(position);
        const json_t *entry = json_object_get(object, isa_names(bit));
        assert_true(json_is_boolean(json_object_get(entry, "cpu")));
        assert_true(json_is_boolean(json_object_get(entry, "os")));
        if (json_is_true(json_object_get(entry, "cpu")) && json_is_true(json_object_get(entry, "os")))
            by_json |= bit;
    }
    assert_int_equal(json_object_size(object), 9);
    assert_int_equal(by_json, bits);
    json_decref(object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_the_compiler), cmocka_unit_test(agrees_with_the_kernel),
        cmocka_unit_test(the_variable_lowers),      cmocka_unit_test(an_unknown_value_is_refused),
        cmocka_unit_test(names_and_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
