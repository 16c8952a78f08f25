# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# bash completion of attnbench. The program itself tells what may come next, so this file knows no flag.

_attnbench() {
  local line=${COMP_LINE:0:COMP_POINT} program word prefix='' entry
  local -a words
  # bash cuts words at = and : too; the program wants them whole.
  read -r -a words <<<"$line"
  [[ $line == *[[:space:]] || ${#words[@]} -lt 2 ]] && words+=('')
  word=${words[${#words[@]} - 1]}
  program=${words[0]/#\~/$HOME}
  COMPREPLY=()
  # Only what stands behind the last cut is replaced.
  case $word in
    *[=:]*) prefix=${word%"${word##*[=:]}"} ;;
  esac
  [[ $COMP_WORDBREAKS != *:* && $prefix != *= ]] && prefix=${word%"${word#*=}"}
  while IFS= read -r entry; do
    case $entry in
      :files | :folders)
        local value=${word#*=} action=-f
        [[ $word == -*=* ]] || value=$word
        [ "$entry" = :folders ] && action=-d
        compopt -o filenames 2>/dev/null
        while IFS= read -r entry; do COMPREPLY+=("$entry"); done < <(compgen "$action" -- "$value")
        ;;
      *)
        entry=${entry%%$'\t'*}
        [[ $entry == *[:=] ]] && compopt -o nospace 2>/dev/null
        COMPREPLY+=("${entry#"$prefix"}")
        ;;
    esac
  done < <("$program" @complete "${words[@]:1}" 2>/dev/null)
}

complete -F _attnbench attnbench
