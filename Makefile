# attnbench: how fast attention runs on a multicore CPU, and why. `make help` lists the targets.
# SPDX-License-Identifier: Apache-2.0

.DELETE_ON_ERROR:
.SUFFIXES:
.SECONDARY:
MAKEFLAGS += --no-builtin-rules
.DEFAULT_GOAL := all

comma := ,

# ---- what to build, and with what ----------------------------------------------------------------------------------
ifeq ($(origin CC),default)
CC := gcc
endif
MODE ?= release
PREFIX ?= /usr/local
compiler_family := $(if $(findstring clang,$(CC)),clang,gcc)
# gcc builds into build/<mode>, clang into build/clang-<mode>, so that both can stand side by side.
BUILD ?= build/$(if $(filter clang,$(compiler_family)),clang-)$(MODE)

mode_flags_release := -O3 -DNDEBUG
mode_flags_debug   := -O0 -g3
mode_flags_asan    := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
mode_flags_tsan    := -O1 -g -fsanitize=thread
MODE_FLAGS := $(mode_flags_$(MODE))
$(if $(MODE_FLAGS),,$(error MODE is release, debug, asan or tsan, not '$(MODE)'))

WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla
LIBRARIES := hwloc jansson yaml-0.1 sqlite3
LIBRARY_CFLAGS = $(shell pkg-config --cflags $(LIBRARIES))
LIBRARY_LDLIBS = $(shell pkg-config --libs $(LIBRARIES))
# likwid is optional, has no .pc file, and is opened at run time: its header tells whether a build knows it.
HAVE_LIKWID := $(shell printf '\043include <likwid.h>\n' | $(CC) -E -x c - >/dev/null 2>&1 && echo 1)
LIKWID_CFLAGS := $(if $(HAVE_LIKWID),-DHAVE_LIKWID)

# -ffp-contract=off: the reference and the portable kernels mean what they say; SIMD kernels name their FMAs.
COMMON_FLAGS := -std=c11 -D_GNU_SOURCE -g $(WARNINGS) -ffp-contract=off $(MODE_FLAGS) $(EXTRA_CFLAGS)

# ---- ISA flags by folder -------------------------------------------------------------------------------------------
isa_flags_baseline    :=
isa_flags_scalar      :=
isa_flags_avx2        := -mavx2 -mfma -mf16c
isa_flags_avx512      := -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c
isa_flags_avx512_bf16 := $(isa_flags_avx512) -mavx512bf16
folder_flags = $(isa_flags_$(notdir $(patsubst %/,%,$(dir $(1)))))
# A file may ask for flags of its own, with the measured reason beside it: a line " * build-flags: ..." in its opening
# comment; " * build-flags-clang: ..." where clang wants others.
file_flags = $(shell sed -n 's/^ \* build-flags$(if $(filter clang,$(compiler_family)),-clang): //p' $(1) | head -1)

# ---- sources -------------------------------------------------------------------------------------------------------
kernel_folders := scalar avx2 avx512 avx512_bf16
kernel_sources := $(sort $(wildcard $(kernel_folders:%=kernels/%/*.c)))
broken_sources := $(sort $(wildcard tests/broken/*.c))
schedule_sources := $(sort $(wildcard kernels/schedule/*.c))
layer_sources := $(sort $(wildcard kernels/layers/*.c))
# Adapters of other libraries, and what they share: a file with a table entry is an adapter.
peer_sources := $(sort $(wildcard kernels/peers/*.c))
peer_names := $(if $(peer_sources),$(notdir $(basename $(shell grep -l '^const struct attn_kernel attn_kernel_' $(peer_sources)))))
harness_sources := $(sort $(wildcard harness/*.c) $(wildcard harness/probe/*/*.c))
library_sources := $(filter-out harness/main.c,$(harness_sources)) $(schedule_sources) $(layer_sources) $(kernel_sources) \
    $(peer_sources)
check_sources := $(sort $(wildcard tests/check_*.c))
exp2_sources := $(sort $(wildcard tests/exp2/*/*.c))

object = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
library_objects := $(call object,$(library_sources))
kernel_objects := $(call object,$(kernel_sources))
main_objects := $(call object,harness/main.c)
broken_objects := $(call object,$(broken_sources))
check_programs := $(patsubst tests/%.c,$(BUILD)/tests/%,$(check_sources))

program := $(BUILD)/attnbench
broken_program := $(BUILD)/attnbench-broken
kernel_library := $(BUILD)/libattnkernels.so
manual := $(BUILD)/attnbench.1

# ---- generated: kernel registries and build facts, rewritten only when they change ---------------------------------
# naive, tiled, avx2, avx512 first (the order a reader expects), the others by name.
registry_names = $(foreach n,naive tiled avx2 avx512,$(filter $(n),$(basename $(notdir $(1))))) \
    $(sort $(filter-out naive tiled avx2 avx512,$(basename $(notdir $(1)))))
registry_array = extern const struct attn_kernel *const $(1)[];\nconst struct attn_kernel *const $(1)[] = {\n\
$(foreach n,$(2),    &attn_kernel_$(n),\n)    0};\n
registry_text = \#include "kernels/attn.h"\n\
$(foreach n,$(1) $(peer_names),extern const struct attn_kernel attn_kernel_$(n);\n)\
$(call registry_array,attn_registry,$(1))$(call registry_array,attn_peers,$(peer_names))
write_if_changed = mkdir -p $(dir $(1)) && printf '$(2)' >$(1).new && \
    { cmp -s $(1).new $(1) && rm $(1).new || mv $(1).new $(1); }

COMMIT := $(shell git rev-parse HEAD 2>/dev/null)
DIRTY := $(if $(COMMIT),$(if $(shell git --no-optional-locks status --porcelain --untracked-files=no 2>/dev/null | head -1),1,0),-1)
compiler_version := $(subst ','\'',$(shell $(CC) --version 2>/dev/null | head -1))
build_info_text = \#include "harness/build_info.h"\nconst char *const build_commit = "$(COMMIT)";\n\
const int build_dirty = $(DIRTY);\nconst char *const build_compiler = "$(compiler_version)";\n\
const char *const build_flags = "$(COMMON_FLAGS)";\nconst int build_has_likwid = $(if $(HAVE_LIKWID),1,0);\n

# ---- targets -------------------------------------------------------------------------------------------------------
# kernels is a folder, too.
.PHONY: kernels all test bench bars cliffs schedules gate print-build setup peers asan tsan lint manual install uninstall clean help programs checks run-tests run-bench FORCE

all: $(program) ## build build/release/attnbench

programs: $(program) $(broken_program)
kernels: $(kernel_library) ## build libattnkernels.so: this tree's kernels, for duet and gate to load beside others
checks: $(check_programs)

$(BUILD)/gen/registry.c: FORCE
	@$(call write_if_changed,$@,$(call registry_text,$(call registry_names,$(kernel_sources))))
$(BUILD)/gen/registry_broken.c: FORCE
	@$(call write_if_changed,$@,$(call registry_text,$(call registry_names,$(kernel_sources) $(broken_sources))))
$(BUILD)/gen/build_info.c: FORCE
	@$(call write_if_changed,$@,$(build_info_text))
# What libattnkernels.so exports: the plug-in table of kernels/attn.h.
library_text = \#include "kernels/attn.h"\n$(foreach n,$(1),extern const struct attn_kernel attn_kernel_$(n);\n)\
static const struct attn_kernel *const table[] = {\n$(foreach n,$(1),    &attn_kernel_$(n),\n)    0};\n\
__attribute__((visibility("default"))) attn_kernels_function attn_kernels;\n\
const struct attn_kernel *const *attn_kernels(uint32_t *abi)\n{\n    *abi = ATTN_ABI;\n    return table;\n}\n

# A change of compiler, its version included, or of flags rebuilds everything: objects of two compilers are no build.
$(BUILD)/gen/flags: FORCE
	@pkg-config --exists $(LIBRARIES) 2>/dev/null || \
	    { echo "pkg-config, or one of $(LIBRARIES), is missing: run 'make setup', or install them" >&2; exit 1; }
	@$(call write_if_changed,$@,$(CC) $(compiler_version) $(COMMON_FLAGS) $(LIKWID_CFLAGS)\n)

$(BUILD)/gen/%.o: $(BUILD)/gen/%.c $(BUILD)/gen/flags
	$(CC) $(COMMON_FLAGS) $(part_flags) -I. -MMD -MP -c -o $@ $<

$(BUILD)/gen/library.c: FORCE
	@$(call write_if_changed,$@,$(call library_text,$(call registry_names,$(kernel_sources))))
$(BUILD)/gen/library.o: part_flags = -fPIC -fvisibility=hidden

# Kernels serve the program and libattnkernels.so alike. Functions begin at cache lines: else a kernel's loops lie otherwise
# when another file grows, and gate tells of code that nobody touched (naive by 8 % when avx512.c got longer, 0 % so).
$(kernel_objects): part_flags = -fPIC -fvisibility=hidden -falign-functions=64

# OpenMP stands in the harness and the schedules, never in a kernel.
$(BUILD)/obj/kernels/schedule/%.o: part_flags = -fopenmp
$(BUILD)/obj/harness/%.o: part_flags = -fopenmp $(LIBRARY_CFLAGS) $(LIKWID_CFLAGS)
$(BUILD)/obj/tests/%.o: part_flags = -fopenmp $(LIBRARY_CFLAGS) -I.

$(BUILD)/obj/%.o: %.c $(BUILD)/gen/flags
	@mkdir -p $(dir $@)
	$(CC) $(COMMON_FLAGS) $(part_flags) $(call folder_flags,$<) $(call file_flags,$<) -MMD -MP -c -o $@ $<

# The compiler does not tell of what an assembler line includes.
$(BUILD)/obj/harness/report_assets.o: harness/report/page.css harness/report/page.js

link = $(CC) $(COMMON_FLAGS) -fopenmp -o $@ $(filter %.o,$^) $(LIBRARY_LDLIBS) -ldl -lm

$(program): $(main_objects) $(library_objects) $(BUILD)/gen/registry.o $(BUILD)/gen/build_info.o
	$(link)
# Several of them live in one process: each binds its own symbols, and shows the table alone. -z defs: nothing is left to
# be found elsewhere, so no OpenMP.
$(kernel_library): $(kernel_objects) $(BUILD)/gen/library.o
	$(CC) $(COMMON_FLAGS) -shared -Wl,-Bsymbolic$(if $(filter release debug,$(MODE)),$(comma)-z$(comma)defs) -o $@ $(filter %.o,$^) -lm
$(broken_program): $(main_objects) $(library_objects) $(broken_objects) $(BUILD)/gen/registry_broken.o $(BUILD)/gen/build_info.o
	$(link)
$(BUILD)/tests/%: $(BUILD)/obj/tests/%.o $(library_objects) $(BUILD)/gen/registry.o $(BUILD)/gen/build_info.o
	@mkdir -p $(dir $@)
	$(link) -lcmocka

# The kernels' 2^x, each with its kernels' flags, for the test that tries every float.
$(BUILD)/tests/check_exp2: $(call object,$(exp2_sources))

# What clang-tidy and editors read: one entry a file, with the flags that it is compiled with.
all_sources := $(harness_sources) $(schedule_sources) $(layer_sources) $(kernel_sources) $(peer_sources) $(broken_sources) \
    $(check_sources) $(exp2_sources)
compile_command = {"directory": "$(CURDIR)", "file": "$(1)", "command": "$(CC) $(COMMON_FLAGS) $(part_flags) \
$(call folder_flags,$(1)) $(call file_flags,$(1)) -c $(1)"}
$(BUILD)/compile_commands.json: part_flags = -fopenmp $(LIBRARY_CFLAGS) $(LIKWID_CFLAGS) -I.
$(BUILD)/compile_commands.json: FORCE
	@$(call write_if_changed,$@,[$(subst } {,}$(comma)\n{,$(strip $(foreach f,$(all_sources),$(call compile_command,$(f)))))]\n)

-include $(library_objects:.o=.d) $(main_objects:.o=.d) $(broken_objects:.o=.d) $(patsubst %.c,$(BUILD)/obj/%.d,$(check_sources) $(exp2_sources))
-include $(BUILD)/gen/library.d $(BUILD)/gen/registry.d $(BUILD)/gen/registry_broken.d $(BUILD)/gen/build_info.d

setup: ## install what building and testing need and is missing (apt, dnf, pacman, zypper)
	scripts/setup --test

peers: ## install the optional peer libraries (Debian packages, Python wheels under build/peers)
	scripts/install-peers

test: ## set up, build, run all tests; ends with "N passed, N failed, N skipped"
	scripts/setup --test
	$(MAKE) run-tests

run-tests: programs checks kernels
	scripts/run-tests $(BUILD)

bench: ## set up, build, run configs/quick.yaml: table, journal and report under results/local
	scripts/setup
	$(MAKE) run-bench

run-bench: all
	scripts/bench $(program)

bars: all ## run configs/bars.yaml three times: each bar of speed, the figure reached, pass or fall-short
	scripts/bars --program $(program)

cliffs: all ## run configs/cliffs.yaml: where speed falls from one length or head size to the next
	scripts/cliffs --program $(program)

schedules: all ## run configs/models.yaml under every schedule three times: how far auto is behind the fastest
	scripts/schedules --program $(program)

gate: ## are this tree's kernels slower than those of BASE=REV [CONFIG=NAME] [GATE_FLAGS=...]? (scripts/gate tells by exit code)
	@CC='$(CC)' MODE='$(MODE)' BUILD='$(BUILD)' EXTRA_CFLAGS='$(EXTRA_CFLAGS)' \
	    scripts/gate '$(BASE)' $(if $(CONFIG),--config '$(CONFIG)') $(GATE_FLAGS)

# For scripts: where this compiler and mode build.
print-build:
	@echo '$(BUILD)'

asan: ## all tests with address and undefined-behaviour sanitizers
	$(MAKE) MODE=asan run-tests

tsan: ## the threaded tests with the thread sanitizer (clang: gcc's OpenMP runtime gives false races)
	$(MAKE) CC=clang MODE=tsan run-tests

lint: ## clang-format, clang-tidy, shellcheck, headers that compile alone
	scripts/lint

# Hand-written but for its commands and flags, which the program tells.
$(manual): scripts/manual scripts/attnbench.1.in $(program)
	scripts/manual $(abspath $(program)) >$@

manual: $(manual) ## build the manual page: man -l build/release/attnbench.1

install: all $(manual) ## program, configs, schemas, manual and completion under DESTDIR PREFIX (/usr/local)
	DESTDIR='$(DESTDIR)' scripts/install-files install '$(PREFIX)' $(program) $(manual)

uninstall: ## take away all that install put there
	DESTDIR='$(DESTDIR)' scripts/install-files uninstall '$(PREFIX)'

clean: ## remove build/
	rm -rf build

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 12
