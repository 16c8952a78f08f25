# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium driven over --remote-debugging-pipe: DevTools messages, each ended by a zero byte, on two pipes.

No port, no library beyond Python's own, nothing is fetched.
"""
import base64
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome")


def find():
    """The browser's path, or None."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Broken(Exception):
    """The browser or the page did not do what was asked."""


class Browser:
    """One browser process with one page. Use as a context manager."""

    def __init__(self, program, limit=120):
        self.limit = limit
        self.next_id = 0
        self.buffer = b""
        self.events = []
        self.profile = tempfile.mkdtemp(prefix="attnbench-browser-")
        to_read, self.to_browser = os.pipe()
        self.from_browser, to_write = os.pipe()

        def place_pipes():  # the browser reads on 3 and writes on 4
            os.dup2(to_read, 100)
            os.dup2(to_write, 101)
            os.dup2(100, 3)
            os.dup2(101, 4)
            os.closerange(5, 110)

        # Root, as in containers, has no user namespace for the sandbox; the pages are our own.
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        self.process = subprocess.Popen(
            [program, "--headless=new", "--remote-debugging-pipe", f"--user-data-dir={self.profile}", "--no-first-run",
             "--disable-gpu", "--disable-dev-shm-usage", "--disable-extensions", "--disable-background-networking",
             "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--force-color-profile=srgb",
             *sandbox, "about:blank"],
            close_fds=False, preexec_fn=place_pipes, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": self.profile, "XDG_CONFIG_HOME": self.profile, "XDG_CACHE_HOME": self.profile})
        os.close(to_read)
        os.close(to_write)
        self.session = None
        try:
            targets = self.call("Target.getTargets")["targetInfos"]
            page = next((target for target in targets if target["type"] == "page"), None)
            target = page["targetId"] if page else self.call("Target.createTarget", url="about:blank")["targetId"]
            self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                self.call(f"{domain}.enable")
            self.media()
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)  # its own session: the helpers of this browser alone
        self.process.wait()
        os.close(self.to_browser)
        os.close(self.from_browser)
        shutil.rmtree(self.profile, ignore_errors=True)

    def receive(self, deadline):
        """The next message of the browser."""
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.from_browser], [], [], max(0, deadline - time.monotonic()))
            data = os.read(self.from_browser, 1 << 20) if ready else b""
            if not data:
                raise Broken("the browser does not answer" if not ready else "the browser has ended")
            self.buffer += data
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **params):
        """Result of a DevTools method."""
        self.next_id += 1
        message = {"id": self.next_id, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to_browser, data):]
        deadline = time.monotonic() + self.limit
        while True:
            answer = self.receive(deadline)
            if answer.get("id") != self.next_id:
                self.events.append(answer)
            elif "error" in answer:
                raise Broken(f"{method}: {answer['error'].get('message')}")
            else:
                return answer["result"]

    def wait_event(self, method):
        """The first event of that name that was not yet waited for."""
        deadline = time.monotonic() + self.limit
        while True:
            for index, event in enumerate(self.events):
                if event.get("method") == method:
                    return self.events.pop(index)
            self.events.append(self.receive(deadline))

    def size(self, width, height, mobile=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)
        self.call("Emulation.setTouchEmulationEnabled", enabled=mobile)

    def media(self, scheme="light", kind=""):
        # What moves smoothly is elsewhere by the time of a click.
        self.call("Emulation.setEmulatedMedia", media=kind, features=[
            {"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"}])

    def scripting(self, enabled):
        self.call("Emulation.setScriptExecutionDisabled", value=not enabled)

    def open(self, path):
        """Opens a file and waits until it is loaded; seconds that took."""
        self.events.clear()
        begin = time.monotonic()
        result = self.call("Page.navigate", url="file://" + os.path.abspath(path))
        if "errorText" in result:
            raise Broken(f"{path}: {result['errorText']}")
        self.wait_event("Page.loadEventFired")
        return time.monotonic() - begin

    def run(self, expression):
        """Value of a JavaScript expression (JSON, promises awaited)."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True,
                           userGesture=True)
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            raise Broken(f"{expression[:200]}: {details.get('exception', {}).get('description', details['text'])}")
        return result["result"].get("value")

    def wait_for(self, expression):
        """Until the expression is true."""
        deadline = time.monotonic() + self.limit
        while not self.run(expression):
            if time.monotonic() > deadline:
                raise Broken(f"never true: {expression}")
            time.sleep(0.05)

    def centre(self, selector):
        """Where the first element of a selector stands, scrolled into view."""
        box = self.run(f"(async function () {{ var e = document.querySelector({json.dumps(selector)});"
                       " if (!e) return null; e.scrollIntoView({block: 'center', behavior: 'instant'});"
                       " await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));"
                       " var b = e.getBoundingClientRect();"
                       " return [b.left + b.width / 2, b.top + b.height / 2, b.width, b.height]; })()")
        if not box:
            raise Broken(f"there is no {selector}")
        return box[0], box[1]

    def hover(self, selector):
        x, y = self.centre(selector)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, selector):
        x, y = self.centre(selector)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def tap(self, selector):
        x, y = self.centre(selector)
        self.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def key(self, key, code=0, text=""):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code,
                      **({"text": text} if text and kind == "keyDown" else {}))

    def write(self, text):
        for letter in text:
            self.key(letter, ord(letter.upper()), letter)

    def complaints(self):
        """Errors and warnings of the console, exceptions, and requests for anything but the page itself."""
        self.run("0")  # events before this answer have come
        found = []
        for event in self.events:
            method, params = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(params["exceptionDetails"].get("text", "exception"))
            elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
                found.append(f"console: {params['args']}")
            elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                found.append(params["entry"]["text"])
            elif method == "Network.requestWillBeSent":
                url = params["request"]["url"]
                if not url.startswith("data:") and params.get("type") != "Document":
                    found.append(f"asked for {url[:200]}")
        return found

    def screenshot(self, path, whole=False):
        clip = {}
        if whole:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            clip = {"clip": {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 16000), "scale": 1},
                    "captureBeyondViewport": True}
        data = self.call("Page.captureScreenshot", format="png", **clip)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def print_pdf(self, path):
        data = self.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
