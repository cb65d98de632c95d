"""Shared by the tests of `zc run`: starting it, watching its processes, and cleaning up. Every wait has a deadline."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

DEADLINE_S = 20
PROGRAM = None  # path of zc
SIGNALS = [
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGTSTP,
    signal.SIGCHLD,
    signal.SIGPIPE,
    signal.SIGXFSZ,
]


def wait_until(condition, what):
    """The first true value of condition()."""
    end = time.monotonic() + DEADLINE_S
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"after {DEADLINE_S} s still waiting until {what}")
        time.sleep(0.005)


def stat_of(pid):
    """The words of /proc/PID/stat behind the name, state and parent first; None if there is no such process."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def state_of(pid):
    """R, S, T, Z ..., or None if there is no such process."""
    stat = stat_of(pid)
    return stat and stat[0]


def python(code):
    """The words of a program that runs this Python code."""
    return [sys.executable, "-S", "-c", code]


def shell(code):
    return ["sh", "-c", code]


class Outcome:
    def __init__(self, status, out, err):
        self.status = status
        self.out = out.decode(errors="surrogateescape")
        self.err = err.decode(errors="surrogateescape")


class RunTest(unittest.TestCase):
    """A test whose processes carry a mark in their environment, so that what is left of them is found and ended."""

    maxDiff = None

    def setUp(self):
        self.mark = "ZC_TEST_MARK=" + uuid.uuid4().hex
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.addCleanup(self.end_all)

    def file(self, name, text="", mode=0o644):
        path = pathlib.Path(self.folder.name) / name
        path.write_text(text, encoding="utf-8")
        path.chmod(mode)
        return path

    def start(self, *words, ignored=(), new_session=False, environment=None, **options):
        """Starts `zc run WORDS` in a process group of its own, with default signals but for the ignored ones."""

        def prepare():
            for number in SIGNALS:
                signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, [])
            if not new_session:
                os.setpgid(0, 0)

        name, value = self.mark.split("=")
        variables = {**os.environ, **(environment or {}), name: value}
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        # preexec_fn is safe here: the tests have one thread.
        process = subprocess.Popen(
            [PROGRAM, "run", *map(str, words)],
            env=variables,
            restore_signals=False,
            start_new_session=new_session,
            preexec_fn=prepare,
            **options,
        )
        self.addCleanup(self.close, process)
        return process

    @staticmethod
    def close(process):
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream:
                stream.close()

    def finish(self, process, data=None):
        try:
            out, err = process.communicate(data, timeout=DEADLINE_S)
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f"zc run is not done after {DEADLINE_S} s: {error.stdout} {error.stderr}") from None
        return Outcome(process.returncode, out or b"", err or b"")

    def run_zc(self, *words, data=None, **options):
        if data is not None:
            options["stdin"] = subprocess.PIPE
        return self.finish(self.start(*words, **options), data)

    def read_lines(self, process, count):
        """The next lines of stdout."""
        os.set_blocking(process.stdout.fileno(), False)
        text = b""

        def read():
            nonlocal text
            text += process.stdout.read() or b""
            return text.count(b"\n") >= count

        wait_until(read, f"{count} lines are printed")
        os.set_blocking(process.stdout.fileno(), True)
        self.assertEqual(text.count(b"\n"), count, text)
        return text.decode().splitlines()

    def marked(self):
        """Ids of the living processes of this test."""
        pids = []
        for folder in pathlib.Path("/proc").iterdir():
            if not folder.name.isdigit():
                continue
            try:
                if self.mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                    pids.append(int(folder.name))
            except (FileNotFoundError, PermissionError, ProcessLookupError):
                pass
        return [pid for pid in pids if pid != os.getpid() and state_of(pid) not in (None, "Z")]

    @staticmethod
    def ranks_of(process):
        """Ids of the children of zc run, zombies included."""
        pids = (int(folder.name) for folder in pathlib.Path("/proc").iterdir() if folder.name.isdigit())
        return [pid for pid in pids if (stat_of(pid) or [0, 0])[1] == str(process.pid)]

    def assert_nobody_is_left(self):
        # Twice, because a process shows no environment while it begins to run a program.
        wait_until(lambda: not self.marked() and not self.marked(), "no process is left")

    def end_all(self):
        for pid in self.marked():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def main():
    global PROGRAM
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
