"""Where the output of ranks goes: straight through, or line by line with the rank in front."""

import os
import pty
import re
import signal
import subprocess
import threading
import time
import tty

import run_harness
from run_harness import python, shell, state_of, wait_until

PIECE = 8192  # longest piece of a line that is held back


class Terminal:
    """A pseudo terminal that changes nothing; collects what is written to it."""

    def __init__(self):
        self.master, self.slave = pty.openpty()
        tty.setraw(self.slave)
        self.bytes = b""
        self.reader = threading.Thread(target=self.read, daemon=True)

    def read(self):
        try:
            while chunk := os.read(self.master, 65536):
                self.bytes += chunk
        except OSError:  # nobody has it open any more
            pass

    def text(self):
        """Everything, once all processes that had the terminal have ended."""
        os.close(self.slave)
        self.reader.join(run_harness.DEADLINE_S)
        os.close(self.master)
        return self.bytes.decode()


class Prefix(run_harness.RunTest):
    def on_terminal(self, *words, out=True, err=True):
        """The outcome, and what the terminal got, of zc run with the given streams on a terminal."""
        terminal = Terminal()
        process = self.start(
            *words,
            stdout=terminal.slave if out else subprocess.PIPE,
            stderr=terminal.slave if err else subprocess.PIPE,
        )
        terminal.reader.start()
        outcome = self.finish(process)
        return outcome, terminal.text()

    def test_on_a_terminal_lines_carry_the_rank(self):
        program = shell("echo out; echo err >&2; exit 0")
        outcome, text = self.on_terminal("-n", 2, "--", *program)
        self.assertEqual(outcome.status, 0)
        self.assertEqual(sorted(text.splitlines()), ["[0] err", "[0] out", "[1] err", "[1] out"])

    def test_each_stream_decides_for_itself(self):
        program = shell("echo out; echo err >&2")
        outcome, text = self.on_terminal("-n", 2, "--", *program, err=False)
        self.assertEqual((sorted(text.splitlines()), outcome.err), (["[0] out", "[1] out"], "err\nerr\n"))
        outcome, text = self.on_terminal("-n", 2, "--", *program, out=False)
        self.assertEqual((sorted(text.splitlines()), outcome.out), (["[0] err", "[1] err"], "out\nout\n"))

    def test_never_gives_the_terminal_itself(self):
        outcome, text = self.on_terminal("-n", 2, "--prefix", "never", "--", *shell("[ -t 1 ] && [ -t 2 ] && echo yes"))
        self.assertEqual((outcome.status, text), (0, "yes\nyes\n"))

    def test_elsewhere_ranks_have_the_streams_of_zc_run(self):
        read_end, write_end = os.pipe()
        show = python("import os; os.write(1, (os.readlink('/proc/self/fd/1') + '\\n').encode())")
        process = self.start("-n", 2, "--", *show, stdout=write_end)
        own = os.readlink(f"/proc/self/fd/{write_end}")
        os.close(write_end)
        self.assertEqual(self.finish(process).status, 0)
        with os.fdopen(read_end) as pipe:
            self.assertEqual(pipe.read(), f"{own}\n{own}\n")

    def test_always_prefixes_pipes_too(self):
        outcome = self.run_zc("-n", 2, "--prefix", "always", "--", *shell("echo out; echo err >&2"))
        self.assertEqual(sorted(outcome.out.splitlines()), ["[0] out", "[1] out"])
        self.assertEqual(sorted(outcome.err.splitlines()), ["[0] err", "[1] err"])

    def test_the_verdict_comes_after_what_the_ranks_said(self):
        code = """if True:
            import os
            os.write(1, b"up\\n")
            os.read(0, 1)
            os.write(2, b"last words\\n" * 5000 + b"no newline")
            os._exit(3)
        """
        process = self.start("-n", 1, "--prefix", "always", "--", *python(code), stdin=subprocess.PIPE)
        self.assertEqual(self.read_lines(process, 1), ["[0] up"])
        (rank,) = self.ranks_of(process)
        # When zc run looks, the rank has ended, and more than is read at once is in the pipe.
        process.send_signal(signal.SIGSTOP)
        process.stdin.write(b"!")
        process.stdin.flush()
        wait_until(lambda: state_of(rank) == "Z", "the rank has ended")
        process.send_signal(signal.SIGCONT)
        lines = self.finish(process).err.splitlines()
        self.assertEqual(lines[:-1], ["[0] last words"] * 5000 + ["[0] no newline"])
        self.assertRegex(lines[-1], r"^zc run: rank 0 \(pid \d+\) exited with status 3$")


class Lines(run_harness.RunTest):
    def test_a_last_line_without_newline_is_printed(self):
        outcome = self.run_zc("-n", 2, "--prefix", "always", "--", *shell("printf 'a\\nb'"))
        self.assertEqual(sorted(outcome.out.splitlines()), ["[0] a", "[0] b", "[1] a", "[1] b"])
        self.assertTrue(outcome.out.endswith("\n"))

    def test_a_line_appears_when_it_is_whole(self):
        process = self.start("-n", 1, "--prefix", "always", "--", *shell("echo first; printf sec; exec sleep 1000"))
        self.assertEqual(self.read_lines(process, 1), ["[0] first"])
        process.terminate()
        self.assertEqual(self.finish(process).out, "[0] sec\n")

    def test_lines_of_many_ranks_and_both_streams_stay_whole(self):
        # Every rank writes its lines in chunks that end anywhere.
        code = """if True:
            import os
            rank = os.environ["ZC_RANK"]
            for stream, name in ((1, "out"), (2, "err")) * 10:
                text = "".join(f"{name} {rank} {i} {rank * (7 * i % 200)}.\\n" for i in range(40)).encode()
                for at in range(0, len(text), 777): os.write(stream, text[at:at + 777])
        """
        process = self.start("-n", 8, "--prefix", "always", "--", *python(code), stderr=subprocess.STDOUT)
        outcome = self.finish(process)
        self.assertEqual(outcome.status, 0)
        seen = {}
        for line in outcome.out.splitlines():
            rank, name, own, index, filling = re.fullmatch(r"\[(\d)\] (out|err) (\d) (\d+) (\d*)\.", line).groups()
            self.assertEqual(own, rank)
            self.assertEqual(filling, rank * (7 * int(index) % 200))
            seen.setdefault((rank, name), []).append(int(index))
        self.assertEqual(len(seen), 16)
        for indices in seen.values():
            self.assertEqual(indices, list(range(40)) * 10)

    def test_long_lines_come_in_marked_pieces(self):
        code = "import os; os.write(1, (os.environ['ZC_RANK'] * 100000 + '\\nshort\\n').encode())"
        outcome = self.run_zc("-n", 2, "--prefix", "always", "--", *python(code))
        for rank in "01":
            lines = [line for line in outcome.out.splitlines() if line.startswith(f"[{rank}]")]
            self.assertEqual(lines[0], f"[{rank}] " + rank * PIECE)
            self.assertEqual(lines[1], f"[{rank}]+ " + rank * PIECE)
            self.assertEqual(lines[-1], f"[{rank}] short")
            self.assertEqual("".join(line.split(" ")[1] for line in lines[:-1]), rank * 100000)

    def test_much_output_arrives_completely(self):
        code = "import sys; sys.stdout.write(''.join(f'{i}\\n' for i in range(200000)))"
        outcome = self.run_zc("-n", 2, "--prefix", "always", "--", *python(code))
        for rank in "01":
            lines = [line[4:] for line in outcome.out.splitlines() if line[1] == rank]
            self.assertEqual(lines, [str(i) for i in range(200000)])


class Readers(run_harness.RunTest):
    def memory_kib(self, process):
        with open(f"/proc/{process.pid}/status", encoding="utf-8") as status:
            return int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1))

    def test_a_reader_that_does_not_read_holds_the_ranks_and_not_zc_run(self):
        code = """if True:
            import os
            os.write(2, b"up\\n")
            for i in range(64): os.write(1, (b"x" * 99 + b"\\n") * 10000)
        """
        process = self.start("-n", 2, "--prefix", "always", "--", *python(code))
        wait_until(lambda: process.stderr.read(10), "a rank is up")
        before = self.memory_kib(process)
        time.sleep(0.5)
        self.assertLess(self.memory_kib(process) - before, 8000, "64 MB wait to be read")
        process.terminate()
        # The ranks are gone, their last words are not yet read: a second signal does without them.
        wait_until(lambda: not self.ranks_of(process), "the ranks have ended")
        self.assertIsNone(process.poll())
        process.terminate()
        self.assertEqual(process.wait(run_harness.DEADLINE_S), 143)
        self.assertIn(b"was killed by signal 15 (Terminated)", process.stderr.read())

    def test_a_slow_reader_gets_everything(self):
        code = "import sys; sys.stdout.write(''.join(f'{i}\\n' for i in range(60000)))"
        process = self.start("-n", 1, "--prefix", "always", "--", *python(code))
        end, text = time.monotonic() + run_harness.DEADLINE_S, b""
        while chunk := os.read(process.stdout.fileno(), 4096):
            text += chunk
            time.sleep(0.001)
            self.assertLess(time.monotonic(), end)
        self.assertEqual(self.finish(process).status, 0)
        self.assertEqual(text.decode(), "".join(f"[0] {i}\n" for i in range(60000)))

    def test_a_terminal_that_is_held_does_not_hold_zc_run(self):
        terminal = Terminal()
        code = "import os\nwhile True: os.write(1, b'x' * 99 + b'\\n')"
        process = self.start("-n", 2, "--", *python(code), stdout=terminal.slave)
        wait_until(lambda: len(self.ranks_of(process)) == 2, "the ranks run")
        time.sleep(0.3)
        process.terminate()
        wait_until(lambda: not self.ranks_of(process), "the ranks have ended")
        terminal.reader.start()
        self.assertEqual(self.finish(process).status, 143)
        text = terminal.text()
        self.assertRegex(text, r"^(\[[01]\] x{99}\n)*(\[[01]\] x+\n){0,2}$")

    def test_ranks_whose_reader_has_gone_get_SIGPIPE(self):
        process = self.start("-n", 2, "--prefix", "always", "--", "yes")
        process.stdout.readline()
        process.stdout.close()
        process.stdout = None
        outcome = self.finish(process)
        self.assertEqual(outcome.status, 128 + signal.SIGPIPE)
        self.assertRegex(outcome.err, r"^zc run: rank \d \(pid \d+\) was killed by signal 13 \(Broken pipe\)\n")

    def test_who_is_left_with_a_pipe_does_not_hold_zc_run(self):
        program = shell("echo done; yes more & exit 0")
        outcome = self.run_zc("-n", 2, "--prefix", "always", "--", *program)
        self.assertEqual((outcome.status, outcome.err), (0, ""))
        self.assertEqual({"[0] done", "[1] done"} - set(outcome.out.splitlines()), set())


if __name__ == "__main__":
    run_harness.main()
