#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills a run at random moments and holds what is left against what was promised.

kill_test.py PROGRAM --victim coordinator|worker|interrupt [--moments 20] [--seed 1]

coordinator  kill -9 of attnbench itself: no process of it stays behind, the journal is readable, --resume finishes
worker       kill -9 of one of its children: the run goes on and ends, the journal is whole, --resume finishes
interrupt    SIGINT: it ends soon with 130, the journal is whole, --resume finishes

In each case every point of the plan stands in the finished journal exactly once, and --resume measures nothing twice.
"""
import argparse
import collections
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

SWEEP = ["-S", "16-64+16", "-D", "16", "-H", "2", "--kernel", "naive,tiled", "--threads", "1,max",
         "--samples", "5", "--min-time", "0.02s"]
LIMIT = 60  # seconds for one run


class Fault(Exception):
    """A promise that was not kept."""


def start(program, *arguments):
    # Python ignores SIGPIPE and the test's shell may ignore SIGINT; the program gets both as a terminal would give them.
    return subprocess.Popen([program, "run", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, start_new_session=True,
                            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))


def finish(process, what, allowed):
    try:
        error = process.communicate(timeout=LIMIT)[1].decode(errors="replace")
    except subprocess.TimeoutExpired as expired:
        os.killpg(process.pid, signal.SIGKILL)
        raise Fault(f"{what} did not end within {LIMIT} s") from expired
    if process.returncode not in allowed:
        raise Fault(f"{what} ended with {process.returncode}, not {allowed}: {error[-800:]}")


def processes():
    """(pid, parent, session) of every process that is not a zombie."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8") as file:
                    state, parent, _, session = file.read().rpartition(")")[2].split()[:4]
            except OSError:
                continue
            if state != "Z":
                yield int(name), int(parent), int(session)


def expect_nobody_left(session):
    """The session leader is gone; its children must follow by themselves."""
    deadline = time.monotonic() + 10
    while any(s == session for _, _, s in processes()):
        if time.monotonic() > deadline:
            os.killpg(session, signal.SIGKILL)
            raise Fault("a child outlived its coordinator by 10 s")
        time.sleep(0.05)


def read_journal(path, torn_allowed):
    """Records of a journal; None if not even its first line was written."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        return None
    lines = data.split(b"\n")
    if lines.pop() != b"" and not torn_allowed:
        raise Fault(f"{path}: the last line is torn")
    if not lines:
        return None
    entries = [json.loads(line) for line in lines]
    if entries[0]["schema"] != "attnbench.context/1":
        raise Fault(f"{path}: the first line is no context")
    return [entry for entry in entries if entry["schema"] == "attnbench.result/1"]


def expect_once(records, plan, what):
    count = collections.Counter(record["point_id"] for record in records)
    doubled = [point for point, times in count.items() if times > 1]
    if doubled:
        raise Fault(f"{what}: doubled: {doubled}")
    foreign = set(count) - plan
    if foreign:
        raise Fault(f"{what}: not in the plan: {foreign}")
    return plan - set(count)


def disturb(program, victim, path, moment, generator):
    """One run, killed or interrupted at that moment. True: it was hit; False: nothing to hit yet; None: it had ended."""
    process = start(program, *SWEEP, "--out", path)
    time.sleep(moment)
    hit = True if process.poll() is None else None
    if victim == "coordinator":
        process.kill()
        process.communicate()
    elif victim == "interrupt":
        process.send_signal(signal.SIGINT)
        finish(process, "an interrupted run", [130, 0])
        hit = True if process.returncode == 130 else None
    else:
        children = [pid for pid, parent, _ in processes() if parent == process.pid]
        try:
            if hit and children:
                os.kill(generator.choice(children), signal.SIGKILL)
            elif hit:
                hit = False
        except ProcessLookupError:
            hit = None
        # The point under way may end as failed; the run goes on with the next.
        finish(process, "a run that lost a child", [0, 1])
    expect_nobody_left(process.pid)
    return hit


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--victim", choices=["coordinator", "worker", "interrupt"], required=True)
    parser.add_argument("--moments", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    generator = random.Random(options.seed)

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "whole.jsonl")
        begin = time.monotonic()
        finish(start(options.program, *SWEEP, "--out", path), "the undisturbed run", [0])
        duration = time.monotonic() - begin
        records = read_journal(path, False)
        plan = {record["point_id"] for record in records}
        if len(plan) != len(records) or not plan:
            raise Fault("the undisturbed run doubled a point or made none")
        print(f"undisturbed: {len(plan)} points in {duration:.2f} s; seed {options.seed}")

        hits = before_begin = failed = 0
        # Moments that miss are drawn again, up to a limit; earlier ones if the undisturbed run was a slow one.
        for attempt in range(10 * options.moments):
            if hits == options.moments:
                break
            moment = generator.uniform(0, duration)
            path = os.path.join(folder, f"{attempt}.jsonl")
            hit = disturb(options.program, options.victim, path, moment, generator)
            if not hit:
                duration *= 0.9 if hit is None else 1
                continue
            hits += 1
            where = f"{options.victim} at {moment:.3f} s"
            kept = read_journal(path, options.victim == "coordinator")
            if kept is None:
                before_begin += 1
                if options.victim == "worker":
                    raise Fault(f"{where}: no journal")
                if os.path.exists(path):
                    os.unlink(path)
                finish(start(options.program, *SWEEP, "--out", path), f"{where}: the run anew", [0])
                kept = []
            else:
                lost = expect_once(kept, plan, where)
                if options.victim == "worker" and lost:
                    raise Fault(f"{where}: the run went on without {lost}")
                subprocess.run([options.program, "show", path], check=True, stdout=subprocess.DEVNULL, timeout=LIMIT)
                finish(start(options.program, "--resume", path), f"{where}: --resume", [0, 1])
            records = read_journal(path, False)
            lost = expect_once(records, plan, f"{where}, resumed")
            if lost:
                raise Fault(f"{where}, resumed: lost {lost}")
            if records[:len(kept)] != kept:
                raise Fault(f"{where}, resumed: a finished record was changed")
            bad = [record for record in records if record["status"] != "ok"]
            failed += len(bad)
            if len(bad) > (1 if options.victim == "worker" else 0):
                # A placement's worker is shared by the points under way; what it takes along is told, and bounded.
                print(f"  {where}: {len(bad)} not ok: {[record['reason'] for record in bad]}")
                if options.victim != "worker":
                    raise Fault(f"{where}: points failed that nobody disturbed")
        if hits < options.moments:
            raise Fault(f"only {hits} of {options.moments} moments hit a running {options.victim}")
        print(f"{options.victim}: {hits} moments, {before_begin} of them before the journal began, {failed} points failed, "
              "none lost or doubled")


if __name__ == "__main__":
    try:
        main()
    except Fault as fault:
        sys.exit(f"FAULT: {fault}")
