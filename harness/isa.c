/* SPDX-License-Identifier: Apache-2.0
 *
 * CPUID tells what the CPU has, XGETBV which registers the OS saves; a feature counts only where both agree. On other
 * architectures nothing is reported and every kernel that needs an ISA bit is left out.
 */
#include "isa.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "intern.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#define HAVE_CPUID 1
#else
#define HAVE_CPUID 0
#endif

enum cpuid_register { EAX, EBX, ECX, EDX };

/* XCR0 bits: 1 SSE, 2 AVX (upper halves of ymm), 5 opmask, 6 upper halves of zmm0-15, 7 zmm16-31. */
#define XCR0_YMM UINT64_C(0x06)
#define XCR0_ZMM UINT64_C(0xe6)

struct feature {
    const char *name;
    uint64_t bit;
    uint32_t leaf, subleaf;
    enum cpuid_register reg;
    unsigned position;
    uint64_t saved; /* XCR0 bits that must be set */
};

static const struct feature features[] = {
    {"avx2", ATTN_ISA_AVX2, 7, 0, EBX, 5, XCR0_YMM},
    {"fma", ATTN_ISA_FMA, 1, 0, ECX, 12, XCR0_YMM},
    {"f16c", ATTN_ISA_F16C, 1, 0, ECX, 29, XCR0_YMM},
    {"avx512f", ATTN_ISA_AVX512F, 7, 0, EBX, 16, XCR0_ZMM},
    {"avx512bw", ATTN_ISA_AVX512BW, 7, 0, EBX, 30, XCR0_ZMM},
    {"avx512dq", ATTN_ISA_AVX512DQ, 7, 0, EBX, 17, XCR0_ZMM},
    {"avx512vl", ATTN_ISA_AVX512VL, 7, 0, EBX, 31, XCR0_ZMM},
    {"avx512_bf16", ATTN_ISA_AVX512_BF16, 7, 1, EAX, 5, XCR0_ZMM},
    {"avx512_vnni", ATTN_ISA_AVX512_VNNI, 7, 0, ECX, 11, XCR0_ZMM},
};
enum { FEATURES = sizeof features / sizeof features[0] };

static bool cpuid(uint32_t leaf, uint32_t subleaf, uint32_t reg[4])
{
#if HAVE_CPUID
    /* Leaf 7 tells in EAX how many subleaves it has; one beyond that answers with another leaf's data on some CPUs. */
    if (leaf == 7 && subleaf > 0 &&
        (!__get_cpuid_count(7, 0, &reg[EAX], &reg[EBX], &reg[ECX], &reg[EDX]) || reg[EAX] < subleaf))
        return false;
    return __get_cpuid_count(leaf, subleaf, &reg[EAX], &reg[EBX], &reg[ECX], &reg[EDX]);
#else
    (void)leaf, (void)subleaf, (void)reg;
    return false;
#endif
}

static uint64_t xcr0(void)
{
#if HAVE_CPUID
    uint32_t reg[4];
    const uint32_t osxsave = UINT32_C(1) << 27;
    if (!cpuid(1, 0, reg) || !(reg[ECX] & osxsave))
        return 0;
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
#else
    return 0;
#endif
}

static bool cpu_has(const struct feature *feature)
{
    uint32_t reg[4];
    return cpuid(feature->leaf, feature->subleaf, reg) && (reg[feature->reg] >> feature->position & 1);
}

static bool os_saves(const struct feature *feature)
{
    return (xcr0() & feature->saved) == feature->saved;
}

/* The bits that ATTNBENCH_ISA leaves; *known says whether the value means something. */
static uint64_t environment_bits(bool *known)
{
    const uint64_t avx2 = ATTN_ISA_AVX2 | ATTN_ISA_FMA | ATTN_ISA_F16C;
    const char *wanted = getenv("ATTNBENCH_ISA");
    *known = true;
    if (!wanted || !*wanted || strcmp(wanted, "avx512") == 0)
        return UINT64_MAX;
    if (strcmp(wanted, "avx2") == 0)
        return avx2;
    if (strcmp(wanted, "scalar") == 0)
        return 0;
    *known = false;
    return UINT64_MAX;
}

uint64_t isa_available(void)
{
    static bool done;
    static uint64_t bits;
    if (!done) {
        bool known;
        for (int i = 0; i < FEATURES; i++)
            if (cpu_has(&features[i]) && os_saves(&features[i]))
                bits |= features[i].bit;
        bits &= environment_bits(&known);
        done = true;
    }
    return bits;
}

const char *isa_check_environment(void)
{
    bool known;
    environment_bits(&known);
    return known ? NULL : intern_format("ATTNBENCH_ISA is scalar, avx2 or avx512, not '%s'", getenv("ATTNBENCH_ISA"));
}

const char *isa_names(uint64_t bits)
{
    char text[256] = "";
    size_t used = 0;
    for (int i = 0; i < FEATURES; i++)
        if (bits & features[i].bit)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", used ? " " : "", features[i].name);
    return intern(text);
}

json_t *isa_to_json(void)
{
    json_t *object = json_object();
    for (int i = 0; i < FEATURES; i++)
        json_object_set_new(object, features[i].name,
                            json_pack("{s:b, s:b}", "cpu", cpu_has(&features[i]), "os", os_saves(&features[i])));
    return object;
}

/* Copies text without white space at its ends, and with single spaces inside. */
static void squeeze(char *to, size_t capacity, const char *text)
{
    size_t used = 0;
    for (; *text && used + 2 < capacity; text++) {
        if (!isspace((unsigned char)*text))
            to[used++] = *text;
        else if (used > 0 && to[used - 1] != ' ')
            to[used++] = ' ';
    }
    if (used > 0 && to[used - 1] == ' ')
        used--;
    to[used] = '\0';
}

const char *isa_cpu_brand(void)
{
    char raw[49] = "", brand[49];
    uint32_t reg[4];
    for (uint32_t i = 0; i < 3 && cpuid(0x80000002u + i, 0, reg); i++)
        memcpy(raw + 16 * i, reg, 16);
    squeeze(brand, sizeof brand, raw);
    return intern(brand);
}

const char *isa_hypervisor(void)
{
    static const struct {
        const char *signature, *name;
    } known[] = {{"KVMKVMKVM", "kvm"},     {"Microsoft Hv", "hyperv"}, {"VMwareVMware", "vmware"},
                 {"XenVMMXenVMM", "xen"},  {"TCGTCGTCGTCG", "qemu"},   {"bhyve bhyve ", "bhyve"},
                 {"VBoxVBoxVBox", "vbox"}, {"ACRNACRNACRN", "acrn"},   {"prl hyperv  ", "parallels"},
                 {"Linux KVM Hv", "kvm"}};
    uint32_t reg[4];
    if (!cpuid(1, 0, reg))
        return NULL;
    if (!(reg[ECX] >> 31))
        return "none";
    char signature[13] = "";
#if HAVE_CPUID
    __cpuid(0x40000000, reg[EAX], reg[EBX], reg[ECX], reg[EDX]);
    memcpy(signature, &reg[EBX], 12);
#endif
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strncmp(signature, known[i].signature, sizeof signature) == 0)
            return known[i].name;
    for (char *c = signature; *c; c++)
        if (!isprint((unsigned char)*c))
            *c = '?';
    return *signature ? intern_format("unknown (%s)", signature) : "unknown";
}

bool isa_emulated(void)
{
    static int answer = -1;
    if (answer >= 0)
        return answer;
    answer = 0;
    const char *brand = isa_cpu_brand();
    FILE *file = *brand ? fopen("/proc/cpuinfo", "re") : NULL;
    if (!file)
        return false;
    /* The kernel took its model name from CPUID too, so on the bare CPU one of its lines is the brand string. */
    bool told = false, same = false;
    char *line = NULL;
    size_t capacity = 0;
    while (!same && getline(&line, &capacity, file) > 0) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon)
            continue;
        char name[256];
        squeeze(name, sizeof name, colon + 1);
        told = true;
        same = strcmp(name, brand) == 0;
    }
    free(line);
    fclose(file);
    answer = told && !same;
    return answer;
}
