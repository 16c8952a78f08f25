#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Exports for other tools, each read by the tool itself where it is there, and by its documented form in any case.

# shellcheck source=tests/helpers.bash
. "$BATS_TEST_DIRNAME/helpers.bash"

data() { python "$BATS_TEST_DIRNAME/compare_data.py" "$@"; }

# Whichever python3 has the module; fails if none has.
python_with() { # MODULE
  local candidate
  for candidate in python3 /usr/bin/python3; do
    if "$candidate" -c "import $1" 2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
  return 1
}

# Five ok points, a skipped, a wrong and a failed one; reasons with all that a format could trip over.
mixed() {
  data base >base.jsonl
  data edit base.jsonl mixed.jsonl 'hard = " <b> & \"q\" \u0027 ]]> \u0001 \ufffe ü,\nnext"
if r and n > 4:
    r["status"], r["reason"] = ["skipped", "wrong", "failed"][n - 5], ["needs AVX-512", "17 x", "signal 9"][n - 5] + hard
    for key in ("median_ns", "roof_fraction", "gflops", "ci95_low_ns", "gb_per_s", "tokens_per_s"): r[key] = None
    r["samples_ns"] = []
if r and n == 1: r["noise"]["wall_over_cpu"] = 1.25'
}

export_as() { # FORMAT FILE [STDERR]
  attempt "$ATTNBENCH" export "$2" --format "$1"
  expect_status 0
  [ "$err" = "${3:-}" ] || tell "on stderr '${3:-}' expected"
}

# The fields that github-action-benchmark's README and its extract.ts give to customSmallerIsBetter: name and unit
# strings, value a number, range and extra optional strings.
@test "github: an array of entries with name, unit, value, range and extra" {
  mixed
  export_as github mixed.jsonl "mixed.jsonl: 3 points without a time left out (1 skipped, 1 wrong, 1 failed)"
  python - <<'PY'
import json

entries = json.load(open("stdout"))
assert isinstance(entries, list) and len(entries) == 5, entries
for entry in entries:
    assert set(entry) == {"name", "unit", "value", "range", "extra"}, entry
    assert all(isinstance(entry[key], str) and entry[key] for key in ("name", "unit", "range", "extra")), entry
    assert isinstance(entry["value"], float) and entry["unit"] == "ns", entry
assert [entry["value"] for entry in entries] == [105.0 * i for i in range(1, 6)]
assert len({entry["name"] for entry in entries}) == 5
assert entries[0]["name"] == "scaled_dot_product/f32/B:1/H:2/S:64/D:64/naive/auto/threads:2/compact"
assert entries[0]["range"] == "± 3.8 %", entries[0]  # (109 - 101) / 2 / 105
PY
  # Without an interval there is no range.
  data edit base.jsonl few.jsonl 'if r: r["ci95_low_ns"] = r["ci95_high_ns"] = None'
  export_as github few.jsonl
  python -c 'import json; assert all("range" not in e for e in json.load(open("stdout"))) and len(json.load(open("stdout"))) == 8'
}

@test "junit: XML with a case a point; wrong and failed are failures, skipped is skipped" {
  mixed
  export_as junit mixed.jsonl
  python - <<'PY'
import xml.etree.ElementTree as tree

root = tree.parse("stdout").getroot()
assert root.tag == "testsuites" and [suite.tag for suite in root] == ["testsuite"]
suite = root[0]
for element in (root, suite):
    assert [element.get(key) for key in ("tests", "failures", "errors", "skipped")] == ["8", "2", "0", "1"], element.attrib
assert suite.get("timestamp") == "2026-01-02T03:04:05" and suite.get("hostname") == "bench"
assert {p.get("name"): p.get("value") for p in suite.find("properties")}["machine_key"] == "m"
cases = suite.findall("testcase")
assert len({(case.get("classname"), case.get("name")) for case in cases}) == 8
assert [case.get("time") for case in cases] == ["%.9f" % (105e-9 * i if i < 6 else 0) for i in range(1, 9)]
assert cases[0].get("classname") == "scaled_dot_product/f32/B:1/H:2/S:64/D:64"
assert cases[0].get("name") == "naive/auto/threads:2/compact"
hard = " <b> & \"q\" ' ]]> ? ? ü,\nnext"
assert [(case[0].tag, case[0].get("type"), case[0].get("message")) for case in cases[5:]] == [
    ("skipped", None, "needs AVX-512" + hard), ("failure", "wrong", "17 x" + hard), ("failure", "failed", "signal 9" + hard)]
assert "median 105 ns" in cases[0].find("system-out").text
PY
}

@test "junit: junitparser reads it" {
  local reader
  reader=$(python_with junitparser) || skip "no junitparser (scripts/setup --test)"
  mixed
  export_as junit mixed.jsonl
  "$reader" - <<'PY'
import junitparser

report = junitparser.JUnitXml.fromfile("stdout")
assert (report.tests, report.failures, report.errors, report.skipped) == (8, 2, 0, 1), report
cases = [case for suite in report for case in suite]
assert len(cases) == 8 and abs(cases[1].time - 210e-9) < 1e-12
assert [type(case.result[0]).__name__ if case.result else None for case in cases] == [None] * 5 + ["Skipped", "Failure", "Failure"]
assert cases[5].result[0].message.startswith("needs AVX-512")
for suite in report:  # its own count agrees with what stands in the attributes
    before = (suite.tests, suite.failures, suite.errors, suite.skipped)
    suite.update_statistics()
    assert (suite.tests, suite.failures, suite.errors, suite.skipped) == before
PY
}

# The fields of Google Benchmark's JSONReporter.
@test "google-benchmark: context, iterations and aggregates as its own reporter writes them" {
  mixed
  export_as google-benchmark mixed.jsonl
  python - <<'PY'
import json, statistics

whole = json.load(open("stdout"))
context = whole["context"]
assert context["date"] == "2026-01-02T03:04:05Z" and context["host_name"] == "bench" and context["num_cpus"] == 4
assert context["executable"] == "attnbench" and context["cpu_scaling_enabled"] is False
assert context["library_build_type"] == "release" and context["load_avg"] == [] and context["mhz_per_cpu"] is None
assert context["caches"][0] == {"type": "Data", "level": 1, "size": 32768, "num_sharing": 2}
entries = whole["benchmarks"]
names = {entry["run_name"] for entry in entries}
assert len(names) == 5 and "skipped" in whole and len(whole["skipped"]) == 1
assert whole["skipped"][0]["skip_message"].startswith("needs AVX-512") and whole["skipped"][0]["name"] not in names
# Not among the benchmarks, where a time of 0 would be compared.
assert not any("error_occurred" in entry for entry in entries)
assert [(e["error_occurred"], e["error_message"][:9]) for e in whole["errors"]] == [(True, "wrong: 17"), (True, "failed: s")]
assert len({e["name"] for e in whole["errors"]} - names) == 2
for family, name in enumerate(dict.fromkeys(entry["run_name"] for entry in entries)):
    own = [entry for entry in entries if entry["run_name"] == name]
    runs = [entry for entry in own if entry["run_type"] == "iteration"]
    assert [run["repetition_index"] for run in runs] == list(range(11))
    assert all(run["name"] == name and run["repetitions"] == 11 and run["threads"] == 2 for run in runs)
    assert all(run["iterations"] == 1 and run["time_unit"] == "ns" and run["family_index"] == family for run in runs)
    times = [run["real_time"] for run in runs]
    assert times == [(family + 1) * (100.0 + 7 * i % 11) for i in range(11)]
    expected = {"mean": statistics.mean(times), "median": statistics.median(times), "stddev": statistics.stdev(times)}
    share = 1 / 1.25 if family == 1 else 1
    for aggregate in [entry for entry in own if entry["run_type"] == "aggregate"]:
        figure = expected.pop(aggregate["aggregate_name"])
        assert aggregate["name"] == name + "_" + aggregate["aggregate_name"] and aggregate["aggregate_unit"] == "time"
        assert abs(aggregate["real_time"] - figure) < 1e-9 and abs(aggregate["cpu_time"] - share * figure) < 1e-9
        assert "repetition_index" not in aggregate and aggregate["iterations"] == 11
    assert not expected
    assert all(abs(run["cpu_time"] - share * run["real_time"]) < 1e-9 for run in runs)
PY
  data edit base.jsonl debug.jsonl 'if c: c["flags"] = "-O0"; c["governor"] = None
if r: r["noise"]["wall_over_cpu"] = None'
  export_as google-benchmark debug.jsonl
  python -c 'import json
d = json.load(open("stdout")); c = d["context"]
assert c["library_build_type"] == "debug" and "cpu_scaling_enabled" not in c
assert all(b["cpu_time"] == b["real_time"] for b in d["benchmarks"])'
}

@test "google-benchmark: its tools/compare.py finds the changes" {
  local tool=/usr/share/benchmark/compare.py reader
  [ -f "$tool" ] || skip "no $tool (libbenchmark-tools; scripts/setup --test)"
  reader=$(python_with scipy.stats) || skip "no SciPy, which $tool needs (scripts/setup --test)"
  mixed
  data edit base.jsonl slower.jsonl 'if r and n == 2: scale(r, 1.5)
if r and n == 4: r["status"], r["reason"] = "failed", "signal 9"
if r and n == 5: r["status"], r["reason"] = "wrong", "17 x its bound"
if r and n == 7: r["status"], r["reason"] = "skipped", "not here"'
  "$ATTNBENCH" export base.jsonl --format google-benchmark -o a.json
  "$ATTNBENCH" export slower.jsonl --format google-benchmark -o b.json
  attempt "$reader" "$tool" --no-color --dump_to_json report.json benchmarks a.json b.json
  expect_status 0
  "$reader" - <<'PY'
import json

report = {entry["name"]: entry for entry in json.load(open("report.json"))}
name = "scaled_dot_product/f32/B:1/H:2/S:%d/D:64/%s/auto/threads:2/compact"
changed, same = report[name % (64, "tiled")], report[name % (128, "tiled")]
assert len(changed["measurements"]) == 11 and all(abs(m["time"] - 0.5) < 1e-9 for m in changed["measurements"])
assert changed["utest"]["time_pvalue"] < 0.001 and changed["utest"]["have_optimal_repetitions"] is True
assert all(m["time"] == 0 and m["cpu"] == 0 for m in same["measurements"]) and same["utest"]["time_pvalue"] > 0.9
assert abs(report[name % (64, "tiled") + "_median"]["measurements"][0]["time"] - 0.5) < 1e-9
# What was measured in one file alone is no change, least of all one by -100 %.
for size, kernel in ((64, "avx2"), (128, "avx2"), (128, "avx512")):
    assert not any(entry.startswith(name % (size, kernel)) for entry in report), report.keys()
assert not any(m["time"] <= -0.5 for entry in report.values() for m in entry["measurements"])
PY
}

@test "names are unique and the same whatever else a file holds" {
  mixed
  data edit base.jsonl other.jsonl 'if c: c["run_id"], c["machine_key"] = "run-2", "other"
if r: r["run_id"] = "run-2"; scale(r, 2)'
  cat base.jsonl other.jsonl >two.jsonl
  # Another run of the same machine, and a part of it in another order.
  { head -n 1 base.jsonl && tail -n 4 base.jsonl && tail -n +2 base.jsonl; } >again.jsonl
  local file
  for file in base again two; do
    export_as github "$file.jsonl"
    mv stdout "$file.json"
    export_as junit "$file.jsonl"
    mv stdout "$file.xml"
  done
  python - <<'PY'
import json
import xml.etree.ElementTree as tree

base, again, two = ([entry["name"] for entry in json.load(open(file))] for file in ("base.json", "again.json", "two.json"))
assert len(base) == len(set(base)) == 8 and sorted(again) == sorted(base)
assert len(two) == len(set(two)) == 16 and set(two) == {f"{name}/machine:{key}" for name in base for key in ("m", "other")}
suites = tree.parse("two.xml").getroot()
assert [suite.get("tests") for suite in suites] == ["8", "8"] and suites.get("tests") == "16"
assert all(case.get("name").endswith("/machine:other") for case in suites[1].iter("testcase"))
PY
}

@test "jsonl and json are what the schemas say, and hold what the file held" {
  attempt "$ATTNBENCH" run "${cheap[@]}" -S 16 -D 16 --kernel naive,tiled --threads 1 --out run.jsonl
  expect_status 0
  mixed
  local file
  for file in run.jsonl mixed.jsonl; do
    export_as jsonl "$file"
    cp stdout lines.jsonl
    valid_journal lines.jsonl
    export_as json "$file"
    python - "$file" <<'PY'
import json, sys

held = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
whole = json.load(open("stdout", encoding="utf-8"))
assert set(whole) == {"contexts", "records"}, set(whole)
assert [json.loads(line) for line in open("lines.jsonl", encoding="utf-8")] == held
assert whole["contexts"] + whole["records"] == held
with open("whole.jsonl", "w", encoding="utf-8") as out:
    out.writelines(json.dumps(line) + "\n" for line in whole["contexts"] + whole["records"])
PY
    valid_journal whole.jsonl
  done
}

@test "csv: Python's reader finds every record with its reason" {
  mixed
  export_as csv mixed.jsonl
  python - <<'PY'
import csv, json

held = [json.loads(line) for line in open("mixed.jsonl", encoding="utf-8")][1:]
rows = list(csv.DictReader(open("stdout", encoding="utf-8", newline="")))
assert len(rows) == 8 and all(None not in row and None not in row.values() for row in rows), rows
assert [row["reason"] for row in rows] == [record["reason"] or "" for record in held]
assert [row["median_ns"] for row in rows][5:] == ["", "", ""] and float(rows[1]["median_ns"]) == 210
PY
}

@test "md: GitHub's reader finds the tables, and text from the file stays text" {
  mixed
  export_as md mixed.jsonl
  markdown_tables stdout >tables.json
  python - <<'PY'
import json

tables = json.load(open("tables.json"))
assert [len(table) for table in tables[1:]] == [5, 5], tables
assert all(len(row) == len(table[0]) > 1 for table in tables for row in table), tables
assert tables[0][1][0] == "CPU" and tables[1][0][-1] == "status"
hard = "<b> & \"q\" ' ]]> ? ü, next"
cells = sorted(row[-1].replace("\ufffe", "?").replace("\ufffd", "?") for table in tables[1:] for row in table[1:])
assert cells == sorted(5 * ["ok"] + [f"{what} {hard}" for what in
                                     ("skipped: needs AVX-512", "wrong: 17 x", "failed: signal 9")]), cells
PY
}

@test "run -o takes the same formats" {
  attempt "$ATTNBENCH" run "${cheap[@]}" -S 16 -D 16 --kernel naive,tiled --threads 1 -o github
  expect_status 0
  python -c 'import json; d = json.load(open("stdout")); assert len(d) == 2 and all(e["value"] > 0 for e in d), d'
  attempt "$ATTNBENCH" run "${cheap[@]}" -S 16 -D 16 --kernel naive --threads 1 -o google-benchmark
  expect_status 0
  python -c 'import json; d = json.load(open("stdout")); assert d["benchmarks"][0]["real_time"] > 0 and d["context"]["num_cpus"] > 0, d'
  attempt "$ATTNBENCH" run "${cheap[@]}" -S 16 -D 16 --kernel naive --threads 1 -o junit
  expect_status 0
  python -c 'import xml.etree.ElementTree as t; assert len(t.parse("stdout").findall("testsuite/testcase")) == 1'
  refused run "${cheap[@]}" -S 16 -D 16 --kernel naive -o xml -- -o xml google-benchmark
}

@test "export refuses unknown formats, and files that hold no results" {
  data base >base.jsonl
  refused export base.jsonl --format xml -- xml github junit google-benchmark
  : >empty.jsonl
  refused export empty.jsonl --format junit -- empty.jsonl
  # A context alone is no error: nothing was measured.
  head -n 1 base.jsonl >none.jsonl
  export_as github none.jsonl
  [ "$out" = "[]" ] || tell "an empty array expected"
  export_as junit none.jsonl
  expect_out 'tests="0"'
  export_as google-benchmark none.jsonl
  python -c 'import json; assert json.load(open("stdout"))["benchmarks"] == []'
}
