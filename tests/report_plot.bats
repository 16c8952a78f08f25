#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# The plots of a whole page: every SVG of it is well-formed, follows the theme, loads nothing and names its marks; and
# the figures behind the plots are those of the results.

# shellcheck source=tests/helpers.bash
. "$BATS_TEST_DIRNAME/helpers.bash"

plots() { python "$BATS_TEST_DIRNAME/report_plot.py" "$@"; }

needs_gnuplot() { command -v gnuplot >/dev/null || skip "gnuplot is not installed"; }

# SECTION: "figures marks" of the page under test
drawn() { sed -n "s/^$1 //p" "$work/drawn"; }

@test "a run's plots are well-formed, and their table holds the run's figures" {
  needs_gnuplot
  attempt "$ATTNBENCH" run -S 32,64,128 -B 1,2 -H 2 -D 32 --kernel naive,tiled --threads 1 --place core:0 "${cheap[@]}" \
    --out run.jsonl
  expect_status 0
  attempt "$ATTNBENCH" report run.jsonl -o page.html
  expect_status 0
  plots check page.html >drawn
  [ "$(drawn roofline)" = "1 12" ] || tell "12 dots: $(<drawn)"
  [[ "$(drawn shapes)" = "2 12" ]] || tell "two sweeps over S: $(<drawn)"
  python - <<'PYTHON'
import html, json, re
page = open("page.html", encoding="utf-8").read()
section = re.search(r'<section id="roofline".*?</section>', page, re.S).group(0)
table = section[section.index("<caption>Points"):]
rows = [[html.unescape(re.sub("<.*?>", "", cell)) for cell in row.split("<td")[1:]] for row in table.split("<tr>")[2:]]
seen = sorted((row[0].split(">")[1], *(float(cell.split(">")[1]) for cell in row[4:6])) for row in rows)
records = [json.loads(line) for line in open("run.jsonl")][1:]
known = sorted((r["kernel"], r["flops_useful"] / r["bytes_min"], r["gflops"]) for r in records)
assert len(seen) == len(known) == 12, (seen, known)
for a, b in zip(seen, known):
    # Three digits are shown.
    assert a[0] == b[0] and all(abs(x / y - 1) <= 5e-3 for x, y in zip(a[1:], b[1:])), (a, b)
PYTHON
}

@test "plots of 10,000 points of a large machine stay small, several files lie over each other" {
  needs_gnuplot
  plots make 10000 >big.jsonl
  plots make 800 other >other.jsonl
  attempt "$ATTNBENCH" report big.jsonl -o page.html
  expect_status 0
  plots check page.html >drawn
  read -r _ bytes < <(grep ^bytes drawn)
  [ "$bytes" -lt 2000000 ] || tell "$bytes bytes of plots"
  read -r figures marks < <(drawn roofline)
  [ "$figures" = 4 ] && [ "$marks" -gt 1000 ] && [ "$marks" -le 4000 ] || tell "thinned: $(<drawn)"
  read -r figures marks < <(drawn shapes)
  [ "$figures" = 12 ] || tell "capped: $(<drawn)"
  read -r figures marks < <(drawn scaling)
  [ "$figures" = 8 ] || tell "speed-up and efficiency of four problems: $(<drawn)"
  read -r figures marks < <(drawn rivals)
  [ "$figures" = 10 ] || tell "all, and nine contests: $(<drawn)"
  grep -q 'Of [0-9]* dots [0-9]* are drawn' page.html
  grep -q 'further sweeps with fewer points are not drawn' page.html
  attempt "$ATTNBENCH" report big.jsonl other.jsonl -o page.html
  expect_status 0
  plots check page.html >drawn
  grep -q 'The machine: made up (other)' page.html
}

@test "without gnuplot, with one too old or broken, the figures stand and a sentence says why" {
  plots make 400 >run.jsonl
  mkdir bin
  attempt env PATH="$work/bin" "$ATTNBENCH" report run.jsonl -o page.html
  expect_status 0
  grep -q 'No plot here: gnuplot' page.html
  if grep -q '<svg viewBox="0 0' page.html; then tell "a figure without gnuplot"; fi
  [ "$(grep -c 'The data behind' page.html)" -ge 4 ] || tell "the data of all plots"
  # shellcheck disable=SC2016 # the script in gnuplot's place expands it
  printf '#!/bin/sh\n[ "$1" = --version ] && { echo "gnuplot 5.4"; exit; }\necho "no terminal <svg>" >&2\nexit 1\n' >bin/gnuplot
  chmod +x bin/gnuplot
  attempt env PATH="$work/bin" "$ATTNBENCH" report run.jsonl -o page.html
  expect_status 0
  grep -q 'Plots are missing here: .*no terminal &lt;svg&gt;' page.html
  # shellcheck disable=SC2016 # the script in gnuplot's place expands it
  printf '#!/bin/sh\n[ "$1" = --version ] && { echo "gnuplot 5.4"; exit; }\necho "<svg><g></svg>"\n' >bin/gnuplot
  attempt env PATH="$work/bin" "$ATTNBENCH" report run.jsonl -o page.html
  expect_status 0
  grep -q 'Plots are missing here: gnuplot wrote no whole SVG' page.html
  printf '#!/bin/sh\necho "gnuplot 4.6"\n' >bin/gnuplot
  attempt env PATH="$work/bin" "$ATTNBENCH" report run.jsonl -o page.html
  expect_status 0
  [[ $err == *"5.0 or newer"* ]] || tell "says what is needed"
  grep -q 'No plot here: gnuplot' page.html
}
