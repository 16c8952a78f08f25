#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# --counters from the command line to the record: what counts here, what tells why it can't, likwid's library and its
# Marker API through a stand-in that writes down what it is asked.

# shellcheck source=tests/helpers.bash
. "$BATS_TEST_DIRNAME/helpers.bash"

point=(--samples 3 --min-time 0.01s -S 32 -D 16 -H 2 --kernel naive)

# A library in $work/likwid that stands in for likwid: it knows group MEM alone, counts by the number of the CPU in its
# list, and logs its calls to $work/log. STAND_IN=refuse: no access; crash: dies in perfmon_init.
stand_in() {
  mkdir "$work/likwid"
  cat >"$work/likwid.c" <<'C'
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int threads, counting;
static void note(const char *format, ...)
{
    char line[256];
    va_list list;
    va_start(list, format);
    int bytes = vsnprintf(line, sizeof line, format, list);
    va_end(list);
    int fd = open(getenv("STAND_IN_LOG"), O_WRONLY | O_APPEND | O_CREAT, 0600);
    if (write(fd, line, (size_t)bytes) != bytes) abort();
    close(fd);
}
static int is(const char *what) { return getenv("STAND_IN") && strcmp(getenv("STAND_IN"), what) == 0; }
int topology_init(void) { return 0; }
int numa_init(void) { return 0; }
void affinity_init(void) {}
int perfmon_init(int count, const int *cpus)
{
    (void)cpus;
    threads = count;
    if (is("refuse")) fprintf(stderr, "ERROR - [./src/perfmon.c:perfmon_init:1] Door is locked\n");
    if (is("crash")) raise(SIGKILL);
    return is("refuse") ? -13 : 0;
}
int perfmon_addEventSet(const char *group) { return strcmp(group, "MEM") == 0 ? 7 : -22; }
int perfmon_setupCounters(int group) { return group == 7 ? 0 : -1; }
int perfmon_startCounters(void) { counting++; return 0; }
int perfmon_stopCounters(void) { return counting-- == 1 ? 0 : -1; }
static char *events[] = {"INSTR_RETIRED_ANY", "CAS_COUNT_RD", "PWR_PKG_ENERGY", "TEMP_CORE"};
static char *registers[] = {"FIXC0", "MBOX0C0", "PWR0", "TMP0"};
int perfmon_getNumberOfEvents(int group) { return group == 7 ? 4 : 0; }
char *perfmon_getEventName(int group, int event) { (void)group; return events[event]; }
char *perfmon_getCounterName(int group, int event) { (void)group; return registers[event]; }
double perfmon_getLastResult(int group, int event, int thread)
{
    (void)group;
    return event == 0 ? 1000.0 * (thread + 1) : thread > 0 ? 0 : event == 1 ? 640 : event == 2 ? 0.5 : 60;
}
void likwid_markerInit(void) { note("init %s pin %s\n", getenv("LIKWID_EVENTS"), getenv("LIKWID_PIN")); fputs("noise\n", stderr); }
int likwid_markerRegisterRegion(const char *region) { note("register %s\n", region); return is("refuse") ? -14 : 0; }
int likwid_markerStartRegion(const char *region) { note("start %s %d\n", region, (int)gettid()); return 0; }
int likwid_markerStopRegion(const char *region) { note("stop %s %d\n", region, (int)gettid()); return 0; }
void likwid_markerClose(void)
{
    FILE *file = fopen(getenv("LIKWID_FILEPATH"), "w");
    fprintf(file, "1 1 1\n0:worker%d-0\n0 0 0 1 1e-3 1 5 \n", (int)getpid());
    fclose(file);
    note("close\n");
}
C
  gcc -D_GNU_SOURCE -shared -fPIC -o "$work/likwid/liblikwid.so.5" "$work/likwid.c" || tell "the stand-in does not compile"
  export STAND_IN_LOG=$work/log LD_LIBRARY_PATH=$work/likwid
  # A build without likwid's header never asks for the library.
  attempt "$ATTNBENCH" list counters
  [[ $out != *"knows no likwid"* ]] || skip "this build knows no likwid"
}

# As likwid-perfctr -C 0,1 -g MEM -m starts a program.
under_perfctr() {
  attempt env LIKWID_MODE=1 LIKWID_EVENTS=MEM LIKWID_THREADS=0,1 "LIKWID_FILEPATH=$work/markers" "$@"
}

@test "software events are counted a call, on every thread" {
  attempt "$ATTNBENCH" run "${point[@]}" --threads 1,2 --counters perf:task-clock+page-faults+context-switches --out "$work/o.jsonl"
  expect_status 0
  valid_journal "$work/o.jsonl"
  holds "$work/o.jsonl" 'len(records) == 2'
  if holds "$work/o.jsonl" 'all(r["counters"]["perf"]["task-clock"] is None and "perf" in r["counters_note"] for r in records)' >/dev/null; then
    skip "perf events are refused here"
  fi
  holds "$work/o.jsonl" 'all(set(r["counters"]["perf"]) == {"task-clock", "page-faults", "context-switches", "scaled"} for r in records)'
  # No thread can have had more CPU time than the wall had, bar the calls on both sides of the clock.
  holds "$work/o.jsonl" 'all(0 < r["counters"]["perf"]["task-clock"] < r["threads"] * (sum(r["samples_ns"]) / 3 +
    1e6 / r["calls_per_sample"]) and r["counters"]["perf"]["page-faults"] >= 0 and r["counters"]["perf"]["scaled"] is False
    for r in records)'
}

@test "without --counters nothing is counted" {
  attempt "$ATTNBENCH" run "${point[@]}" --threads 1 --out "$work/o.jsonl"
  holds "$work/o.jsonl" 'all(r["counters"] is None and r["joules_per_call"] is None and "counters_note" not in r for r in records)'
  attempt "$ATTNBENCH" run "${point[@]}" --threads 1 --counters none --out "$work/n.jsonl"
  holds "$work/n.jsonl" 'all(r["counters"] is None for r in records)'
}

@test "an event that this machine can't count is null, with the errno; the run goes on" {
  attempt "$ATTNBENCH" run "${point[@]}" --threads 1 --counters perf:cycles+task-clock --out "$work/o.jsonl"
  expect_status 0
  valid_journal "$work/o.jsonl"
  holds "$work/o.jsonl" 'records[0]["counters"]["perf"]["cycles"] != 0 and records[0]["gflops"] > 0'
  if holds "$work/o.jsonl" 'records[0]["counters"]["perf"]["cycles"] is not None' >/dev/null; then
    skip "this machine counts cycles"
  fi
  holds "$work/o.jsonl" 're.search(r"perf:\S*cycles\S*: E[A-Z]+: ", records[0]["counters_note"]) if (re := __import__("re")) else 0'
}

@test "means over launches; counters in a config" {
  cat >"$work/c.yaml" <<'Y'
name: c
description: counters by a config
defaults: {threads: [1], samples: 3, min-time: 0.01s, launches: 2, counters: perf:task-clock}
sweeps:
  - {name: s, S: [32], D: [16], kernel: [naive]}
Y
  attempt "$ATTNBENCH" run --config "$work/c.yaml" --out "$work/o.jsonl"
  expect_status 0
  valid_journal "$work/o.jsonl"
  holds "$work/o.jsonl" 'len(records) == 1 and set(records[0]["counters"]["perf"]) == {"task-clock", "scaled"}'
}

@test "unknown events and malformed lists are usage errors" {
  refused run --counters perf:flops -- --counters "'flops'"
  refused run --counters perf: -- --counters perf:EVENT+EVENT
  refused run --counters likwid -- --counters likwid:GROUP
  refused run --counters papi:X -- --counters "'papi:X'"
  refused run --counters none,energy -- --counters none
  refused run --counters perf:cycles,perf:task-clock -- --counters twice
}

@test "likwid tells in one line why it can't count, and nothing of its own reaches the terminal" {
  attempt "$ATTNBENCH" run -q "${point[@]}" --threads 1 --counters likwid:FLOPS_SP --out "$work/o.jsonl"
  expect_status 0
  valid_journal "$work/o.jsonl"
  [[ $err != *ERROR* ]] || tell "likwid's own words should be in the record alone"
  if holds "$work/o.jsonl" 'records[0]["counters"]["likwid"] is not None' >/dev/null; then skip "likwid counts here"; fi
  holds "$work/o.jsonl" '(lambda n: n.startswith("likwid: ") and len(n) > 20 and "\n" not in n)(records[0]["counters_note"])'
}

@test "list counters tells what works here, and why not where not" {
  attempt "$ATTNBENCH" list counters
  expect_status 0
  expect_out none energy likwid:GROUP perf:task-clock perf:context-switches perf:cycles perf:rNNNN
  attempt "$ATTNBENCH" list --json counters
  expect_status 0
  python -c 'import json,sys; c = json.load(open(sys.argv[1]))["counters"]
assert all(set(e) == {"name", "summary", "reason"} and (e["reason"] is None or len(e["reason"]) > 10) for e in c), c' "$work/stdout"
}

@test "likwid's library: sums over CPUs, once a socket where the socket counts, joules" {
  local cpus=/sys/devices/system/cpu
  [ "$(cat $cpus/cpu[01]/topology/physical_package_id)" = $'0\n0' ] || skip "CPUs 0 and 1 are not both on socket 0"
  stand_in
  attempt "$ATTNBENCH" run "${point[@]}" --place 0,1 --threads 2 --counters likwid:MEM --out "$work/o.jsonl"
  expect_status 0
  valid_journal "$work/o.jsonl"
  holds "$work/o.jsonl" '(lambda c: len(c) == 3 and all(abs(c[n] * records[0]["calls_per_sample"] - v) < 1e-6 * v for n, v in
    (("INSTR_RETIRED_ANY:FIXC0", 3000), ("CAS_COUNT_RD:MBOX0C0@S0", 640), ("PWR_PKG_ENERGY:PWR0@S0", 0.5))))(records[0]["counters"]["likwid"])'
  holds "$work/o.jsonl" 'abs(records[0]["joules_per_call"] * records[0]["calls_per_sample"] - 0.5) < 1e-6 and records[0]["counters_note"] is None'
}

@test "likwid's library: a group that it lacks, no access, a crash, unbound threads: null with the reason" {
  stand_in
  attempt "$ATTNBENCH" run "${point[@]}" --threads 1 --counters likwid:FLOPS_XY --out "$work/a.jsonl"
  expect_status 0
  holds "$work/a.jsonl" 'records[0]["counters"] == {"likwid": None} and "perfmon_addEventSet returned -22 (EINVAL)" in records[0]["counters_note"]'
  STAND_IN=refuse attempt "$ATTNBENCH" run "${point[@]}" --threads 1 --counters likwid:MEM --out "$work/b.jsonl"
  expect_status 0
  holds "$work/b.jsonl" '"perfmon_init returned -13 (EACCES): Door is locked" in records[0]["counters_note"]'
  STAND_IN=crash attempt "$ATTNBENCH" run "${point[@]}" --threads 1 --counters likwid:MEM --out "$work/c.jsonl"
  expect_status 0
  holds "$work/c.jsonl" 'records[0]["status"] == "ok" and "killed by signal 9" in records[0]["counters_note"]'
  attempt "$ATTNBENCH" run "${point[@]}" --threads 1 --place none --counters likwid:MEM --out "$work/d.jsonl"
  expect_status 0
  holds "$work/d.jsonl" 'records[0]["counters"] == {"likwid": None} and "not bound" in records[0]["counters_note"]'
}

@test "Marker API: each point is a region on every thread, and the workers' files become one" {
  stand_in
  under_perfctr env LIKWID_PIN=0,1 "$ATTNBENCH" run "${point[@]}" --kernel naive,tiled --threads 1,2 --out "$work/o.jsonl"
  expect_status 0
  [[ $err != *noise* ]] || tell "likwid's own words should not be seen"
  holds "$work/o.jsonl" 'all(r["counters"] is None and r["counters_note"] is None for r in records) and len(records) == 4'
  grep -q 'init MEM pin (null)' "$work/log" || tell "likwid should not pin"
  # Regions of the log: started and stopped equally often, by as many threads as the point has.
  holds "$work/o.jsonl" '(lambda log: all(
    len({l.split()[2] for l in log if l.startswith("start " + r["point_id"])}) == r["threads"] and
    sum(l.startswith("start " + r["point_id"]) for l in log) == sum(l.startswith("stop " + r["point_id"]) for l in log) >=
    3 * r["threads"] for r in records) and log.count("close\n") == 2)(open("log").readlines())'
  [ "$(head -1 "$work/markers")" = "1 2 1" ] || tell "$(cat "$work/markers")"
  grep -q '^0:worker[0-9]*-0$' "$work/markers" || tell "$(cat "$work/markers")"
  grep -q '^1:worker[0-9]*-0$' "$work/markers" || tell "$(cat "$work/markers")"
  [ "$(ls "$work"/markers*)" = "$work/markers" ] || tell "files of workers are left: $(ls "$work")"
}

@test "Marker API: where it does not start, the record tells and the run goes on" {
  stand_in
  under_perfctr env STAND_IN=refuse "$ATTNBENCH" run "${point[@]}" --threads 1 --out "$work/o.jsonl"
  expect_status 0
  holds "$work/o.jsonl" 'records[0]["status"] == "ok" and "the Marker API did not start" in records[0]["counters_note"]'
  [ ! -e "$work/markers" ] || tell "no file expected"
}
