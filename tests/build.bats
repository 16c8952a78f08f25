#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# The build: idle make does nothing, a header rebuilds its dependents alone, other compilers and libraries.

# shellcheck source=tests/helpers.bash
. "$BATS_TEST_DIRNAME/helpers.bash"

# A copy of the tree with its objects, brought up to date once: the copy has no git, so its build facts differ.
fresh_copy() {
  copy_tree "$work/tree"
  copy_objects "$work/tree"
  cd "$work/tree" || return 1
  attempt make BUILD=build/release
  expect_status 0
}

@test "idle make does nothing, also outside git" {
  fresh_copy
  attempt make BUILD=build/release
  expect_status 0
  [ -z "$err" ] || tell "nothing on stderr expected"
  [[ $out != *" -c "* && $out != *" -o "* ]] || tell "nothing should be compiled or linked"
}

@test "a header that is touched rebuilds its dependents and nothing else" {
  fresh_copy
  local header=harness/fill.h expected built
  expected=$(grep -l "[ /]fill\.h" -r build/release/obj/harness build/release/obj/kernels --include='*.d' |
    sed 's/\.d$/.o/' | sort)
  [ -n "$expected" ]
  sleep 1
  touch "$header"
  attempt make BUILD=build/release
  expect_status 0
  built=$(grep -o -- '-o build/release/obj/[^ ]*\.o' "$work/stdout" | sed 's/^-o //' | sort)
  [ "$built" = "$expected" ] || tell "built: $built"$'\n'"expected: $expected"
  [ "$(wc -l <<<"$built")" -lt "$(find harness kernels -name '*.c' | wc -l)" ]
}

@test "the kernel interface rebuilds the registry" {
  fresh_copy
  sleep 1
  touch kernels/attn.h
  attempt make -n BUILD=build/release # every kernel anew: that would take minutes
  expect_status 0
  expect_out kernels/avx512/avx512.c
  attempt make BUILD=build/release build/release/gen/registry.o
  expect_status 0
  expect_out build/release/gen/registry.o
}

@test "other flags rebuild everything they touch" {
  fresh_copy
  attempt make -n BUILD=build/release EXTRA_CFLAGS=-DSOMETHING
  expect_status 0
  expect_out harness/main.o kernels/scalar/naive.o
}

@test "another version of the compiler rebuilds what the one before it built" {
  mkdir bin
  # shellcheck disable=SC2016 # the script made expands it
  printf '#!/bin/sh\n[ "$1" = --version ] && exec cat %s\nexec gcc "$@"\n' "$work/version" >bin/gcc-here
  chmod +x bin/gcc-here
  cd "$root"
  local object=$work/b/obj/harness/error.o
  compile() { attempt make CC="$work/bin/gcc-here" BUILD="$work/b" "$object" && expect_status 0; }
  echo "gcc (it's here) 12.1" >"$work/version"
  compile
  expect_out "-o $object"
  compile
  [[ $out != *"-o $object"* ]] || tell "nothing should be compiled"
  echo "gcc (it's here) 12.2" >"$work/version"
  compile
  expect_out "-o $object"
}

@test "clang builds it without a warning" {
  command -v clang >/dev/null || skip "clang is not here"
  printf '#include <omp.h>\nint main(void) { return 0; }\n' | clang -fopenmp -x c -o "$work/probe" - 2>/dev/null ||
    skip "clang has no OpenMP runtime here"
  copy_tree "$work/tree"
  cd "$work/tree"
  LIMIT=400 attempt make -j2 CC=clang MODE=debug
  expect_status 0
  [ -z "$err" ] || tell "no warning expected"
  attempt build/clang-debug/attnbench list kernels
  expect_status 0
}

@test "gcc builds it without optimisation, without likwid and without a warning" {
  copy_tree "$work/tree"
  cd "$work/tree"
  LIMIT=400 attempt make -j2 MODE=debug HAVE_LIKWID=
  expect_status 0
  [ -z "$err" ] || tell "no warning expected"
  attempt build/debug/attnbench list kernels
  expect_status 0
  if ldd build/debug/attnbench | grep likwid; then return 1; fi
}

@test "make install: the program finds its configs from anywhere" {
  fresh_copy
  attempt make BUILD=build/release PREFIX="$work/prefix" install
  expect_status 0
  cd /
  attempt "$work/prefix/bin/attnbench" list configs
  expect_status 0
  expect_out quick models
  attempt make -C "$work/tree" BUILD=build/release PREFIX="$work/prefix" uninstall
  expect_status 0
  [ ! -e "$work/prefix" ] || tell "left: $(find "$work/prefix")"
}

@test "make help lists the targets" {
  cd "$root"
  attempt make help
  expect_status 0
  expect_out all setup test bench asan tsan lint manual install uninstall clean
}

@test "scripts/setup --check tells and changes nothing" {
  attempt "$root/scripts/setup" --check
  expect_status 0
  attempt "$root/scripts/setup" --frobnicate
  [ "$status" = 2 ] || tell "2 expected"
}
