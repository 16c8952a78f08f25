# SPDX-License-Identifier: Apache-2.0
"""Several runs of one config: makes them, reads them, and takes the median of a figure over them."""
import json
import os
import re
import statistics
import subprocess
import sys
import time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir)
BAD = ("wrong", "failed")


def stop(message, code=2):
    print(f"{os.path.basename(sys.argv[0])}: {message}", file=sys.stderr)
    sys.exit(code)


def folder_name(context):
    """Of a machine's published results: the CPU's name for people, the key for programs."""
    cpu = re.sub(r"\(r\)|\(tm\)|\bcpu\b|\bprocessor\b|@.*", " ", context["cpu_model"].lower())
    return "-".join(re.findall(r"[a-z0-9]+", cpu) + [context["machine_key"]])


def record_runs(program, config, times, flags=()):
    """Runs the config so many times; returns the journals. A wrong or failed point (exit 1) stands in them."""
    folder = os.path.join(ROOT, "results", "local")
    os.makedirs(folder, exist_ok=True)
    stem = os.path.join(folder, time.strftime(f"{config}-%Y%m%dT%H%M%SZ", time.gmtime()))
    files = []
    for n in range(1, times + 1):
        file = f"{stem}-{n}.jsonl"
        path = os.path.join(ROOT, "configs", f"{config}.yaml")
        command = [program, "run", "--config", path, "--out", file, *flags]
        print(f"{config}: run {n} of {times} into {os.path.relpath(file)}", file=sys.stderr, flush=True)
        try:
            code = subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode
        except OSError as error:
            stop(f"{program}: {error.strerror}")
        if code not in (0, 1):
            stop(f"run {n} ended with exit code {code}", code if code > 0 else 1)
        files.append(file)
    return files


def read_run(file):
    """The records of a journal by point; of a point that was measured again, the last one."""
    records = {}
    try:
        with open(file, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    record = json.loads(line)
                except ValueError:
                    stop(f"{file}:{number}: no JSON")
                if record.get("schema") == "attnbench.result/1":
                    records[record["point_id"]] = record
    except OSError as error:
        stop(f"{file}: {error.strerror}")
    if not records:
        stop(f"{file}: holds no record")
    return records


def is_noisy(record):
    return record["noise"] is not None and record["noise"]["quality"] == "noisy"


class Point:
    """One point in all runs that have it."""

    def __init__(self, records):
        self.records = records
        self.measured = [r for r in records if r["status"] == "ok"]
        self.first = (self.measured or records)[0]

    def median(self, figure):
        """Of a record's field, or of a function of a record, over the runs that know it; None if none does."""
        take = figure if callable(figure) else lambda record: record[figure]
        values = [value for value in map(take, self.measured) if value is not None]
        return statistics.median(values) if values else None

    def noisy(self):
        return f"{sum(map(is_noisy, self.measured))}/{len(self.records)}"


def read_points(files):
    runs = [read_run(file) for file in files]
    names = {name: None for run in runs for name in run}
    return [Point([run[name] for run in runs if name in run]) for name in names]


def tell_bad(points):
    """Prints each point that was wrong or failed in a run; returns the exit code that this means."""
    code = 0
    for point in points:
        for record in point.records:
            if record["status"] in BAD:
                print(f"{record['status']}: {record['reason']}: {record['repro']}")
                code = 1
    return code
