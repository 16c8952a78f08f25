#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# scripts/gate and the files for CI services, in a small repository whose Makefile builds the library of these tests by the
# same targets as ours.

# shellcheck source=tests/helpers.bash
. "$BATS_TEST_DIRNAME/helpers.bash"
# shellcheck source=tests/gate.bash
. "$BATS_TEST_DIRNAME/gate.bash"

repository() { # commits: without the target kernels (tag old), base (tag base), slower (branch change)
  export ATTNBENCH GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@t GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@t
  git init -q -b main repo
  cd repo || return 1
  mkdir -p scripts/ci configs kernels tests
  cp "$root/scripts/gate" scripts/
  cp "$root"/scripts/ci/*.yml scripts/ci/
  cp -R "$root/tests/broken" "$root/tests/broken_plugin" "$root/tests/gate_library.c" tests/
  cp "$root/kernels/attn.h" kernels/
  printf '#!/bin/sh\n' >scripts/setup
  chmod +x scripts/setup
  printf 'name: ci\nsweeps:\n  - {S: 48, D: 16, threads: 1, kernel: [changed]}\n' >configs/ci.yaml
  printf '/build/\n/results/local/\n' >.gitignore
  printf 'all:\n' >Makefile
  git add -A
  git commit -qm old
  git tag old
  cat >Makefile <<'MAKE'
BUILD ?= build/$(MODE)
MODE ?= release
FLAGS :=
.PHONY: kernels all print-build
kernels:
	mkdir -p $(BUILD)
	$(CC) -std=c11 -D_GNU_SOURCE -O2 -fPIC -shared $(FLAGS) $(EXTRA_CFLAGS) -o $(BUILD)/libattnkernels.so tests/gate_library.c -lm
all:
	mkdir -p $(BUILD)
	cmp -s $(ATTNBENCH) $(BUILD)/attnbench || cp $(ATTNBENCH) $(BUILD)/attnbench
print-build:
	@echo $(BUILD)
MAKE
  git add -A
  git commit -qm base
  git tag base
  git checkout -q -b change
  sed -i 's/^FLAGS :=/FLAGS := -DEXTRA=70/' Makefile
  git commit -qam change
}

tidy() { # nothing is left behind: no worktree, no change in tree or index
  [ "$(git worktree list | wc -l)" = 1 ]
  [ -z "$(ls -d build/gate-base/run-* build/gate-base/tree 2>/dev/null)" ]
  [ "$(git status --porcelain)" = "$1" ]
}

@test "a slower tree is exit 3; the base is built once, by its own Makefile, and leaves no worktree" {
  repository
  mkdir -p build/gate-base/run-killed build/gate-base/run-measuring
  touch build/gate-base/run-killed/libattnkernels.so
  git worktree add -q --lock --detach build/gate-base/tree base # as one that was killed leaves it
  exec 7<build/gate-base/run-measuring
  flock 7
  attempt scripts/gate base --tau 20%
  rmdir build/gate-base/run-measuring # is another's, who still measures
  exec 7<&-
  expect_status 3
  expect_out "regression: 1 regression" changed
  [[ $err == *"gate: building base ("*"journal: results/local/gate-"* ]] || tell "what it did is told"
  tidy ""
  attempt scripts/gate base --tau 20% --max-time 0.01s --out gate.jsonl
  expect_status 4
  [[ $err != *building* ]] || tell "the base was built before"
  [ -s gate.jsonl ]
}

@test "uncommitted changes are what is judged, and stay as they are" {
  repository
  sed -i 's/-DEXTRA=70/-DWRONG/' Makefile
  echo staged >new
  git add new
  before=$(git status --porcelain)
  attempt scripts/gate base --tau 20%
  expect_status 1
  expect_out "wrong results"
  tidy "$before"
}

@test "a base without such a target, that does not build, or of another ABI is not comparable" {
  repository
  attempt scripts/gate old
  expect_refusal 4 "not comparable: old (" "no Makefile target 'kernels'"
  tidy ""
  git checkout -q -b broken base
  sed -i 's/^FLAGS :=/FLAGS := -DSYNTAX -Dstatic=nonsense/' Makefile
  git commit -qam broken
  git checkout -q -b newer base
  sed -i 's/^FLAGS :=/FLAGS := -DNEWER/' Makefile
  git commit -qam newer
  git checkout -q change
  attempt scripts/gate broken
  expect_status 4
  [[ $err == *"not comparable: broken ("*"does not build here"* ]] || tell "the reason is told"
  attempt scripts/gate newer
  expect_status 4
  [[ $err == *"not comparable"*"ABI"* ]] || tell "the reason is told"
  tidy ""
}

@test "no such revision, no revision, no repository, a shallow clone: exit 2 and what to do" {
  repository
  attempt scripts/gate nosuch
  expect_refusal 2 "'nosuch' is no commit of this repository"
  attempt scripts/gate
  expect_refusal 2 "which revision?"
  attempt scripts/gate --tau 1%
  expect_refusal 2 "the revision comes before the flags"
  git clone -q --depth 1 "file://$PWD" ../shallow
  cd ../shallow
  attempt scripts/gate HEAD~1
  expect_refusal 2 "shallow clone" "git fetch"
  mkdir -p ../bare
  cp -R scripts ../bare/
  cd ../bare
  GIT_CEILING_DIRECTORIES=$work attempt scripts/gate HEAD
  expect_refusal 2 "no git repository"
}

@test "two at once do not disturb each other" {
  repository
  scripts/gate base --tau 20% --max-time 0.01s >a.out 2>a.err &
  local first=$! code=0
  attempt scripts/gate base --tau 20% --max-time 0.01s
  expect_status 4
  wait "$first" || code=$?
  [ "$code" = 4 ] || { cat a.out a.err; return 1; }
  rm a.out a.err
  tidy ""
}

@test "a base that is built anew is the same file, with all that debugging information tells: a history goes on" {
  repository
  export EXTRA_CFLAGS=-g
  attempt scripts/gate base --tau 20% --max-time 0.01s
  expect_status 4
  sha256sum build/gate-base/*/libattnkernels.so >"$work/before"
  rm -r build/gate-base
  attempt scripts/gate base --tau 20% --max-time 0.01s
  expect_status 4
  sha256sum -c "$work/before"
}

waiting() { # commit waits: its Makefile says that the kernels are being built, and waits for the file $GO
  export GO=$work/go
  git checkout -q -b waits base
  # shellcheck disable=SC2016 # make expands it
  sed -i '/^kernels:/a\\ttouch $(GO).begun; until [ -e $(GO) ]; do sleep 0.05; done' Makefile
  git commit -qam waits
  git checkout -q change
}

ended() { # PID: of a child of ours, within half a minute
  local i
  for ((i = 0; i < 300; i++)); do
    kill -0 "$1" 2>/dev/null || return 0
    sleep 0.1
  done
  touch "$GO"
  echo "$1 runs on"
  return 1
}

@test "a signal to the script alone ends what is built, and leaves nothing" {
  repository
  waiting
  scripts/gate waits --tau 20% >"$work/out" 2>&1 3>&- &
  local gate=$! code=0
  until [ -e "$GO.begun" ]; do sleep 0.1; done
  kill "$gate"
  ended "$gate"
  wait "$gate" || code=$?
  [ "$code" = 130 ]
  flock -w 30 build/gate-base/lock true
  tidy ""
}

@test "a signal to the script alone ends the measuring, with what is known by then; another's worktree stays" {
  repository
  waiting
  ATTNBENCH_DUET_SECONDS=2s scripts/gate base --tau 20% --out "$work/j.jsonl" >"$work/out" 2>"$work/err" 3>&- &
  local gate=$! code=0 program
  until [ -s "$work/j.jsonl" ] && program=$(pgrep -P "$gate" attnbench) && pgrep -P "$program" >/dev/null; do
    sleep 0.1
  done
  scripts/gate waits --tau 20% --max-time 0.01s >"$work/second" 2>&1 3>&- &
  local second=$!
  until [ -e "$GO.begun" ]; do sleep 0.1; done
  kill "$gate"
  ended "$gate"
  wait "$gate" || code=$?
  [ "$code" = 130 ]
  grep -q interrupted "$work/out"
  if kill -0 "$program" 2>/dev/null; then return 1; fi
  [ -e build/gate-base/tree/Makefile ]
  touch "$GO"
  code=0
  wait "$second" || code=$?
  [ "$code" = 4 ] || { cat "$work/second"; return 1; }
  tidy ""
}

@test "the base that a linked worktree is building stays" {
  repository
  git worktree add -q ../second base
  git -C ../second worktree add -q build/gate-base/tree base
  attempt scripts/gate base --tau 20% --max-time 0.01s
  expect_status 4
  [ -e ../second/build/gate-base/tree/Makefile ] || tell "another checkout's worktree is gone"
}

@test "files that flags name are those of the folder where it is called" {
  repository
  mkdir elsewhere
  cp configs/ci.yaml elsewhere/mine.yaml
  cd elsewhere
  attempt ../scripts/gate base --config mine.yaml --tau 20% --max-time 0.01s --out here.jsonl --json here.json
  expect_status 4
  [ -s here.jsonl ] && [ -s here.json ] || tell "two files expected here"
  attempt ../scripts/gate base --config ci --tau 20% --max-time 0.01s
  expect_status 4
  [[ $err == *"journal: ../results/local/gate-"* ]] || tell "the journal is the repository's"
  [ -s "../results/local/${err##*results/local/}" ] || tell "and stands there"
  cd "$work/repo"
  rm -r elsewhere
  tidy ""
  attempt scripts/gate --help
  expect_out "where this is called from" "130 interrupted"
}

# The commands of a job as its service would run them.
commands_of() { # FILE PYTHON: an expression for a list of commands of the document d
  python3 -c 'import sys, yaml; d = yaml.safe_load(open(sys.argv[1])); print("\n".join(eval(sys.argv[2])))' "$1" "$2"
}

fetched() { # DEPTH: a shallow clone as a service makes it, its change slower than what it starts from
  python3 -c 'import yaml' 2>/dev/null || skip "python3 has no yaml module: the CI files were not read"
  repository
  git clone -q --depth "$1" --branch change "file://$PWD" ../clone
  base=$(git rev-parse base)
  git config uploadpack.allowAnySHA1InWant true
  cd ../clone || return 1
}

@test "the workflow for GitHub Actions parses, and its commands find a regression" {
  fetched 2
  [ "$(commands_of scripts/ci/github.yml '[str(d["jobs"]["gate"]["steps"][0]["with"]["fetch-depth"])]')" = 2 ]
  commands_of scripts/ci/github.yml '[s["run"] for s in d["jobs"]["gate"]["steps"] if "run" in s]' >job
  sed -i 's/--config ci/--config ci --tau 20%/' job
  GITHUB_ACTIONS=true GITHUB_STEP_SUMMARY=$PWD/summary attempt bash -e job
  expect_status 3
  expect_out "::error title=attnbench gate%3A regression::changed"
  grep -q 'attnbench gate: regression' summary
  commands_of scripts/ci/github.yml '[p for s in d["jobs"]["gate"]["steps"] if "with" in s
    for p in s["with"].get("path", "").split()]' | grep . | while read -r file; do [ -s "$file" ] || exit 1; done
  sed -i 's/--tau 20%/--max-time 0.01s/; s/gate[.]jsonl/gate2.jsonl/' job
  GITHUB_ACTIONS=true attempt bash -e job
  expect_status 0
  expect_out "::warning title=attnbench gate::inconclusive"
}

@test "the job for GitLab CI parses, and its commands find a regression" {
  fetched 1
  commands_of scripts/ci/gitlab.yml 'd["attnbench-gate"]["before_script"] + d["attnbench-gate"]["script"]' >job
  sed -i 's/--config ci/--config ci --tau 20%/' job
  CI_MERGE_REQUEST_DIFF_BASE_SHA=$base attempt bash -e job
  expect_status 3
  commands_of scripts/ci/gitlab.yml '(lambda a: a["paths"] + [a["reports"]["junit"]])(d["attnbench-gate"]["artifacts"])' |
    grep . | while read -r file; do [ -s "$file" ] || exit 1; done
  [ "$(commands_of scripts/ci/gitlab.yml '[str(d["attnbench-gate"]["allow_failure"]["exit_codes"])]')" = "[4]" ]
}

@test "the job for GitLab CI holds merged results against the target branch, not against where the branch began" {
  fetched 1
  commands_of scripts/ci/gitlab.yml 'd["attnbench-gate"]["before_script"] + d["attnbench-gate"]["script"]' >job
  sed -i 's/--config ci/--config ci --tau 20% --max-time 0.01s/' job
  target=$(git rev-parse HEAD)
  CI_MERGE_REQUEST_DIFF_BASE_SHA=$base CI_MERGE_REQUEST_TARGET_BRANCH_SHA=$target attempt bash -e job
  expect_status 4
  [[ $err == *"gate: building $target ("* ]] || tell "the target branch expected"
}

@test "the job for GitLab CI installs what is missing where git alone is there" {
  python3 -c 'import yaml' 2>/dev/null || skip "python3 has no yaml module: the CI files were not read"
  commands_of "$root/scripts/ci/gitlab.yml" '[d["attnbench-gate"]["before_script"][0]]' >first
  mkdir bin
  ln -s "$(command -v git)" bin/git
  # shellcheck disable=SC2016 # the script made expands it
  printf '#!/bin/sh\necho "$@" >>asked\n' >bin/apt-get
  chmod +x bin/apt-get
  PATH=$work/bin "$BASH" -e first
  grep -q 'install .*make' asked
}
