"""
Plays the driver of zc bench against the ranks of one other library: peer_test.py NAME PROGRAM
What the ranks answer, that their data are checked, that they sleep when they are not asked, and that nobody is left.
"""

import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import sys
import time
import unittest

NAME, PROGRAM = sys.argv[1], sys.argv[2]
RANKS = 2
COUNT = 4 * 1003  # divisible by the ranks, its blocks not by 7, which is the period of the data
LARGE = 1 << 20  # 4 MiB of f32: other ways through the libraries
MARK = "ZC_PEER_TEST"
REDUCTIONS = ["all_reduce", "reduce_scatter", "reduce_scatter_by_all_reduce"]
OPS = REDUCTIONS + ["all_gather", "broadcast", "barrier"] + ([] if NAME == "gloo" else ["reduce", "all_to_all"])
VERSIONS = {"openmpi": r"Open MPI v4\.\S+", "mpich": r"MPICH Version: +\d\S+", "gloo": r"Gloo \d\S+, tcp over lo"}


def command(socket_name, ranks):
    program = [PROGRAM, "--socket", socket_name, "--group", NAME]
    if NAME == "openmpi":
        return ["mpirun.openmpi", "--oversubscribe", "--bind-to", "none", "-n", str(ranks), *program]
    if NAME == "mpich":
        return ["mpirun.mpich", "-n", str(ranks), *program]
    return [*program, "--ranks", str(ranks)]


def marked(mark):
    """Processes, zombies apart, whose environment has our mark."""
    found = []
    for folder in pathlib.Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and f"{MARK}={mark}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:
            pass  # gone, or not ours
    return found


def ticks(pid):
    """Ticks of processor time that a process and its threads have used."""
    after_name = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return int(after_name[11]) + int(after_name[12])


class Group:
    """The driver's end: its socket, the launcher, and one stream per rank."""

    def __init__(self, ranks=RANKS):
        self.mark = f"{os.getpid()}.{time.monotonic_ns()}"
        name = f"zc-peer-test-{self.mark}"
        environment = {**os.environ, MARK: self.mark, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind("\0" + name)
        self.listener.listen(ranks)
        self.listener.settimeout(30)
        self.launcher = subprocess.Popen(
            command(name, ranks), env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        self.streams, self.pids, self.hellos = {}, {}, []
        for _ in range(ranks):
            connection, _ = self.listener.accept()
            connection.settimeout(30)
            pid, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            assert uid == os.geteuid()
            stream = connection.makefile("rw", encoding="utf-8", newline="\n")
            self.hellos.append(stream.readline())
            rank = int(self.hellos[-1].split()[2])
            self.streams[rank], self.pids[rank] = (connection, stream), pid

    def ask(self, line):
        """The answer of every rank: a list of numbers for each word, or a text."""
        for _, stream in self.streams.values():
            stream.write(line + "\n")
            stream.flush()
        return [self.answer(stream) for _, (_, stream) in sorted(self.streams.items())]

    @staticmethod
    def answer(stream):
        first = stream.readline().rstrip("\n")
        if first.split(" ", 1)[0] != "times":
            return first
        lines = [first, stream.readline(), stream.readline()]
        words = [line.split() for line in lines]
        assert [line[0] for line in words] == ["times", "arrive", "check"], lines
        times, arrivals = ([int(word) for word in line[1:]] for line in words[:2])
        assert times[0] == len(times) - 1 and arrivals[0] == len(arrivals) - 1, lines
        return {"times": times[1:], "arrive": arrivals[1:], "check": int(words[2][1])}

    def say(self, line):
        for _, stream in self.streams.values():
            stream.write(line + "\n")
            stream.flush()

    def vanish(self):
        self.listener.close()
        for connection, stream in self.streams.values():
            try:
                stream.close()
            except OSError:
                pass
            connection.close()
        self.streams = {}

    def wait(self, seconds):
        """The launcher's status, what it printed, and who is left."""
        output, _ = self.launcher.communicate(timeout=seconds)
        deadline = time.monotonic() + 2
        while marked(self.mark) and time.monotonic() < deadline:
            time.sleep(0.01)
        return self.launcher.returncode, output.decode(), marked(self.mark)

    def clean_up(self):
        self.vanish()
        for pid in marked(self.mark):
            os.kill(pid, signal.SIGKILL)
        if self.launcher.poll() is None:
            self.launcher.kill()
        self.launcher.stdout.close()
        self.launcher.wait()


class Peer(unittest.TestCase):
    def group(self, ranks=RANKS):
        group = Group(ranks)
        self.addCleanup(group.clean_up)
        return group

    def assert_good(self, answers, count, line):
        for answer in answers:
            self.assertIsInstance(answer, dict, f"{line}: {answer}")
            self.assertEqual(answer["check"], 0, line)
            self.assertEqual((len(answer["times"]), len(answer["arrive"])), (count, count), line)
            self.assertTrue(all(time_ns > 0 for time_ns in answer["times"]), line)

    def test_a_job(self):
        group = self.group()
        with self.subTest("hello"):
            for line in group.hellos:
                self.assertRegex(line, rf"^hello {NAME} [01] {RANKS} {VERSIONS[NAME]}\n$")
            self.assertEqual(sorted(group.streams), [0, 1])

        for op in OPS:
            for place in ("out", "in"):
                with self.subTest(f"{op}, {place}"):
                    line = f"run {op} f32 {COUNT} {place} registered fresh 1 3 1"
                    before = time.monotonic_ns()
                    answers = group.ask(line)
                    after = time.monotonic_ns()
                    self.assert_good(answers, 3, line)
                    for answer in answers:
                        stamps = answer["arrive"]
                        self.assertEqual(stamps, sorted(stamps))
                        for stamp, duration in zip(stamps, answer["times"]):
                            self.assertLessEqual(before, stamp)
                            self.assertLessEqual(stamp + duration, after)
                    self.assert_good(group.ask(line.replace("fresh", "loop")), 1, line)
        with self.subTest("types, sizes"):
            for dtype in ("f64", "i32", "i64"):
                for op in ("all_reduce", "all_gather"):
                    line = f"run {op} {dtype} {COUNT} out plain fresh 0 2 1"
                    self.assert_good(group.ask(line), 2, line)
            for op in OPS:
                for count in (RANKS, LARGE):
                    if (NAME, op, count) == ("gloo", "reduce_scatter", LARGE):
                        continue  # refused, because it is wrong now and then
                    line = f"run {op} f32 {count} out plain fresh 0 2 1"
                    self.assert_good(group.ask(line), 2, line)
        with self.subTest("what cannot be had"):
            for asked in ("all_reduce bf16", "all_reduce f16", "all_sing f32"):
                for answer in group.ask(f"run {asked} 4 out plain fresh 0 2 1"):
                    self.assertRegex(answer, "^unsupported .+")
            for tail in ("op=max", "root=1"):
                for answer in group.ask(f"run all_reduce f32 4 out plain fresh 0 2 1 {tail}"):
                    self.assertRegex(answer, "^unsupported .+")
            for asked in ("run all_reduce f32", "dance", "run all_gather f32 3 out plain fresh 0 2 1"):
                for answer in group.ask(asked):
                    self.assertRegex(answer, "^error .+")
        with self.subTest("idle"):
            # Asked just before, so that whatever a library does afterwards is seen; the calmest of three windows counts.
            group.ask(f"run all_reduce f32 {LARGE} out registered fresh 0 2 1")
            used = []
            for _ in range(3):
                before = {pid: ticks(pid) for pid in group.pids.values()}
                time.sleep(2)
                used.append(max(ticks(pid) - before[pid] for pid in before))
                if used[-1] <= 1:
                    break
            print(f"{NAME}: idle for 2 s, at most {used[-1]} ticks of one rank")
            self.assertLessEqual(used[-1], 1, used)
        with self.subTest("quit"):
            start = time.monotonic()
            group.say("quit")
            status, output, left = group.wait(10)
            self.assertEqual((status, left), (0, []), output)
            self.assertLess(time.monotonic() - start, 2)
            self.assertEqual(output, "")

    def test_a_driver_that_vanishes_ends_the_ranks(self):
        group = self.group()
        group.vanish()
        start = time.monotonic()
        _, output, left = group.wait(10)
        self.assertEqual(left, [], output)
        self.assertLess(time.monotonic() - start, 5)

    def test_a_driver_that_vanishes_in_a_run_ends_the_ranks(self):
        group = self.group()
        group.say(f"run all_reduce f32 {COUNT} out registered fresh 0 200 1")
        group.vanish()
        _, output, left = group.wait(10)
        self.assertEqual(left, [], output)

    def test_a_rank_that_dies_takes_the_others_with_it(self):
        group = self.group()
        os.kill(group.pids[1], signal.SIGKILL)
        status, output, left = group.wait(10)
        self.assertNotEqual(status, 0)
        self.assertEqual(left, [], output)

    def test_without_a_driver_there_is_one_line_and_no_rank(self):
        run = subprocess.run(
            [PROGRAM, "--socket", "zc-nobody-is-here", "--group", NAME] + (["--ranks", "1"] if NAME == "gloo" else []),
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
        self.assertEqual(run.returncode, 1)
        self.assertTrue(re.fullmatch(r"peer: no driver at .*: Connection refused\n", run.stderr), run.stderr)

    def test_wrong_options_are_answered_with_the_right_ones(self):
        for arguments in ([], ["--help"], ["--socket", "a"], ["--socket", "a", "--group", "b", "--more", "c", "d"]):
            run = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=10, check=False)
            self.assertEqual(run.returncode, 2)
            self.assertIn("usage: ", run.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
