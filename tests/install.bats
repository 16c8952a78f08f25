#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# What stands beside the program: installation and its undoing, the manual page, completion in real shells.

# shellcheck source=tests/helpers.bash
. "$BATS_TEST_DIRNAME/helpers.bash"

# Installs the program under test below $work/dest; the further arguments are scripts/install-files's own environment.
install_into() { # PREFIX
  "$root/scripts/manual" "$ATTNBENCH" >manual.1
  DESTDIR=$work/dest "$root/scripts/install-files" install "$1" "$ATTNBENCH" "$work/manual.1"
}

uninstall_from() { # PREFIX
  DESTDIR=$work/dest "$root/scripts/install-files" uninstall "$1"
}

@test "an installed program runs its configs from anywhere, names no folder of the build, and uninstalls without a trace" {
  install_into /usr
  cd /
  attempt "$work/dest/usr/bin/attnbench" list configs
  expect_status 0
  expect_out quick models
  attempt "$work/dest/usr/bin/attnbench" run --config quick --quick-check --kernel naive --threads 1 -S 32 \
    --out "$work/out.jsonl"
  expect_status 0
  holds "$work/out.jsonl" 'len(contexts) == 1 and contexts[0]["config"] == "quick" and any(r["status"] == "ok" for r in records)'
  cd "$work"
  local file
  for file in bin/attnbench share/attnbench/configs/quick.yaml share/attnbench/schema/result.schema.json \
    share/man/man1/attnbench.1 share/bash-completion/completions/attnbench share/zsh/site-functions/_attnbench \
    share/doc/attnbench/LICENSE; do
    [ -s "dest/usr/$file" ] || tell "$file should be installed"
  done
  [ -x dest/usr/bin/attnbench ]
  [ ! -x dest/usr/share/attnbench/configs/quick.yaml ]
  if grep -aqF "$root" dest/usr/bin/attnbench; then tell "the program names $root"; fi
  uninstall_from /usr
  [ ! -e dest ] || tell "left: $(find dest)"
}

@test "what others have beside it stays, and a second installation is undone as one" {
  mkdir -p dest/opt/bin dest/opt/share/man/man1
  echo theirs >dest/opt/share/man/man1/other.1
  find dest | sort >before
  install_into /opt
  touch dest/opt/share/attnbench/configs/of_an_older_version.yaml
  install_into /opt
  uninstall_from /opt
  find dest | sort | cmp before -
  local status=0
  uninstall_from /opt 2>err || status=$?
  [ "$status" = 1 ]
  grep -q 'nothing is installed' err
}

@test "a PREFIX that is no path from / on is refused" {
  status=0
  "$root/scripts/install-files" install some/where "$ATTNBENCH" manual.1 2>err || status=$?
  [ "$status" = 2 ]
  grep -q "some/where" err
}

@test "the manual page names every command and every flag" {
  "$root/scripts/manual" "$ATTNBENCH" | sed 's/\\-/-/g' >page
  attempt "$ATTNBENCH" --help
  local command flag file count=0
  for command in $(listed_commands); do
    grep -q "^\.SS ${command//-/\\?-}\$" page || tell "no section about $command"
    # Both as --help tells them and as the sources do.
    for flag in $("$ATTNBENCH" "$command" --help | grep -oE '^ {1,8}-[^ ].*' | grep -oE '(^|[ ,])--?[A-Za-z][a-z-]*' | tr -d ', ' | sort -u); do
      grep -qF "\\fB$flag\\fR" page || tell "$command $flag is missing"
      count=$((count + 1))
    done
    file=$root/harness/command_${command//-/_}.c
    while read -r flag; do
      grep -qF "\\fB--$flag\\fR" page || tell "$command --$flag is missing"
    done < <(grep -oE '\{"[a-z-]+", (no|required|optional)_argument' "$file" | cut -d '"' -f 2)
  done
  [ "$count" -gt 60 ] || tell "only $count flags were found"
  for flag in 0 1 2 3 4 5 77 130; do grep -qx "\.B $flag" page || tell "exit code $flag is missing"; done
}

@test "the manual page is well formed: mandoc" {
  command -v mandoc >/dev/null || skip "mandoc is not here"
  "$root/scripts/manual" "$ATTNBENCH" >page.1
  attempt mandoc -T lint -W style page.1
  expect_status 0
  [ -z "$out" ] || tell "no finding expected"
  printf '.TH X 1 2026-01-01\n.SH NAME\nx\n.XX\n' >bad.1
  attempt mandoc -T lint -W style bad.1
  [ -n "$out" ] || tell "mandoc should find fault with a bad page"
}

@test "the manual page is well formed: man" {
  # A minimal system has a stand-in of this name.
  man --version 2>/dev/null | grep -q '^man ' || skip "man is not here"
  "$root/scripts/manual" "$ATTNBENCH" >page.1
  MANWIDTH=80 attempt man --warnings -l page.1
  expect_status 0
  [ -z "$err" ] || tell "no warning expected"
  expect_out ATTNBENCH --kernel --config 'EXIT STATUS'
}

# SHELL SETUP LINES: pairs of keys typed and the line that must come of them.
completes() {
  local shell=$1 setup=$2 typed line
  shift 2
  while [ $# -gt 0 ]; do
    typed=$1 line=$(python3 "$root/tests/drive_shell.py" "$shell" "$setup" "$1")
    line=${line% }
    [ "${line%/}" = "$2" ] || { # zsh shows the slash of a folder only until the line goes on
      printf 'typed %s, expected %s, found %s\n' "$typed" "$2" "$line"
      return 1
    }
    shift 2
  done
}

cases=(
  'attnbench exp\t' 'attnbench export'
  'attnbench list conf\t' 'attnbench list configs'
  'attnbench run --kern\tnai\t' 'attnbench run --kernel naive'
  'attnbench run --dtype=f32,bf\t' 'attnbench run --dtype=f32,bf16'
  'attnbench run --causal bottom_right_\t' 'attnbench run --causal bottom_right_valid'
  'attnbench run --config charac\t' 'attnbench run --config characterize'
  'attnbench run --place compa\t' 'attnbench run --place compact'
  'attnbench run --place=l3:ea\t' 'attnbench run --place=l3:each'
  'attnbench run llama-3-8\t' 'attnbench run llama-3-8b'
  'attnbench run --schedule spl\t' 'attnbench run --schedule splitkv'
  'attnbench selft\t' 'attnbench selftest-gate'
  'attnbench duet naive til\t' 'attnbench duet naive tiled'
  'attnbench duet --one\t' 'attnbench duet --one-sided'
  'attnbench duet only-f\t' 'attnbench duet only-file.jsonl'
  'attnbench gate only-f\t' 'attnbench gate only-file.jsonl'
  'attnbench gate --mark\tonly-f\t' 'attnbench gate --markdown only-file.jsonl'
  'attnbench compare only-f\t' 'attnbench compare only-file.jsonl'
  'attnbench compare -o js\t' 'attnbench compare -o json'
  'attnbench history chan\t' 'attnbench history changes'
  'attnbench history import only-f\t' 'attnbench history import only-file.jsonl'
  'attnbench history changes --fail-on sl\t' 'attnbench history changes --fail-on slower'
  'attnbench history list --color nev\t' 'attnbench history list --color never'
  'attnbench history --db only-f\t' 'attnbench history --db only-file.jsonl'
  'attnbench selftest-gate --verd\t' 'attnbench selftest-gate --verdicts'
  'attnbench show only-f\t' 'attnbench show only-file.jsonl'
  'attnbench merge --output=only-f\t' 'attnbench merge --output=only-file.jsonl'
  'attnbench verify --case only-d\t' 'attnbench verify --case only-dir'
)

@test "bash completes commands, flags, values, kernels, configs, models and files" {
  touch only-file.jsonl
  mkdir only-dir
  install_into /usr
  completes bash "PATH=$work/dest/usr/bin:\$PATH; . $work/dest/usr/share/bash-completion/completions/attnbench" "${cases[@]}"
}

@test "zsh completes them too" {
  command -v zsh >/dev/null || skip "zsh is not here"
  touch only-file.jsonl
  mkdir only-dir
  install_into /usr
  completes zsh "PATH=$work/dest/usr/bin:\$PATH; fpath=($work/dest/usr/share/zsh/site-functions \$fpath); autoload -Uz compinit; compinit -u -d $work/dump" \
    "${cases[@]}"
}

@test "completion offers every command and flag, and never one twice" {
  local command
  for command in $(listed_commands); do
    [[ $'\n'$("$ATTNBENCH" @complete "") == *$'\n'"$command"$'\t'* ]] || tell "$command is not offered"
    "$ATTNBENCH" @complete "$command" - | cut -f 1 >flags
    grep -qx -e --help flags || tell "$command --help is not offered"
    [ "$(sort flags | uniq -d)" = "" ] || tell "$command: $(sort flags | uniq -d) twice"
  done
  [ "$("$ATTNBENCH" @complete run --kernel "" | cut -f 1 | sort)" = "$("$ATTNBENCH" list kernels --json | python3 -c '
import json, sys
print("\n".join(sorted({k["name"] for k in json.load(sys.stdin)["kernels"]})))')" ] || tell "the kernels should be those of list kernels"
}
