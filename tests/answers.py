# SPDX-License-Identifier: Apache-2.0
"""Holds `attnbench topo --json` against every answer of a folder of recorded machines.

    answers.py ATTNBENCH FOLDER

FOLDER has ANSWERS.json beside the XML files that it speaks of. Of its keys only hwloc29_nbobjs_* (what one version of
hwloc counts, empty objects too) and first_pu_of_each_core_all (with disallowed ones) are not of topo's making. Prints
one line a machine, and every disagreement; exits 1 if there is one.
"""
import json
import subprocess
import sys

program, folder = sys.argv[1:3]
problems = []
compared = 0


def topo(*arguments):
    """(document or None, stderr)"""
    run = subprocess.run([program, "topo", "--json", *arguments], capture_output=True, text=True, timeout=120)
    return (json.loads(run.stdout) if run.returncode == 0 else None), run.stderr, run.returncode


def cpus_of(text):
    cpus = set()
    for item in (text or "none").split(","):
        if item != "none":
            first, _, last = item.partition("-")
            cpus |= set(range(int(first), int(last or first) + 1))
    return cpus


def agree(what, got, expected):
    global compared
    compared += 1
    if got != expected:
        problems.append(f"{what}: {got!r}, not {expected!r}")


def placement(path, expression, *arguments):
    """CPUs in thread order, or None where the placement is refused."""
    document, _, code = topo("--topology", path, "--place", expression, *arguments)
    if document is None:
        assert code == 2, code
        return None
    return document["placements"][0]["cpus"]


def check(name, answer):
    path = f"{folder}/{name}"
    document, warnings, _ = topo("--topology", path)
    if document is None:
        problems.append(f"{name} is refused: {warnings.strip()}")
        return
    placements = {entry["name"]: entry for entry in document["placements"]}
    agree(f"{name} unique names", len(placements), len(document["placements"]))
    for entry in placements.values():
        if entry["name"] != "none":
            agree(f"{name} {entry['name']} threads", entry["threads"], len(set(entry["cpus"])))
    for step in document["ladder"]:
        agree(f"{name} ladder step {step} among the placements", step in placements, True)
    sets = [frozenset(placements[step]["cpus"]) for step in document["ladder"]]
    agree(f"{name} ladder steps differ", len(set(sets)), len(sets))

    allowed = cpus_of(answer["allowed_pus"])
    agree(f"{name} allowed_pus", document["allowed_pus"], sorted(allowed))
    agree(f"{name} disallowed_pus", document["disallowed_pus"], sorted(cpus_of(answer["disallowed"])))
    agree(f"{name} pus", document["pus"], answer["n_allowed"])
    told = set(document["allowed_pus"] + document["disallowed_pus"])
    agree(f"{name} absent", cpus_of(answer["absent_or_offline"]) & told, set())

    cores = answer["all_cores_no_smt"]
    agree(f"{name} cores", document["cores"], cores["n"])
    for whole in ("compact", "scatter"):
        agree(f"{name} {whole}", set(placements[whole]["cpus"]), cpus_of(cores["pus"]))
    agree(f"{name} compact in order", placements["compact"]["cpus"],
          answer["first_pu_of_each_core_allowed"] or sorted(cpus_of(cores["pus"])))
    for whole in ("all", "smt"):
        agree(f"{name} {whole}", set(placements[whole]["cpus"]), cpus_of(answer["all_hw_threads"]["pus"]))
        agree(f"{name} {whole} threads", placements[whole]["threads"], answer["all_hw_threads"]["n"])

    l3 = [cpus_of(text) for text in answer["l3_domains"]]
    agree(f"{name} l3_domains", document["l3_domains"], len(l3))
    agree(f"{name} l3", [set(entry["cpus"]) for entry in document["l3"]], l3)
    for index, pus in enumerate(l3):
        agree(f"{name} l3:{index}", set(placements[f"l3:{index}"]["cpus"]), pus)
    agree(f"{name} l3 beyond the last", f"l3:{len(l3)}" in placements, False)
    agree(f"{name} without an L3", allowed - set().union(*l3), cpus_of(answer["pus_without_l3"]))
    each = placements.get("l3:each", {"cpus": [], "threads": 0})
    agree(f"{name} one core per L3", set(each["cpus"]), cpus_of(answer["one_core_per_l3"]["pus"]))
    agree(f"{name} one core per L3, threads", each["threads"], answer["one_core_per_l3"]["n"])
    if l3:
        agree(f"{name} l3 of the first PU", [pus for pus in l3 if placements["compact"]["cpus"][0] in pus],
              [cpus_of(answer["l3_of_first_pu"])])
        agree(f"{name} cores of one L3", set(placement(path, "l3:0/nosmt")), cpus_of(answer["one_l3_cores_no_smt"]))
    else:
        agree(f"{name} l3:0 is refused", placement(path, "l3:0"), None)

    nodes = {entry["node"]: set(entry["cpus"]) for entry in document["numa"]}
    agree(f"{name} numa", nodes, {entry["node"]: cpus_of(entry["pus"]) for entry in answer["numa_with_allowed_cpus"]})
    agree(f"{name} numa_nodes", document["numa_nodes"], len(answer["numa_with_allowed_cpus"]))
    localities = {frozenset(pus) for pus in nodes.values()}
    agree(f"{name} numa localities", len(localities), answer["numa_distinct_localities"])
    agree(f"{name} without a NUMA node", allowed - set().union(*nodes.values()), cpus_of(answer["pus_without_numa"]))
    for index, entry in enumerate(document["numa"]):
        agree(f"{name} numa:{index}", set(placements[f"numa:{index}"]["cpus"]), nodes[entry["node"]])

    sockets = [cpus_of(text) for text in answer["sockets_with_allowed_cpus"]]
    agree(f"{name} packages", document["packages"], len(sockets))
    for index, pus in enumerate(sockets):
        agree(f"{name} socket:{index}", set(placements[f"socket:{index}"]["cpus"]), pus)
    agree(f"{name} cores of one socket", set(placement(path, "socket:0/nosmt")),
          cpus_of(answer["one_socket_cores_no_smt"]))

    # With the answer's reference PU alone, its own caches are all that there are.
    agree(f"{name} first PU", placements["compact"]["cpus"][0], answer["first_allowed_pu_logical"])
    alone, _, _ = topo("--topology", path, "--restrict", str(answer["cache_ref_pu"]))
    for level, key in ((1, "l1d"), (2, "l2"), (3, "l3")):
        sizes = [c["size"] for c in alone["caches"] if c["level"] == level and c["type"] != "instruction"]
        agree(f"{name} L{level}", sizes, [answer[key]] if answer[key] else [])

    first = answer["first_pu_of_each_core_allowed"]
    width = document["pus_per_core"]
    if first:
        bounds = sorted(first)
        order = placements["smt"]["cpus"]
        widths = [order.index(b) - order.index(a) for a, b in zip(first, first[1:])]
        widths.append(len(order) - order.index(first[-1]))
        agree(f"{name} pus_per_core", width, {"min": min(widths), "max": max(widths)})
        agree(f"{name} core count", len(bounds), document["cores"])
    else:
        agree(f"{name} pus_per_core", width, {"min": None, "max": None})
    check_kinds(name, path, answer, document, warnings)
    agree(f"{name} warns of cores that are clusters", "clusters of cores" in warnings, name.startswith("broken-"))


# The truth where hwloc's kinds are not it: kinds of one design are told as one.
JOINED = {"hybrid-arm-gb10.xml": [cpus_of("0-4,10-14"), cpus_of("5-9,15-19")]}


def check_kinds(name, path, answer, document, warnings):
    told = [cpus_of(kind["allowed_pus"]) for kind in answer["cpukinds_by_efficiency"]]
    kinds = JOINED.get(name, told)
    agree(f"{name} kinds", [set(kind["cpus"]) for kind in document["kinds"]], kinds)
    agree(f"{name} efficiency", [kind["efficiency"] for kind in document["kinds"]], list(range(len(kinds))))
    agree(f"{name} hwloc's kinds", [set(kind["cpus"]) for kind in document["hwloc_kinds"]],
          [cpus_of(kind["pus"]) for kind in answer["cpukinds_by_efficiency"]])
    agree(f"{name} warns of joined kinds", "kinds of core" in warnings, name in JOINED)
    for kind, entry in zip(told, answer["cpukinds_by_efficiency"]):
        agree(f"{name} cores of a kind", set(placement(path, "all/nosmt", "--restrict", entry["allowed_pus"])),
              cpus_of(entry["no_smt"]))
    fast, slow = placement(path, "pcores"), placement(path, "ecores")
    if len(kinds) < 2:
        agree(f"{name} pcores, ecores", (fast, slow), (None, None))
    else:
        agree(f"{name} pcores", set(fast), kinds[-1])
        agree(f"{name} ecores", set(slow), set().union(*kinds[:-1]))


with open(f"{folder}/ANSWERS.json", encoding="utf-8") as file:
    answers = json.load(file)
for machine in sorted(answers):
    before = compared
    check(machine, answers[machine])
    print(f"{machine}: {compared - before} answers")
refused, message, status = topo("--topology", f"{folder}/refuse-xml-v3.xml")
agree("refuse-xml-v3.xml", (refused, status, "refuse-xml-v3.xml" in message), (None, 2, True))
print(f"{len(answers)} machines, {compared} comparisons, {len(problems)} disagreements")
print("\n".join(problems[:40]))
sys.exit(1 if problems or not answers else 0)
