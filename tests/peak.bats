#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# attnbench peak, and memory placed by NUMA node. Figures are checked for being there, never for their size.

# shellcheck source=tests/helpers.bash
. "$BATS_TEST_DIRNAME/helpers.bash"

# True if the Python expression holds for the document `d` that peak printed; `placements`, `summaries` (all of them).
peak_holds() { # EXPRESSION
  python - "$work/stdout" "$1" <<'PY'
import json, math, sys

def refuse(name):
    raise ValueError(name + " is no JSON")

def summaries_of(value):
    if isinstance(value, dict):
        if "median" in value:
            yield value
        for part in value.values():
            yield from summaries_of(part)
    elif isinstance(value, list):
        for part in value:
            yield from summaries_of(part)

d = json.load(open(sys.argv[1]), parse_constant=refuse)
placements = d["placements"]
summaries = list(summaries_of(d))
if not eval(sys.argv[2]):
    print("does not hold:", sys.argv[2])
    sys.exit(1)
PY
}

@test "peak --json has every ceiling, with median and spread" {
  attempt "$ATTNBENCH" peak --quick --json
  expect_status 0
  peak_holds 'd["schema"] == "attnbench.peak/1" and d["machine"]["cpu_model"] and d["time_utc"].endswith("Z")'
  peak_holds '[(p["placement"], p["status"], p["mem"]) for p in placements] == [("compact", "ok", "local")] * len(placements)'
  peak_holds '1 <= len(placements) <= 2 and placements[0]["threads"] == 1'
  peak_holds 'all(len(p["cpus"]) == p["threads"] for p in placements)'
  peak_holds 'all({c["element"] for c in p["compute"]} == {"f32", "f64", "bf16", "int8"} for p in placements)'
  peak_holds 'all({(f["function"], f["vector"]) for f in p["functions"]} == {(f, v) for f in ("exp", "tanh") for v in ("sse2", "ymm", "zmm")} for p in placements)'
  peak_holds 'all(p["memory"][-1]["level"] == "dram" and p["memory"][-1]["page_mode"] in ("4k", "2m", "mixed") for p in placements)'
  peak_holds 'all((c["giga_ops_per_s"] is None) == bool(c["reason"]) for p in placements for c in p["compute"])'
  peak_holds 'all(m[k] for p in placements for m in p["memory"] for k in ("read_gb_per_s", "write_gb_per_s", "copy_gb_per_s", "latency_ns"))'
  peak_holds 'all(p["team"]["fork_join_ns"] and p["team"]["barrier_ns"] for p in placements)'
  peak_holds 'len(summaries) > 10 and all(0 < s["min"] <= s["median"] <= s["max"] and s["mad"] >= 0 and s["repeats"] >= 3 for s in summaries)'
  peak_holds 'len(d["nodes"]) >= 1 and all(len(n["memory"]) >= 1 or n["reason"] for n in d["nodes"])'
}

@test "peak prints a table of 80 columns" {
  attempt "$ATTNBENCH" peak --quick --threads 1
  expect_status 0
  expect_out "compact, 1 thread on CPU" "Gop/s" "Gvalue/s" "read GB/s" "load ns" "fork and join" "CPUs of node"
  if grep -nE '.{81}' "$work/stdout"; then tell "lines of at most 80 columns"; fi
  [[ $out != *$'\e['* ]] || tell "no colours into a file"
}

@test "peak measures what --place, --threads and --mem ask for" {
  attempt "$ATTNBENCH" peak --quick --json --place core:0,compact --threads 1 --mem interleave
  expect_status 0
  peak_holds '[(p["placement"], p["threads"], p["mem"]) for p in placements] == [("core:0", 1, "interleave"), ("compact", 1, "interleave")]'
  peak_holds 'all(p["status"] == "ok" or p["reason"] for p in placements)'
}

@test "an ISA that is switched off has a reason in place of a figure" {
  ATTNBENCH_ISA=scalar attempt "$ATTNBENCH" peak --quick --json --threads 1
  expect_status 0
  peak_holds '[c["name"] for c in placements[0]["compute"] if c["giga_ops_per_s"]] == ["sse2 mul+add f32", "sse2 mul+add f64"]'
  peak_holds 'all("lacks" in c["reason"] for c in placements[0]["compute"] if not c["giga_ops_per_s"])'
  peak_holds 'all(m["vector"] == "sse2" for m in placements[0]["memory"])'
}

@test "more threads than CPUs are skipped; nothing measured is exit 77" {
  attempt "$ATTNBENCH" peak --quick --json --threads 100000
  expect_status 77
  peak_holds 'placements[0]["status"] == "skipped" and "CPUs" in placements[0]["reason"] and not summaries'
}

@test "peak refuses what means nothing" {
  refused peak --place nowhere -- --place nowhere
  refused peak --place core:99999 -- --place
  refused peak --threads 0 -- --threads
  refused peak --threads many -- --threads many
  refused peak --mem node:9999 -- --mem node:9999
  refused peak --mem remote -- --mem remote
  refused peak --mem local,interleave -- --mem
  refused peak --fast -- --fast
  refused peak compact -- compact
  HWLOC_SYNTHETIC='pack:1 core:2 pu:1' refused peak -- HWLOC_SYNTHETIC
}

@test "run --mem: recorded, in the repro line, and in the identity unless local" {
  attempt "$ATTNBENCH" run "${cheap[@]}" -S 32 --kernel naive --threads 1 --mem local,interleave,node:0 --out "$work/out.jsonl"
  expect_status 0
  valid_journal "$work/out.jsonl"
  holds "$work/out.jsonl" '[r["mem"] for r in records] == ["local", "interleave", "node:0"]'
  holds "$work/out.jsonl" 'len({r["point_id"] for r in records}) == 3 and all(r["status"] == "ok" or "memory" in r["reason"] for r in records)'
  holds "$work/out.jsonl" '["--mem" in r["repro"] for r in records] == [False, True, True]'
  attempt "$ATTNBENCH" run "${cheap[@]}" -S 32 --kernel naive --threads 1 --out "$work/local.jsonl"
  local id
  id=$(python -c 'import json, sys; print(json.loads(open(sys.argv[1]).readlines()[1])["point_id"])' "$work/local.jsonl")
  holds "$work/out.jsonl" "records[0]['point_id'] == '$id'"
}

@test "run --mem: a node that does not exist is a usage error, on other machines' topologies too" {
  refused run -S 32 --kernel naive --mem node:9999 -- --mem node:9999 "NUMA node"
  refused run -S 32 --kernel naive --dry-run --topology 'numa:2 core:2 pu:1' --mem node:2 -- "node:2" "2 NUMA nodes"
  refused run -S 32 --kernel naive --mem everywhere -- --mem everywhere
  attempt "$ATTNBENCH" run -S 32 --kernel naive --dry-run --topology 'numa:2 core:2 pu:1' --mem node:1
  expect_status 0
}
