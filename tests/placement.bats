#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Where threads land: on recorded machines by `topo`, and on this one under affinity, OpenMP's variables, cpusets and
# quotas, as `run` plans it and as it was.

# shellcheck source=tests/helpers.bash
. "$BATS_TEST_DIRNAME/helpers.bash"

tiny=(-S 32 -D 16 -H 4 --kernel naive)

# A control group of our own below one of version 1's hierarchies, empty again when the test ends.
group=

make_group() { # HIERARCHY
  [ -d "/sys/fs/cgroup/$1" ] || skip "no v1 hierarchy $1"
  group=/sys/fs/cgroup/$1/attnbench-test-$$-$BATS_TEST_NUMBER
  mkdir "$group" 2>/dev/null || { group=; skip "no group can be made in $1"; }
}

set_group() { # FILE VALUE
  { echo "$2" >"$group/$1"; } 2>/dev/null || skip "$1 can't be set to $2"
}

in_group() { # COMMAND...
  # shellcheck disable=SC2016 # expanded by the inner shell
  attempt sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$@"
}

teardown() {
  local try
  for try in 1 2 3 4 5; do
    [ -z "$group" ] || [ ! -d "$group" ] || rmdir "$group" 2>/dev/null || sleep "0.$try"
  done
  [ -z "${work:-}" ] || rm -rf "$work"
}

# The last of this process's CPUs, if there are two at least.
need_two_cpus() {
  mapfile -t cpus < <(python -c 'import os; print(*sorted(os.sched_getaffinity(0)), sep="\n")')
  [ "${#cpus[@]}" -ge 2 ] || skip "one CPU"
  first=${cpus[0]}
  last=${cpus[-1]}
}

plan() { # FLAGS...: "place threads CPUs reason" of each planned point
  attempt "$ATTNBENCH" run --dry-run -o jsonl "${tiny[@]}" "$@"
}

planned_is() { # EXPRESSION over points
  printf '%s' "$out" | python -c 'import json, sys
points = [json.loads(line) for line in sys.stdin]
sys.exit(not eval(sys.argv[1]))' "$1" || tell "does not hold: $1"
}

topo_is() { # EXPRESSION over topo and places
  printf '%s' "$out" | python -c 'import json, sys
topo = json.load(sys.stdin)
places = {p["name"]: p["cpus"] for p in topo["placements"]}
sys.exit(not eval(sys.argv[1]))' "$1" || tell "does not hold: $1"
}

@test "topo --json agrees with every answer about recorded machines" {
  local folder=${ATTNBENCH_TOPOLOGIES:-$root/../shared/topologies}
  [ -e "$folder/ANSWERS.json" ] || skip "0 machines: no ANSWERS.json in $folder"
  LIMIT=300 attempt python3 "$root/tests/answers.py" "$ATTNBENCH" "$folder"
  expect_status 0
  expect_out " machines, " " 0 disagreements"
}

@test "case 1: under taskset the plan names the CPU that is left, and the thread runs there" {
  need_two_cpus
  attempt taskset -c "$last" "$ATTNBENCH" topo --json
  expect_status 0
  topo_is "topo['allowed_pus'] == [$last] and $first in topo['disallowed_pus'] and places['numa:0'] == [$last]"
  attempt taskset -c "$last" "$ATTNBENCH" run --dry-run -o jsonl "${tiny[@]}" --place numa:0,compact,all,socket:0
  planned_is "len(points) == 4 and all(p['cpus'] == [$last] for p in points)"
  attempt taskset -c "$last" "$ATTNBENCH" run "${cheap[@]}" "${tiny[@]}" --place numa:0 --threads 1,2 --out "$work/out.jsonl"
  expect_status 0
  holds "$work/out.jsonl" "[(r['status'], r['cpus']) for r in records if r['threads'] == 1] == [('ok', [$last])]"
  holds "$work/out.jsonl" "['2 threads asked for' in r['reason'] for r in records if r['threads'] == 2] == [True]"
  holds "$work/out.jsonl" "contexts[0]['topology']['pus'] == 1"
  attempt taskset -c "$last" "$ATTNBENCH" run --dry-run "${tiny[@]}" --place "$first"
  expect_refusal 2 "CPU $first may not be used"
}

@test "case 4: one thread, or OMP_NUM_THREADS=1, neither skips the binding nor narrows a domain" {
  need_two_cpus
  local domain
  domain=$("$ATTNBENCH" topo --json --place socket:0 | python -c 'import json, sys; print(json.load(sys.stdin)["placements"][0]["cpus"])')
  OMP_NUM_THREADS=1 attempt "$ATTNBENCH" run "${cheap[@]}" "${tiny[@]}" --place socket:0 --out "$work/all.jsonl"
  expect_status 0
  holds "$work/all.jsonl" "records[0]['status'] == 'ok' and records[0]['cpus'] == $domain"
  OMP_NUM_THREADS=1 attempt "$ATTNBENCH" run "${cheap[@]}" "${tiny[@]}" --place socket:0 --threads 1 --out "$work/one.jsonl"
  expect_status 0
  holds "$work/one.jsonl" "records[0]['status'] == 'ok' and records[0]['cpus'] == ${domain}[:1]"
}

@test "case 8: OMP_PROC_BIND, OMP_PLACES and OMP_NUM_THREADS change neither the plan nor the run" {
  need_two_cpus
  plan --threads max
  local expected=$out
  local variables=(OMP_PROC_BIND=true OMP_PLACES=cores OMP_NUM_THREADS=96)
  attempt env "${variables[@]}" "$ATTNBENCH" run --dry-run -o jsonl "${tiny[@]}" --threads max
  [ "$out" = "$expected" ] || tell "the plan differs"
  attempt env "${variables[@]}" "$ATTNBENCH" run "${cheap[@]}" "${tiny[@]}" --threads max --out "$work/out.jsonl"
  expect_status 0
  holds "$work/out.jsonl" "(lambda r: r['status'] == 'ok' and r['threads'] > 1 and len(set(r['cpus'])) == r['threads'])(records[0])"
  holds "$work/out.jsonl" "contexts[0]['omp']['OMP_NUM_THREADS'] == '96' and contexts[0]['omp']['OMP_PROC_BIND'] == 'true'"
}

@test "a cpuset of version 1: plan and run stay inside" {
  need_two_cpus
  make_group cpuset
  set_group cpuset.mems "$(cat /sys/fs/cgroup/cpuset/cpuset.mems)"
  set_group cpuset.cpus "$last"
  in_group "$ATTNBENCH" topo --json
  expect_status 0
  topo_is "topo['allowed_pus'] == [$last] and $first in topo['disallowed_pus'] and topo['pus'] == 1"
  in_group "$ATTNBENCH" run "${cheap[@]}" "${tiny[@]}" --place socket:0,all,ladder --out "$work/out.jsonl"
  expect_status 0
  holds "$work/out.jsonl" "len(records) == 3 and all((r['status'], r['cpus'], r['threads']) == ('ok', [$last], 1) for r in records)"
  in_group "$ATTNBENCH" run --dry-run "${tiny[@]}" --place "$first"
  expect_refusal 2 "CPU $first may not be used"
}

@test "case 9: a quota of version 1 limits max, is told and recorded" {
  need_two_cpus
  make_group cpu
  set_group cpu.cfs_quota_us 150000
  in_group "$ATTNBENCH" topo --json
  topo_is "topo['cpu_quota'] == 1.5 and topo['pus'] >= 2 and len(places['compact']) == 1"
  in_group "$ATTNBENCH" topo
  expect_out "CPU quota: 1.50 CPUs by cgroup; --threads max is 1"
  in_group "$ATTNBENCH" run "${cheap[@]}" "${tiny[@]}" --threads max --out "$work/out.jsonl"
  expect_status 0
  holds "$work/out.jsonl" "records[0]['status'] == 'ok' and records[0]['threads'] == 1 and contexts[0]['cgroup']['cpu_quota'] == 1.5"
}

@test "case 9: so does a quota of version 2" {
  need_two_cpus
  mkdir -p "$work/root/proc/self" "$work/root/sys/fs/cgroup/job"
  echo "0::/job" >"$work/root/proc/self/cgroup"
  echo "30 20 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw" >"$work/root/proc/self/mountinfo"
  echo "150000 100000" >"$work/root/sys/fs/cgroup/job/cpu.max"
  ATTNBENCH_FS_ROOT=$work/root attempt "$ATTNBENCH" topo --json
  expect_status 0
  topo_is "topo['cpu_quota'] == 1.5 and len(places['compact']) == 1"
  ATTNBENCH_FS_ROOT=$work/root plan --threads max
  planned_is "[p['threads'] for p in points] == [1]"
  echo "max 100000" >"$work/root/sys/fs/cgroup/job/cpu.max"
  ATTNBENCH_FS_ROOT=$work/root attempt "$ATTNBENCH" topo --json
  topo_is "topo['cpu_quota'] is None"
}

@test "LIKWID's expressions mean here what likwid-pin makes of them" {
  command -v likwid-pin >/dev/null || skip "no likwid-pin"
  local expression theirs compared=0
  for expression in 0 0-1 1-0 0,0 N N:0 N:0-1 N:1-0 S0 S0:0-1 S0:0@S0:1 M0:0-1 C0:0-1 D0:0-1 L:N:0-1 E:N:1 E:N:2 E:N E:S0:2 \
    E:N:4 E:N:4:1:2 E:N:2:1:0 E:N:4:2:4 E:S0:2@S0:0 M:scatter S:scatter C:scatter D:scatter N:scatter M:scatter:1 \
    M:scatter@S:scatter S:balanced N:cbalanced:1; do
    theirs=$(likwid-pin -p -c "$expression" 2>/dev/null) || continue
    [[ $theirs =~ ^[0-9]+(,[0-9]+)*$ ]] || continue
    attempt "$ATTNBENCH" topo --json --place "$expression"
    expect_status 0
    topo_is "topo['placements'][0]['cpus'] == [$theirs]"
    compared=$((compared + 1))
  done
  [ "$compared" -gt 0 ] || skip "likwid-pin knows no expression here"
  echo "# $compared expressions agree" >&3
}

@test "a CPU that stands twice is warned of, and runs" {
  need_two_cpus
  attempt "$ATTNBENCH" topo --place "E:N:2:1:0"
  expect_status 0
  [[ $err == *"warning: placement 'E:N:2:1:0' puts several threads on CPU $first"* ]] || tell "no warning"
  attempt "$ATTNBENCH" run "${cheap[@]}" "${tiny[@]}" --place "$first,$first" --out "$work/out.jsonl"
  expect_status 0
  [[ $err == *"warning: placement '$first,$first' puts several threads on CPU $first"* ]] || tell "no warning"
  holds "$work/out.jsonl" "records[0]['status'] == 'ok' and records[0]['cpus'] == [$first, $first] and records[0]['threads'] == 2"
}

@test "the ladder runs every step with all of its threads, and its steps are placements" {
  attempt "$ATTNBENCH" run "${cheap[@]}" "${tiny[@]}" --place ladder --out "$work/out.jsonl"
  expect_status 0
  attempt "$ATTNBENCH" topo --json
  topo_is "len(places) == len(topo['placements']) and all(step in places for step in topo['ladder'])"
  printf '%s' "$out" >"$work/topo.json"
  holds "$work/out.jsonl" "{r['placement']: r['cpus'] for r in records} == (lambda t: {p['name']: p['cpus'] for p in t['placements']
    if p['name'] in t['ladder']})(json.load(open('$work/topo.json')))"
  holds "$work/out.jsonl" "all(r['status'] == 'ok' and r['threads'] == len(r['cpus']) for r in records)"
  plan --topology "pack:2 numa:2 l3:2 core:2 pu:2" --place ladder
  planned_is "[p['threads'] for p in points] == [1, 2, 2, 8, 4, 8, 16, 32] and all(len(set(p['cpus'])) == p['threads'] for p in points)"
  plan --topology "pack:2 numa:2 l3:2 core:2 pu:2" --place ladder --threads 2
  planned_is "[p['status'] for p in points] == ['skipped'] + 7 * ['planned'] and all(p['threads'] == 2 for p in points)"
  # Flags alone override quick's keys: its thread counts do not cut the ladder.
  attempt "$ATTNBENCH" run --dry-run -o jsonl --kernel naive --topology "pack:1 core:4 pu:1" --place ladder
  planned_is "{(p['placement'], p['threads']) for p in points} == {('core:0', 1), ('numa:0', 4)}"
}

@test "kinds of core: refused where there are none, and never a set of one CPU" {
  local machines=$root/tests/topo
  refused topo --topology "$machines/frequency_noise.xml" --place pcores -- "--place" "not hybrid" "one design"
  refused run --dry-run --topology "pack:1 core:2 pu:1" --place ecores -- "--place" "not hybrid"
  plan --topology "$machines/five_kinds.xml" --place pcores,ecores
  planned_is "[p['cpus'] for p in points] == [[2, 3, 6, 7], [0, 1, 4, 5]]"
}

@test "2048 hardware threads are planned in a moment" {
  local start=${EPOCHREALTIME/./}
  attempt "$ATTNBENCH" topo --json --topology "pack:2 core:1024 pu:1" --place all --place ladder
  expect_status 0
  topo_is "len(places['all']) == 2048"
  plan --topology "pack:2 core:1024 pu:1" --place ladder,scatter,S:scatter
  planned_is "max(p['threads'] for p in points) == 2048"
  local elapsed=$((${EPOCHREALTIME/./} - start))
  echo "# two plans took $((elapsed / 1000)) ms" >&3
  [ "$elapsed" -lt 20000000 ]
}
