/* SPDX-License-Identifier: Apache-2.0
 *
 * What vector instructions this machine can run: CPUID says what the CPU has, XGETBV what the OS saves.
 */
#ifndef HARNESS_ISA_H
#define HARNESS_ISA_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "../kernels/attn.h"

/* ATTN_ISA_* bits usable here: CPU and OS both, lowered by ATTNBENCH_ISA=scalar|avx2|avx512 (avx512: everything; no
 * effect upwards). An unknown value of the variable is for isa_check_environment to refuse. Cached after the first
 * call. */
uint64_t isa_available(void);

/* NULL, or why ATTNBENCH_ISA is not understood. */
const char *isa_check_environment(void);

/* "avx2 fma" for a set of bits, interned. */
const char *isa_names(uint64_t bits);

/* {"avx2":{"cpu":true,"os":true}, ...} for the context record. */
json_t *isa_to_json(void);

/* CPUID's brand string, trimmed and interned. Differs from /proc/cpuinfo's under user-mode emulation. */
const char *isa_cpu_brand(void);

/* Who runs this machine by CPUID: "kvm", "xen", ...; "none": bare metal; NULL: unknown. */
const char *isa_hypervisor(void);

/* True under user-mode emulation (qemu-user): the CPU that this process sees is not the one that the kernel tells of,
 * so executing a child would leave the emulation. */
bool isa_emulated(void);

#endif
