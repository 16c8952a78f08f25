# SPDX-License-Identifier: Apache-2.0
"""Types into an interactive shell on a terminal, completion key included, and prints the line that comes of it.

drive_shell.py bash|zsh SETUP KEYS

SETUP is a command that is run first; KEYS is what is typed, with "\\t" for the completion key. Instead of being run, the
line is printed as the shell's editor holds it.
"""
import os
import pty
import re
import select
import sys
import time

SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "PS1='>'; bind 'set enable-bracketed-paste off'; bind 'set bell-style none'"),
    "zsh": (["zsh", "-f", "-i"], "PROMPT='>'; unset zle_bracketed_paste; setopt no_beep; bindkey -e"),
}
LIMIT_S = 60


def read_until(terminal, marker, what):
    """All that is written until the marker (a pattern) stands there; an end without it is an error."""
    text, deadline = "", time.monotonic() + LIMIT_S
    while not re.search(marker, text):
        ready = select.select([terminal], [], [], max(0, deadline - time.monotonic()))[0]
        if not ready:
            sys.exit(f"no {what} within {LIMIT_S} s: {text!r}")
        text += os.read(terminal, 65536).decode(errors="replace")
    return text


def read_quiet(terminal, quiet_s):
    """What is written until nothing has been for so long."""
    text = ""
    while select.select([terminal], [], [], quiet_s)[0]:
        text += os.read(terminal, 65536).decode(errors="replace")
    return text


def main(shell, setup, keys):
    command, settings = SHELLS[shell]
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(TERM="dumb", HISTFILE="/dev/null", COLUMNS="200")
        os.execvp(command[0], command)
    # The marker is not in the text that the terminal echoes.
    os.write(terminal, f"{settings}; {setup}; printf 'rea%s\\n' dy\n".encode())
    read_until(terminal, "ready", "prompt")
    read_quiet(terminal, 0.3)
    for piece in re.split(r"(\\t)", keys):
        os.write(terminal, b"\t" if piece == "\\t" else piece.encode())
        if piece == "\\t":
            time.sleep(0.2)
            read_quiet(terminal, 0.5)
    # Home, quote the line as an argument, run it.
    os.write(terminal, b"\x01printf 'li%s[%s]\\n' ne '\x05'\n")
    line = re.search(r"line\[(.*?)\]", read_until(terminal, r"line\[.*?\]", "line")).group(1)
    os.write(terminal, b"exit\n")
    print(line)


if __name__ == "__main__":
    main(*sys.argv[1:4])
