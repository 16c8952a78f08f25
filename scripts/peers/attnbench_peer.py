# SPDX-License-Identifier: Apache-2.0
"""The side of the peer protocol that is the same for every Python library; kernels/README.md has the protocol.

A peer's file says what it can do and how one call is made:

    import attnbench_peer

    class Call:                                   # one open problem
        source = "mine 1.0"
        def __init__(self, problem, threads): ... # raises attnbench_peer.Refusal(reason) for what it cannot do
        def bind(self, copy): ...                 # a function without arguments that computes copy.out

    attnbench_peer.serve({"name": "mine", ...}, "module", Call)

This module must be imported before anything heavy: it takes the protocol's stdout away from all that libraries print, and
its folder off the path, since the files beside it bear the names of the modules that they import.
"""
import importlib.metadata
import importlib.util
import json
import os
import sys
import time
import traceback

_here = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder) != _here]

_answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
_requests = os.fdopen(os.dup(0), "r", encoding="utf-8")
os.dup2(2, 1)
_nothing = os.open(os.devnull, os.O_RDONLY)
os.dup2(_nothing, 0)
os.close(_nothing)


class Refusal(Exception):
    """A problem that the library cannot do; the text is the reason that the record tells."""


class _BadRequest(Exception):
    pass


def version_of(module):
    """The module's version, without importing it."""
    if importlib.util.find_spec(module) is None:
        raise Refusal(f"the Python module {module} is not installed (make peers)")
    try:
        return importlib.metadata.version(module)
    except importlib.metadata.PackageNotFoundError:
        return "of unknown version"


def _sibling(name):
    """A module of this folder, which is off the path."""
    spec = importlib.util.spec_from_file_location(name, os.path.join(_here, name + ".py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class _Turns:
    """Unclocked and clocked calls, in turn over the copies of the inputs."""

    def __init__(self):
        self.steps = []
        self.next = 0

    def calls(self, count):
        """Nanoseconds that so many calls took."""
        steps, at, most = self.steps, self.next, len(self.steps)
        start = time.perf_counter_ns()
        for _ in range(count):
            steps[at]()
            at += 1
            if at == most:
                at = 0
        taken = time.perf_counter_ns() - start
        self.next = at
        return taken

    @property
    def latest(self):
        """The copy that the latest call used."""
        return self.next - 1 if self.next else len(self.steps) - 1

    def warm(self, least_ns):
        """Nanoseconds of one call, found in calls for so long; 0 if there was none to be made."""
        if least_ns <= 0:
            return 0
        spent = first = self.calls(1)
        later = 0
        while spent < least_ns:
            spent += self.calls(1)
            later += 1
        # The first call finds caches and threads cold: others tell better, where there are any.
        return (spent - first) / later if later else first


def _flushes_subnormals():
    """Of the first thread; no process starts so, so somebody has switched it."""
    smallest = float("5e-324")
    return smallest * float("1") == 0.0


class _Server:
    def __init__(self, kernel, module, make_call):
        self.kernel, self.module, self.make_call = kernel, module, make_call
        self.forget()

    def forget(self):
        self.call = self.memory = self.page_mode = None
        self.threads = 0
        self.copies = []
        self.turns = _Turns()

    def hello(self, request):
        version = version_of(self.module)
        traits = {"rules": ["scaled_dot_product"], "own_threads": True, "spans": False, "weights": False,
                  "partial": False, "split_keys": False, "isa": []}
        return {"event": "hello", "protocol": 1, "source": f"{self.module} {version}",
                "kernels": [{**traits, **self.kernel}]}

    def open(self, request):
        self.close(request)
        version_of(self.module)
        version_of("numpy")
        # Not at the top: numpy is heavy for a greeting, and may be absent.
        memory = _sibling("attnbench_peer_memory")
        self.pages_of = memory.page_mode
        description = request["problem"]
        if request["kernel"] != self.kernel["name"]:
            raise Refusal(f"no kernel {request['kernel']} here")
        if description["rule"] != "scaled_dot_product":
            raise Refusal(f"does no {description['rule']}")
        if description["weights"]:
            raise Refusal("does not return the attention weights")
        problem = memory.Problem(description, request["memory"]["tensors"])
        if problem.empty:
            raise Refusal("an empty problem: nothing for a library to do")
        self.threads = request["threads"]
        self.call = self.make_call(problem, self.threads)
        self.memory = memory.SharedMemory(request["memory"])
        self.copies = [memory.Copy(problem, self.memory, getattr(self.call, "orders", {}))
                       for _ in range(request["copies"])]
        # Models are made when tensors are bound: what cannot be made is to be refused now, whatever lies in the memory.
        self.copies[0].load()
        self.call.bind(self.copies[0])
        return {"event": "opened", "schedule": "own", "source": self.call.source, "threads": request["threads"],
                "workspace_bytes": getattr(self.call, "workspace_bytes", None)}

    def load(self, request):
        for copy in self.copies:
            copy.load()
        self.turns.steps = [self.call.bind(copy) for copy in self.copies]
        self.turns.next = 0
        self.page_mode = self.pages_of(self.copies)
        return {"event": "loaded"}

    def turn(self, request):
        if not self.turns.steps:
            raise _BadRequest("nothing is loaded")
        call_ns = self.turns.warm(request["warm_ns"])
        calls = request["calls_per_sample"]
        if calls <= 0:
            calls = max(1, round(request["aim_ns"] / call_ns)) if call_ns else 1
        samples = []
        cpu_ns = wall_ns = 0
        for sample in range(request["samples"]):
            if request["last"] and sample == request["samples"] - 1:
                self.poison()
            before = time.process_time_ns()
            taken = self.turns.calls(calls)
            cpu_ns += time.process_time_ns() - before
            wall_ns += taken
            samples.append(taken / calls)
        if request["last"]:
            self.write_back()
        answer = {"event": "turn", "samples_ns": samples, "calls_per_sample": calls,
                  "call_ns": call_ns or (sum(samples) / len(samples) if samples else 0),
                  "source": self.call.source, "changed_float_mode": _flushes_subnormals(),
                  "cpu_ns": cpu_ns, "page_mode": self.page_mode}
        # One thread is busy as long as the samples last. Of several only the library knows.
        if self.threads == 1:
            answer["busy_ns"] = [wall_ns]
        return answer

    def poison(self):
        for copy in self.copies:
            copy.poison()
        if hasattr(self.call, "poison"):
            self.call.poison()

    def write_back(self):
        latest = self.copies[self.turns.latest]
        if hasattr(self.call, "fetch"):
            self.call.fetch(latest)
        latest.write_back()

    def close(self, request):
        if self.call is not None and hasattr(self.call, "close"):
            self.call.close()
        self.forget()
        return {"event": "closed"}

    def answer(self, line):
        operation = "request"
        try:
            try:
                request = json.loads(line)
                operation = request["op"]
            except (ValueError, TypeError, KeyError):
                raise _BadRequest(f"not a JSON object with op: {line.strip()[:80]}") from None
            operations = {"hello": self.hello, "open": self.open, "load": self.load, "turn": self.turn,
                          "close": self.close}
            if operation not in operations:
                raise _BadRequest(f"no operation is called {operation!r}")
            if operation in ("load", "turn") and self.call is None:
                raise _BadRequest("no problem is open")
            return operations[operation](request)
        except Refusal as refusal:
            if operation == "open":
                self.forget()
            return {"event": "refused", "reason": str(refusal)}
        except _BadRequest as error:
            return {"event": "failed", "reason": f"{operation}: {error}"}
        except Exception as error:
            traceback.print_exc()
            if operation == "open":
                self.forget()
            words = str(error).strip().split("\n")[0]
            return {"event": "failed", "reason": f"{operation}: {type(error).__name__}: {words}"}


def serve(kernel, module, make_call):
    """Answers requests until stdin ends.

    kernel: the description in hello; what it leaves out is: scaled_dot_product on threads of its own, and no more.
    module: the Python module that does the work; not imported here. make_call(problem, threads): an open problem, or
    Refusal. It may have, beside source and bind: orders, {"q": "BSHD", ...} where the library wants other than BHSD;
    workspace_bytes; poison(), for outputs that are its own; fetch(copy), which brings such into copy.out; close().
    """
    server = _Server(kernel, module, make_call)
    for line in _requests:
        answer = server.answer(line)
        _answers.write(json.dumps(answer) + "\n")
        _answers.flush()
