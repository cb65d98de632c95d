"""How `zc run` ends: its exit status, what it says, how long survivors have, and that nobody is left."""

import os
import pathlib
import re
import signal
import subprocess
import time

import run_harness
from run_harness import python, shell, wait_until

BY_RANK = 'case $ZC_RANK in {0}) {1};; *) {2};; esac'


class End(run_harness.RunTest):
    def expect(self, outcome, status, *lines):
        """`lines` are patterns of stderr; "(pid)" stands for a process id."""
        pattern = "".join(line.replace("(pid)", r"\(pid \d+\)") + "\n" for line in lines)
        self.assertEqual(outcome.status, status, outcome.err)
        self.assertRegex(outcome.err, f"^{pattern}$")
        self.assert_nobody_is_left()

    def test_0_if_all_ranks_exit_with_0(self):
        outcome = self.run_zc("-n", 5, "--", "true")
        self.assertEqual((outcome.status, outcome.out, outcome.err), (0, "", ""))

    def test_the_status_of_the_first_failure_is_passed_on(self):
        for status in (1, 3, 255):
            outcome = self.run_zc("-n", 3, "--", *shell(BY_RANK.format(2, f"exit {status}", "exit 0")))
            self.expect(
                outcome,
                status,
                rf"zc run: rank 2 (pid) exited with status {status}",
                r"zc run: the others: 2 exited with status 0",
            )

    def test_a_signal_becomes_128_and_its_number(self):
        for number, name in ((9, "Killed"), (11, "Segmentation fault"), (6, "Aborted")):
            code = BY_RANK.format(1, f"ulimit -c 0; kill -{number} $$; sleep 100", "exit 0")
            self.expect(
                self.run_zc("-n", 2, "--", *shell(code)),
                128 + number,
                rf"zc run: rank 1 (pid) was killed by signal {number} \({name}\)",
                r"zc run: the others: 1 exited with status 0",
            )

    def test_the_process_id_is_that_of_the_rank(self):
        outcome = self.run_zc("-n", 1, "--", *shell("echo $$; exit 4"))
        self.assertEqual(outcome.err, f"zc run: rank 0 (pid {outcome.out.strip()}) exited with status 4\n")

    def test_survivors_have_2_seconds_then_SIGTERM_then_2_more_then_SIGKILL(self):
        code = """if True:
            import os, signal, time
            def say(word): os.write(1, f"{word} {time.monotonic()}\\n".encode())
            rank = int(os.environ["ZC_RANK"])
            signal.signal(signal.SIGTERM, lambda *_: say(f"term{rank}") or (rank == 0 and os._exit(0)))
            os.write(1, b"ready\\n")
            if rank == 1:
                open(os.environ["GATE"]).read()
                say("fail")
                os._exit(7)
            while True: time.sleep(100)
        """
        gate = pathlib.Path(self.folder.name) / "gate"
        os.mkfifo(gate)
        process = self.start("-n", 3, "--prefix", "always", "--", *python(code), environment={"GATE": str(gate)})
        self.read_lines(process, 3)
        gate.write_text("now", encoding="utf-8")
        outcome = self.finish(process)
        end = time.monotonic()
        times = dict(re.findall(r"(\w+) ([\d.]+)", outcome.out))
        failed = float(times["fail"])
        for rank in (0, 2):
            self.assertGreaterEqual(float(times[f"term{rank}"]) - failed, 2)
            self.assertLess(float(times[f"term{rank}"]) - failed, 3.5)
        self.assertGreaterEqual(end - failed, 4)
        self.expect(
            outcome,
            7,
            r"zc run: rank 1 (pid) exited with status 7",
            r"zc run: the others: 1 exited with status 0, 1 was killed by signal 9 \(Killed\)",
        )

    def test_survivors_that_end_by_themselves_are_not_waited_for(self):
        # The loser of a race with a busy machine may try again.
        def attempt():
            start = time.monotonic()
            outcome = self.run_zc("-n", 3, "--", *shell(BY_RANK.format(0, "kill -9 $$", "sleep 0.3; exit 1")))
            self.expect(
                outcome,
                137,
                r"zc run: rank 0 (pid) was killed by signal 9 \(Killed\)",
                r"zc run: the others: 2 exited with status 1",
            )
            return time.monotonic() - start < 1.9

        wait_until(attempt, "zc run ends within the 2 s")

    def test_a_stopped_survivor_is_ended_too(self):
        code = BY_RANK.format(0, "kill -STOP $$; sleep 100", "sleep 0.1; exit 1")
        self.expect(
            self.run_zc("-n", 2, "--", *shell(code)),
            1,
            r"zc run: rank 1 (pid) exited with status 1",
            r"zc run: the others: 1 was killed by signal 15 \(Terminated\)",
        )

    def test_what_a_failed_rank_started_is_ended_with_it(self):
        self.expect(
            self.run_zc("-n", 1, "--", *shell("sleep 1000 & sleep 1000 & exit 3")),
            3,
            "zc run: rank 0 (pid) exited with status 3",
        )

    def test_what_a_survivor_started_is_ended_with_it(self):
        # The shell ends by SIGTERM, what it started does not even by that.
        survivor = "(trap '' TERM; exec sleep 1000) & wait"
        outcome = self.run_zc("-n", 2, "--", *shell(BY_RANK.format(0, "sleep 0.2; exit 3", survivor)))
        self.expect(
            outcome,
            3,
            "zc run: rank 0 (pid) exited with status 3",
            r"zc run: the others: 1 was killed by signal 15 \(Terminated\)",
        )

    def test_what_a_good_program_left_is_left_alone(self):
        for prefix in ("always", "never"):
            outcome = self.run_zc(
                "-n", 2, "--prefix", prefix, "--", *shell("sleep 1000 >/dev/null 2>&1 & echo $!; exit 0")
            )
            self.assertEqual((outcome.status, outcome.err), (0, ""))
            left = [int(line.split()[-1]) for line in outcome.out.splitlines()]
            wait_until(lambda: sorted(self.marked()) == sorted(left), "they and nobody else are there")
            self.end_all()
            self.assert_nobody_is_left()

    def test_a_rank_that_ends_early_is_no_zombie(self):
        process = self.start("-n", 3, "--", *shell(BY_RANK.format(0, "echo up; exec sleep 1000", "exit 0")))
        self.read_lines(process, 1)
        wait_until(lambda: len(self.ranks_of(process)) == 1, "ended ranks are reaped")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(self.finish(process).status, 143)

    def test_a_verdict_that_nobody_reads_changes_nothing(self):
        process = self.start("-n", 2, "--", *shell("read line; exit 6"), stdin=subprocess.PIPE)
        process.stderr.close()
        process.stderr = None
        self.assertEqual(self.finish(process, b"go\n").status, 6)

    def test_it_works_where_SIGCHLD_is_ignored(self):
        outcome = self.run_zc("-n", 2, "--", *shell("exit 6"), ignored=[signal.SIGCHLD])
        self.assertEqual(outcome.status, 6, outcome.err)

    def test_kill_9_of_zc_run_leaves_nobody(self):
        for prefix in ("always", "never"):
            ranks = shell("trap '' TERM HUP; echo up; exec sleep 1000")
            process = self.start("-n", 8, "--prefix", prefix, "--", *ranks)
            self.read_lines(process, 8)
            self.assertEqual(len(self.ranks_of(process)), 8)
            process.kill()
            self.assertEqual(process.wait(run_harness.DEADLINE_S), -9)
            self.assert_nobody_is_left()

    def test_kill_9_of_zc_run_while_it_starts_leaves_nobody(self):
        for delay in range(20):
            process = self.start("-n", 30, "--", "sleep", 1000)
            time.sleep(delay / 1000)
            process.kill()
            process.wait(run_harness.DEADLINE_S)
            self.assert_nobody_is_left()


class Timeout(run_harness.RunTest):
    def test_a_job_in_time_is_none_of_its_business(self):
        outcome = self.run_zc("-n", 2, "--timeout", 60, "--", *shell("sleep 0.1"))
        self.assertEqual((outcome.status, outcome.err), (0, ""))

    def test_after_it_the_ranks_get_SIGTERM_and_the_status_is_124(self):
        start = time.monotonic()
        outcome = self.run_zc("-n", 2, "--timeout", 0.4, "--", "sleep", 1000)
        self.assertGreaterEqual(time.monotonic() - start, 0.4)
        self.assertEqual(outcome.status, 124)
        self.assertEqual(
            outcome.err,
            "zc run: not done after 0.4 s\nzc run: the ranks: 2 were killed by signal 15 (Terminated)\n",
        )

    def test_whoever_ignores_that_is_killed_2_seconds_later(self):
        start = time.monotonic()
        outcome = self.run_zc("-n", 2, "--timeout", 0.4, "--", *shell("trap '' TERM; while :; do sleep 0.2; done"))
        self.assertGreaterEqual(time.monotonic() - start, 2.4)
        self.assertEqual(outcome.status, 124)
        self.assertEqual(outcome.err.splitlines()[1:], ["zc run: the ranks: 2 were killed by signal 9 (Killed)"])
        self.assert_nobody_is_left()


if __name__ == "__main__":
    run_harness.main()
