#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# A new kernel is one new file: in a copy of the tree it shows up in list, verify and run with no other edit.

# shellcheck source=tests/helpers.bash
. "$BATS_TEST_DIRNAME/helpers.bash"

@test "one new file adds a kernel, removing it removes the kernel" {
  copy_tree "$work/tree"
  copy_objects "$work/tree"
  cd "$work/tree"
  sed 's/attn_kernel_naive/attn_kernel_mynaive/; s/"naive"/"mynaive"/' kernels/scalar/naive.c >kernels/scalar/mynaive.c
  attempt make BUILD=build/release
  expect_status 0
  local mine=$work/tree/build/release/attnbench

  attempt "$mine" list kernels
  expect_out mynaive
  attempt "$mine" verify --kernel mynaive --cases 20
  expect_status 0
  expect_out mynaive
  attempt "$mine" run "${cheap[@]}" -S 32 -D 16 --kernel mynaive --threads 1 --out "$work/out.jsonl"
  expect_status 0
  holds "$work/out.jsonl" '[(r["kernel"], r["status"]) for r in records] == [("mynaive", "ok")]'
  attempt "$mine" run "${cheap[@]}" -S 32 -D 16 --threads 1 -o jsonl
  holds "$work/stdout" '"mynaive" in {r["kernel"] for r in records}'

  rm kernels/scalar/mynaive.c
  attempt make BUILD=build/release
  expect_status 0
  attempt "$mine" list kernels
  expect_status 0
  [[ $out != *mynaive* ]] || tell "should have left the registry"
}
