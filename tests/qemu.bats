#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Older machines, by emulation: no AVX-512 on Haswell, no AVX on Nehalem. Nothing may end in an illegal instruction.

# shellcheck source=tests/helpers.bash
. "$BATS_TEST_DIRNAME/helpers.bash"

emulated() { # CPU ARGUMENTS...
  command -v qemu-x86_64 >/dev/null || skip "qemu-x86_64 is not here"
  [ "$MODE" = release ] || skip "not under a sanitizer"
  local cpu=$1
  shift
  # qemu's own warnings about features that it lacks are not the program's.
  LIMIT=300 attempt qemu-x86_64 -cpu "$cpu" "$ATTNBENCH" "$@"
}

@test "Haswell: list says why avx512 cannot run" {
  emulated Haswell list kernels
  expect_status 0
  expect_out naive tiled avx2
  grep avx512 "$work/stdout" | grep -qi 'avx512f\|not\|no ' || tell "a reason expected"
}

@test "Nehalem: list says why avx2 cannot run" {
  emulated Nehalem list kernels
  expect_status 0
  grep 'avx2' "$work/stdout" | grep -qi 'avx2\|not\|no ' || tell "a reason expected"
}

@test "Haswell: naive, tiled and avx2 are right" {
  emulated Haswell verify -S 7 -D 5,16 -H 2 --causal none,bottom_right --kernel 'naive,tiled,avx2'
  expect_status 0
  expect_out naive tiled avx2
}

@test "Nehalem: naive and tiled are right" {
  emulated Nehalem verify -S 7 -D 5,16 -H 2 --causal none,bottom_right --kernel 'naive,tiled'
  expect_status 0
  expect_out naive tiled
}

@test "Haswell and Nehalem: a few seeded problems, every kernel that can" {
  emulated Haswell verify --cases 4
  expect_status 0
  emulated Nehalem verify --cases 4
  expect_status 0
}
