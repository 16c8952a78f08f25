#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# duet: verdicts on changes that are planted, what it refuses, and what it writes. Figures are not tested.

# shellcheck source=tests/helpers.bash
. "$BATS_TEST_DIRNAME/helpers.bash"
# shellcheck source=tests/gate.bash
. "$BATS_TEST_DIRNAME/gate.bash"

setup_file() {
  build_libraries base "slow -DEXTRA=70" "wrong -DWRONG" "crash -DCRASHES" "newer -DNEWER" "alone -DALONE" \
    "helped -DEXTRA=70 -DHELPED -pthread" "hangs -DHANGS" 'tells_a -DTELLS="a"' 'tells_b -DTELLS="b"'
}

# A file of tests/broken_plugin as NAME.so, its text changed by SCRIPT.
build_broken() { # NAME [SCRIPT]
  sed "${2:-}" "$root/tests/broken_plugin/$1.c" >"$1.c"
  "${CC:-gcc}" -std=c11 -D_GNU_SOURCE -O1 -fPIC -shared -I "$root/tests/broken_plugin" -o "$1.so" "$1.c" -pthread -lm
}

# base.so's steady against the kernel of NAME.so.
against_steady() { # NAME FLAG...
  LIMIT=50 attempt "$ATTNBENCH" duet "$libraries/base.so:steady" "./$1.so:$1" "${tiny[@]}" "${@:2}"
}

@test "the same code is the same, whichever way it is named" {
  attempt "$ATTNBENCH" duet "$libraries/base.so:steady" "$libraries/base.so:changed" "${tiny[@]}" -o json --out "$work/j.jsonl"
  expect_status 0
  json_holds "$work/stdout" 'd["schema"] == "attnbench.duet/1" and [p["verdict"] for p in d["points"]] == ["same"]'
  json_holds "$work/stdout" '(lambda p: p["judged_by"] == "cpu" and len(p["log_ratios_cpu"]) == p["processes"] >= 8 and
    p["ratio_low"] <= p["ratio"] <= p["ratio_high"] and p["a"].endswith("base.so:steady"))(d["points"][0])'
  # of samples of different length the first call, in the other side's caches, would make a difference that is none
  json_holds "$work/stdout" '(lambda p: p["calls_a"] == p["calls_b"] and len(p["calls_a"]) == p["processes"] and
    min(p["calls_a"]) >= 1)(d["points"][0])'
  json_holds "$work/j.jsonl" '[l["schema"] for l in lines] == ["attnbench.context/1", "attnbench.duet/1"]'
}

@test "a side is known by what its file holds, wherever it lies; pages and memory are told: the history goes by them" {
  local build n=0
  for build in base base slow; do
    n=$((n + 1))
    mkdir "$n"
    cp "$libraries/$build.so" anchor.so
    [ "$n" != 2 ] || cp anchor.so 2/moved.so
    attempt "$ATTNBENCH" duet "$([ "$n" = 2 ] && echo 2/moved.so || echo ./anchor.so):steady" "$libraries/base.so:steady" \
      "${tiny[@]}" --processes 3 --out "$n.jsonl"
    json_holds "$n.jsonl" '(lambda p: len(p["a_digest"]) == 16 and p["mem"] == "local" and
      p["page_mode"] in ("4k", "2m", "mixed") and len(p["log_ratios_cpu"]) == 3)(lines[1])'
    sed -i 's/"page_mode":"[^"]*"/"page_mode":"2m"/' "$n.jsonl" # which pages there are is chance
  done
  json_holds 1.jsonl 'lines[1]["a_digest"] == lines[1]["b_digest"]'
  json_holds 3.jsonl 'lines[1]["a_digest"] != lines[1]["b_digest"]'
  attempt "$ATTNBENCH" history import --db h.db 1.jsonl 2.jsonl 3.jsonl
  expect_status 0
  attempt "$ATTNBENCH" history list --db h.db -o json
  json_holds "$work/stdout" 'sorted(s["points"] for s in d) == [1, 2] and all(s["anchor"].startswith("steady@") for s in d)'
}

@test "slower and faster are told of B, and are no failure" {
  attempt "$ATTNBENCH" duet "$libraries/base.so" "$libraries/slow.so" "${tiny[@]}" --kernel changed
  expect_status 0
  expect_out slower changed
  attempt "$ATTNBENCH" duet "$libraries/slow.so" "$libraries/base.so" "${tiny[@]}" --kernel changed -o json
  expect_status 0
  json_holds "$work/stdout" '[p["verdict"] for p in d["points"]] == ["faster"] and d["points"][0]["ratio"] < 0.8'
}

@test "files alone stand for their kernels, each once; what a side lacks is skipped with the reason" {
  attempt "$ATTNBENCH" duet "$libraries/base.so" "$libraries/alone.so" "${tiny[@]}" -o json
  expect_status 0
  json_holds "$work/stdout" '[(p["kernel"], p["status"]) for p in d["points"]] == [("steady", "ok"), ("changed", "skipped")]
    and "no kernel of this name" in d["points"][1]["reason"]'
}

@test "two kernels of this build" {
  attempt "$ATTNBENCH" duet naive tiled -S 16 -D 8 --threads 1 --processes 3 -o json
  json_holds "$work/stdout" '(lambda p: p["a_digest"] and p["a_digest"] == p["b_digest"])(d["points"][0])'
  json_holds "$work/stdout" '[(p["a"], p["b"]) for p in d["points"]] == [("naive", "tiled")] and
    len(d["points"][0]["log_ratios_cpu"]) == 3'
}

@test "a wrong result and a crash are exit 1, and name the side" {
  attempt "$ATTNBENCH" duet "$libraries/base.so" "$libraries/wrong.so" "${tiny[@]}" --kernel changed
  expect_status 1
  expect_out wrong wrong.so:changed
  attempt "$ATTNBENCH" duet "$libraries/crash.so" "$libraries/base.so" "${tiny[@]}" --kernel changed
  expect_status 1
  expect_out failed crash.so:changed "signal 4"
}

@test "what cannot be compared or read is refused in one line" {
  attempt "$ATTNBENCH" duet "$libraries/base.so" "$libraries/newer.so" "${tiny[@]}"
  expect_refusal 4 newer.so "ABI"
  refused duet naive -- "what is to be compared"
  refused duet naive nosuch -- "nosuch"
  refused duet naive "$libraries/base.so:nosuch" -- "has no kernel" "nosuch"
  refused duet "$libraries/base.so" "$libraries/nosuch.so" -- nosuch.so
  refused duet naive tiled -o csv -- "neither table nor json"
  refused duet naive tiled --tau 0 -- "--tau"
  refused duet "$libraries/base.so" "$libraries/base.so" --kernel nosuch -- "no kernel matches 'nosuch'" "steady, changed"
  ATTNBENCH_DUET_SECONDS=never refused duet naive tiled -- ATTNBENCH_DUET_SECONDS never
}

@test "--max-time: what was not reached is told, exit 4" {
  attempt "$ATTNBENCH" duet "$libraries/base.so" "$libraries/base.so" "${tiny[@]}" --max-time 0.01s
  expect_status 4
  expect_out unreached "--max-time was over"
}

@test "nothing that can run: 77" {
  attempt "$ATTNBENCH" duet "$libraries/base.so" "$libraries/base.so" "${tiny[@]}" --dtype f16
  expect_status 77
  expect_out skipped f16
}

@test "a kernel with threads of its own is skipped, with what compares it" {
  "${CC:-gcc}" -std=c11 -D_GNU_SOURCE -O2 -fPIC -shared -o own.so "$root/tests/plugin/own_threads.c" -pthread -lm
  attempt "$ATTNBENCH" duet ./own.so ./own.so "${tiny[@]}"
  expect_status 77
  expect_out skipped "own.so:own_threads: threads of its own: attnbench run compares it"
}

@test "what a kernel must not do is exit 1 and named, on either side, though its output be right" {
  local name said
  while IFS='|' read -r name said; do
    [ "$MODE" = release ] || [ "$name" != writes_beyond_out ] || continue # of which a sanitizer makes something else
    build_broken "$name"
    against_steady "$name"
    expect_status 1
    expect_out failed "./$name.so:$name $said"
  done <<'TABLE'
writes_beyond_out|wrote out of bounds
writes_inputs|wrote to its inputs
changes_subnormals|left another floating-point mode
changes_rounding|left another floating-point mode
leaves_thread|left 1 thread running
TABLE
  attempt "$ATTNBENCH" duet ./writes_inputs.so:writes_inputs "$libraries/base.so:steady" "${tiny[@]}"
  expect_status 1
  expect_out failed "./writes_inputs.so:writes_inputs wrote to its inputs"
  # once, while it is timed
  build_broken writes_inputs 's/for (int64_t d = 0;/static int calls;\n    for (int64_t d = ++calls == 5 ? 0 : problem->D;/'
  against_steady writes_inputs
  expect_status 1
  expect_out failed "one of both wrote to its inputs"
}

@test "a point that a kernel's own code refuses is skipped with its reason; the others are judged" {
  "${CC:-gcc}" -std=c11 -O2 -fPIC -shared -I "$root/kernels" -o mine.so "$root/tests/plugin/mine.c" -lm
  attempt "$ATTNBENCH" duet ./mine.so ./mine.so "${tiny[@]}" --softcap none,30 -o json
  expect_status 0
  json_holds "$work/stdout" '{p["softcap"]: (p["status"], p["verdict"]) for p in d["points"]} ==
    {None: ("ok", "same"), 30: ("skipped", None)}'
  json_holds "$work/stdout" '[p["reason"] for p in d["points"] if p["softcap"]] == ["./mine.so:mine: mine has no softcap"]
    and not any("lost" in p for p in d["points"])'
  attempt "$ATTNBENCH" duet ./mine.so ./mine.so "${tiny[@]}" --softcap 30
  expect_status 77
  expect_out skipped "mine has no softcap"
  # side A can
  against_steady mine --softcap 30 -o json
  expect_status 77
  json_holds "$work/stdout" '[(p["status"], p["lost"], p["reason"]) for p in d["points"]] ==
    [("skipped", True, "./mine.so:mine: mine has no softcap")]'
}

@test "what hangs or dies as it is loaded or closed is named, too" {
  build_broken crashes_to_close 's/abort()/pause()/; s/stdlib/unistd/'
  against_steady crashes_to_close --point-timeout 1s
  expect_status 1
  expect_out failed "./crashes_to_close.so:crashes_to_close was still running after 1 s"
  LIMIT=50 attempt "$ATTNBENCH" duet "$libraries/base.so" "$libraries/hangs.so" "${tiny[@]}" --kernel steady --point-timeout 1s
  expect_status 1
  expect_out failed "hangs.so:steady was still running after 1 s"
  [ "$MODE" = release ] || return 0
  build_broken crashes_to_close
  against_steady crashes_to_close
  expect_status 1
  expect_out failed "./crashes_to_close.so:crashes_to_close: the process was killed by signal 6"
}

@test "--max-time ends a process that does not" {
  build_broken loops_forever
  against_steady loops_forever --max-time 2s
  expect_status 4
  expect_out unreached "--max-time was over"
}

@test "work that a kernel gives to threads of its own counts, where one thread is judged" {
  attempt "$ATTNBENCH" duet "$libraries/base.so" "$libraries/helped.so" "${tiny[@]}" -S 200 --kernel changed -o json
  expect_status 0
  json_holds "$work/stdout" '[(p["judged_by"], p["verdict"]) for p in d["points"]] == [("cpu", "slower")]'
}

@test "each side is loaded and opened first equally often, in all four ways" {
  ORDER=$work/order attempt "$ATTNBENCH" duet "$libraries/tells_a.so" "$libraries/tells_b.so" "${tiny[@]}" \
    --kernel steady --processes 8
  # Both were asked for their tables before; then "load x, load y, open x, open y" of every process.
  python3 - order <<'PY'
import collections, sys
words = [line.split() for line in open(sys.argv[1])][2:]
processes = [words[i:i + 4] for i in range(0, len(words), 4)]
assert len(processes) == 8, processes
for p in processes:
    assert [w[0] for w in p] == ["load", "load", "open", "open"] and p[0][1] != p[1][1] and p[2][1] != p[3][1], p
ways = collections.Counter((p[0][1], p[2][1]) for p in processes)
assert sorted(ways.values()) == [2, 2, 2, 2], ways
PY
}

@test "on two threads wall time judges; an idle thread is no noise, nor an unbound one that moves" {
  [ "$(nproc)" -ge 2 ] || skip "one CPU"
  attempt "$ATTNBENCH" duet "$libraries/base.so" "$libraries/slow.so" "${tiny[@]}" --threads 2 -H 2 --kernel changed -o json
  json_holds "$work/stdout" '(lambda p: p["judged_by"] == "wall" and p["verdict"] in ("slower", "inconclusive") and
    p["ratio"] > 1.1 and min(p["log_ratios_wall"]) <= p["log_ratio"] <= max(p["log_ratios_wall"]))(d["points"][0])'
  # One head is one thread's: the gauge is the time on the wall, not twice that, over the CPU time.
  attempt "$ATTNBENCH" duet "$libraries/base.so" "$libraries/base.so" "${tiny[@]}" --threads 2 -H 1 --schedule bh \
    --kernel steady --processes 5 -o json
  json_holds "$work/stdout" '(lambda p: min(gauge * (cpu_a + cpu_b) / (wall_a + wall_b)
    for gauge, cpu_a, cpu_b, wall_a, wall_b in zip(p["wall_over_cpu"], p["medians_cpu_a_ns"], p["medians_cpu_b_ns"],
    p["medians_wall_a_ns"], p["medians_wall_b_ns"])) < 1.5)(d["points"][0])'
  json_holds "$work/stdout" 'all(isinstance(m, int) for m in d["points"][0]["migrations"])'
  attempt "$ATTNBENCH" duet "$libraries/base.so" "$libraries/base.so" "${tiny[@]}" --threads 2 --place none \
    --kernel steady --processes 2 -o json
  json_holds "$work/stdout" 'd["points"][0]["migrations"] == [None, None]'
}
