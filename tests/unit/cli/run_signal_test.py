"""Which signals `zc run` passes on, and what stopping it and continuing it does."""

import os
import signal
import time

import run_harness
from run_harness import python, shell, state_of, wait_until

PASSED_ON = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2]

# Prints "up PID", then the name of every signal that comes; SIGUSR2 ends it well.
LISTENER = """if True:
    import os, signal
    def say(word): os.write(1, f"{word}\\n".encode())
    def hear(number, _):
        say(signal.Signals(number).name)
        if number == signal.SIGUSR2: os._exit(0)
    for number in (1, 2, 3, 10, 12, 15): signal.signal(number, hear)
    say(f"up {os.getpid()}")
    while True: signal.pause()
"""


class PassedOn(run_harness.RunTest):
    def listeners(self, *words, count=2, **options):
        """zc run with listeners, and their process ids."""
        process = self.start("-n", count, *words, "--", *python(LISTENER), **options)
        return process, [int(line.split()[1]) for line in self.read_lines(process, count)]

    def test_every_rank_gets_every_signal(self):
        process, _ = self.listeners()
        for number in (n for n in PASSED_ON if n not in (signal.SIGTERM, signal.SIGUSR2)):
            process.send_signal(number)
            self.assertEqual(self.read_lines(process, 2), [number.name] * 2)
        process.send_signal(signal.SIGUSR2)
        outcome = self.finish(process)
        self.assertEqual((outcome.status, outcome.out, outcome.err), (0, "SIGUSR2\n" * 2, ""))

    def test_SIGTERM_reaches_every_rank(self):
        process, _ = self.listeners()
        process.terminate()
        self.assertEqual(self.read_lines(process, 2), ["SIGTERM"] * 2)
        process.send_signal(signal.SIGUSR2)
        self.assertEqual(self.finish(process).status, 0)

    def test_what_the_ranks_started_gets_it_too(self):
        parent = shell('trap "" USR1; trap "exit 0" USR2; "$@" & wait')
        process = self.start("-n", 1, "--", *parent, "sh", *python(LISTENER))
        self.read_lines(process, 1)
        process.send_signal(signal.SIGUSR1)
        self.assertEqual(self.read_lines(process, 1), ["SIGUSR1"])
        process.send_signal(signal.SIGUSR2)
        self.assertEqual(self.finish(process).status, 0)

    def test_ranks_that_die_of_it_make_the_status(self):
        for number in PASSED_ON:
            process = self.start("-n", 3, "--", *shell("ulimit -c 0; echo up; exec sleep 1000"))
            self.read_lines(process, 3)
            process.send_signal(number)
            outcome = self.finish(process)
            self.assertEqual(outcome.status, 128 + number)
            self.assertRegex(outcome.err, rf"^zc run: rank \d \(pid \d+\) was killed by signal {int(number)} ")
            self.assertIn(f"zc run: the others: 2 were killed by signal {int(number)} ", outcome.err)

    def test_a_second_request_to_end_kills(self):
        for second in (signal.SIGINT, signal.SIGTERM):
            process, _ = self.listeners()
            process.send_signal(signal.SIGINT)
            self.assertEqual(self.read_lines(process, 2), ["SIGINT"] * 2)
            time.sleep(0.15)
            process.send_signal(second)
            outcome = self.finish(process)
            self.assertEqual(outcome.status, 128 + second)
            self.assertEqual(outcome.err.count("\n"), 2, outcome.err)
            self.assertIn("after an earlier request to end: all ranks are killed", outcome.err)
            self.assertIn("zc run: the ranks: 2 were killed by signal 9 (Killed)", outcome.err)
            self.assert_nobody_is_left()

    def test_one_request_that_arrives_twice_is_one(self):
        # As timeout(1) does: to its child, and at once to its whole group. A busy machine may take too long for it.
        def attempt():
            process, _ = self.listeners()
            process.terminate()
            time.sleep(0.01)
            os.killpg(process.pid, signal.SIGTERM)
            time.sleep(0.1)
            process.send_signal(signal.SIGUSR2)
            outcome = self.finish(process)
            return (outcome.status, outcome.err, outcome.out.count("SIGTERM")) == (0, "", 4)

        wait_until(attempt, "both signals are passed on")

    def test_a_signal_that_is_ignored_at_the_start_stays_ignored(self):
        process, pids = self.listeners(ignored=[signal.SIGHUP, signal.SIGQUIT])
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGQUIT)
        process.send_signal(signal.SIGUSR1)
        self.assertEqual(self.read_lines(process, 2), ["SIGUSR1"] * 2)
        for pid in pids:  # but a rank may decide otherwise
            os.kill(pid, signal.SIGHUP)
        self.assertEqual(self.read_lines(process, 2), ["SIGHUP"] * 2)
        process.send_signal(signal.SIGUSR2)
        self.assertEqual(self.finish(process).status, 0)

    def test_a_signal_while_ranks_start_is_not_lost(self):
        for delay in range(10):
            process = self.start("-n", 20, "--", "sleep", 1000)
            time.sleep(delay / 500)
            process.send_signal(signal.SIGTERM)
            outcome = self.finish(process)
            # Before zc run listens, the signal ends zc run itself.
            self.assertIn(outcome.status, (143, -15), outcome.err)
            self.assert_nobody_is_left()


class Stopped(run_harness.RunTest):
    def test_stopping_zc_run_stops_the_ranks_and_continuing_continues_them(self):
        process = self.start("-n", 2, "--timeout", 4, "--", *python(LISTENER))
        pids = [int(line.split()[1]) for line in self.read_lines(process, 2)]
        process.send_signal(signal.SIGTSTP)
        wait_until(lambda: [state_of(pid) for pid in (*pids, process.pid)] == ["T"] * 3, "all are stopped")
        time.sleep(4.1)  # longer than --timeout: the time does not count
        process.send_signal(signal.SIGCONT)
        wait_until(lambda: "T" not in [state_of(pid) for pid in (*pids, process.pid)], "all go on")
        process.send_signal(signal.SIGUSR2)
        outcome = self.finish(process)
        self.assertEqual((outcome.status, outcome.out, outcome.err), (0, "SIGUSR2\n" * 2, ""))

    def test_where_nobody_could_continue_it_nothing_stays_stopped(self):
        # A process group without a parent in its session ignores SIGTSTP.
        process = self.start("-n", 2, "--", *python(LISTENER), new_session=True)
        pids = [int(line.split()[1]) for line in self.read_lines(process, 2)]
        process.send_signal(signal.SIGTSTP)
        time.sleep(0.1)
        process.send_signal(signal.SIGUSR1)
        self.assertEqual(self.read_lines(process, 2), ["SIGUSR1"] * 2)
        wait_until(lambda: "T" not in [state_of(pid) for pid in (*pids, process.pid)], "nobody is stopped")
        process.send_signal(signal.SIGUSR2)
        self.assertEqual(self.finish(process).status, 0)

    def test_SIGCONT_continues_a_stopped_rank(self):
        process = self.start("-n", 2, "--", *python(LISTENER))
        pids = [int(line.split()[1]) for line in self.read_lines(process, 2)]
        os.kill(pids[1], signal.SIGSTOP)
        wait_until(lambda: state_of(pids[1]) == "T", "the rank is stopped")
        process.send_signal(signal.SIGCONT)
        wait_until(lambda: state_of(pids[1]) != "T", "the rank goes on")
        process.send_signal(signal.SIGUSR2)
        self.assertEqual(self.finish(process).status, 0)


if __name__ == "__main__":
    run_harness.main()
