"""How `zc run` starts ranks: their environment, streams, descriptors and signals, and what it says if it cannot."""

import os
import pathlib
import pty
import re
import resource
import shutil
import socket
import subprocess

import run_harness
from run_harness import python, shell, wait_until

OURS = ["ZC_RANK", "ZC_RANKS", "ZC_LOCAL_RANK", "ZC_LOCAL_RANKS", "ZC_JOB"]


class Start(run_harness.RunTest):
    def environment_of_ranks(self, *words, **options):
        """By rank, the variables as (name, value) pairs, duplicates included."""
        outcome = self.run_zc(
            *words, "--prefix", "always", "--", *shell(r"tr '\n\0' ' \n' </proc/self/environ"), **options
        )
        self.assertEqual(outcome.status, 0, outcome.err)
        ranks = {}
        for line in outcome.out.splitlines():
            rank, name, value = re.fullmatch(r"\[(\d+)\] ([^=]*)=(.*)", line).groups()
            ranks.setdefault(int(rank), []).append((name, value))
        return ranks

    def test_every_rank_gets_its_variables(self):
        ranks = self.environment_of_ranks("-n", 3)
        self.assertEqual(sorted(ranks), [0, 1, 2])
        jobs = set()
        for rank, pairs in ranks.items():
            ours = dict(pair for pair in pairs if pair[0] in OURS)
            jobs.add(ours.pop("ZC_JOB"))
            self.assertEqual(
                ours,
                {"ZC_RANK": str(rank), "ZC_RANKS": "3", "ZC_LOCAL_RANK": str(rank), "ZC_LOCAL_RANKS": "3"},
            )
        self.assertEqual(len(jobs), 1)
        self.assertRegex(jobs.pop(), r"^zc-[0-9a-f]{32}$")

    def test_every_job_has_a_name_of_its_own(self):
        jobs = {dict(self.environment_of_ranks("-n", 1)[0])["ZC_JOB"] for _ in range(5)}
        self.assertEqual(len(jobs), 5)

    def test_variables_around_stay_but_ours_win(self):
        others = {"RANK": "7", "WORLD_SIZE": "9", "OMPI_COMM_WORLD_RANK": "5", "PMI_RANK": "4", "ZC_DEADLINE_MS": "50"}
        outer = {name: "outer" for name in OURS}
        ranks = self.environment_of_ranks("-n", 2, environment={**others, **outer})
        for rank, pairs in ranks.items():
            self.assertEqual({name: value for name, value in pairs if name in others}, others)
            ours = [pair for pair in pairs if pair[0] in OURS]
            self.assertEqual(sorted(name for name, _ in ours), sorted(OURS))
            self.assertEqual(dict(ours)["ZC_RANK"], str(rank))
            self.assertNotIn("outer", dict(ours).values())

    def rendezvous_of_ranks(self, asked):
        ranks = self.environment_of_ranks("-n", 2, environment={"ZC_RENDEZVOUS": asked})
        values = {tuple(value for name, value in pairs if name == "ZC_RENDEZVOUS") for pairs in ranks.values()}
        self.assertEqual(len(values), 1)
        (value,) = values.pop()
        return value

    def test_a_free_port_is_found_where_none_is_given(self):
        rows = [("tcp", "127.0.0.1"), ("tcp://:0", "127.0.0.1"), ("tcp://127.0.0.2:0", "127.0.0.2")]
        try:
            socket.gethostbyname("localhost")
            rows.append(("tcp://localhost:0", "localhost"))
        except OSError:
            pass  # a system without names
        for asked, address in rows:
            value = self.rendezvous_of_ranks(asked)
            self.assertRegex(value, rf"^tcp://{re.escape(address)}:[1-9]\d*$")
        for asked in ("auto", "local", "tcp://127.0.0.1:29400", "tcp://::1:0", "tcpp"):
            self.assertEqual(self.rendezvous_of_ranks(asked), asked)

    def test_the_port_that_was_found_is_kept_for_the_ranks(self):
        # Rank 0 listens, twice; somebody who did not ask for it gets neither that port nor the leave to use it.
        code = """if True:
            import errno, os, socket
            port = int(os.environ["ZC_RENDEZVOUS"].rpartition(":")[2])
            for reuse in (0, 1, 1):
                with socket.socket() as one:
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, reuse)
                    try:
                        one.bind(("127.0.0.1", port))
                        one.listen()
                        print("listens")
                    except OSError as error:
                        print(errno.errorcode[error.errno])
        """
        outcome = self.run_zc("-n", 1, "--", *python(code), environment={"ZC_RENDEZVOUS": "tcp"})
        self.assertEqual((outcome.status, outcome.out.split()), (0, ["EADDRINUSE", "listens", "listens"]), outcome.err)

    def test_an_address_of_no_host_has_no_port(self):
        outcome = self.run_zc("-n", 1, "--", "true", environment={"ZC_RENDEZVOUS": "tcp://192.0.2.1:0"})
        self.assertEqual((outcome.status, outcome.out), (1, ""))
        self.assertIn("ZC_RENDEZVOUS=tcp://192.0.2.1:0: no port of 192.0.2.1 can be had: Cannot assign", outcome.err)

    def test_64_ranks_are_processes_in_groups_of_their_own(self):
        code = "import os; print(os.environ['ZC_RANK'], os.getpid(), os.getpgid(0), os.getppid())"
        process = self.start("-n", 64, "--prefix", "always", "--", *python(code))
        outcome = self.finish(process)
        self.assertEqual((outcome.status, outcome.err), (0, ""))
        rows = [list(map(int, line.split()[1:])) for line in outcome.out.splitlines()]
        self.assertEqual(sorted(row[0] for row in rows), list(range(64)))
        self.assertEqual(len({row[1] for row in rows}), 64)
        for _, pid, group, parent in rows:
            self.assertEqual((group, parent), (pid, process.pid))

    def test_many_ranks_need_no_higher_limit_of_files(self):
        low = (128, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        here = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, low)
        try:
            process = self.start("-n", 150, "--prefix", "always", "--", *shell("ulimit -n"))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, here)
        outcome = self.finish(process)
        self.assertEqual((outcome.status, outcome.err), (0, ""))
        self.assertEqual(sorted(outcome.out.splitlines()), sorted(f"[{rank}] 128" for rank in range(150)))

    def test_ranks_inherit_no_descriptors(self):
        # What listing the folder needs is gone when it is looked at.
        code = """if True:
            import os
            print([fd for fd in sorted(map(int, os.listdir("/proc/self/fd"))) if os.path.exists(f"/proc/self/fd/{fd}")])
        """
        for prefix in ("always", "never"):
            outcome = self.run_zc("-n", 3, "--prefix", prefix, "--", *python(code))
            self.assertEqual(outcome.out.count("[0, 1, 2]"), 3, outcome.out)

    def test_signals_of_ranks_are_as_zc_run_found_them(self):
        show = shell("grep -E '^Sig(Blk|Ign)' /proc/self/status")
        outcome = self.run_zc("-n", 1, "--", *show)
        self.assertEqual(outcome.out.split(), ["SigBlk:", "0" * 16, "SigIgn:", "0" * 16])

    def test_standard_input_goes_to_rank_0_alone(self):
        program = shell("[ $ZC_RANK = 0 ] || readlink /proc/self/fd/0; cat")
        outcome = self.run_zc("-n", 3, "--prefix", "always", "--", *program, data=b"one\ntwo\n")
        self.assertEqual(
            sorted(outcome.out.splitlines()), ["[0] one", "[0] two", "[1] /dev/null", "[2] /dev/null"], outcome.err
        )

    def test_a_terminal_as_standard_input_goes_to_nobody(self):
        master, slave = pty.openpty()
        try:
            outcome = self.run_zc("-n", 2, "--", *shell("readlink /proc/self/fd/0"), stdin=slave)
        finally:
            os.close(master)
            os.close(slave)
        self.assertEqual(outcome.out, "/dev/null\n/dev/null\n")

    def test_missing_standard_streams_are_replaced(self):
        where = self.file("where")
        code = f"""if True:
            import os
            streams = " ".join(os.readlink("/proc/self/fd/" + fd) for fd in "012")
            open({str(where)!r}, "a").write(streams + "\\n")
        """
        words = [run_harness.PROGRAM, "run", "-n", "2", "--"] + python(code)
        closed = subprocess.run(
            ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *words], timeout=run_harness.DEADLINE_S, check=False
        )
        self.assertEqual(closed.returncode, 0)
        self.assertEqual(where.read_text(encoding="utf-8"), "/dev/null /dev/null /dev/null\n" * 2)


class NotStarted(run_harness.RunTest):
    def expect_refused(self, program, status, text):
        outcome = self.run_zc("-n", 4, "--", program, "argument")
        self.assertEqual((outcome.status, outcome.out), (status, ""))
        self.assertEqual(outcome.err, f"zc run: {program}: {text}\n")
        self.assert_nobody_is_left()

    def test_a_program_that_is_not_there_ends_with_127(self):
        self.expect_refused("no-such-program", 127, "there is no such program in PATH")
        self.expect_refused("./no-such-program", 127, "cannot be executed: No such file or directory")
        self.expect_refused(f"{self.file('plain')}/below", 127, "cannot be executed: Not a directory")

    def test_a_program_that_cannot_be_executed_ends_with_126(self):
        self.expect_refused(str(self.file("plain")), 126, "cannot be executed: Permission denied")
        self.expect_refused(self.folder.name, 126, "cannot be executed: Permission denied")

    def test_a_script_without_its_interpreter_says_so(self):
        script = self.file("script", "#!/no/such/interpreter\n", 0o755)
        self.expect_refused(str(script), 127, "its interpreter is not there: No such file or directory")

    def test_ranks_that_have_begun_end_if_another_cannot_be_started(self):
        # Whoever comes first takes the program away from the others, unless all of them have come by then.
        def attempt():
            program = pathlib.Path(self.folder.name) / "once"
            shutil.copy("/bin/sh", program)
            outcome = self.run_zc("-n", 40, "--timeout", 1, "--", program, "-c", f"rm -f {program}; exec sleep 1000")
            self.assert_nobody_is_left()
            return outcome if outcome.status != 124 else None

        outcome = wait_until(attempt, "the program is gone for some ranks")
        self.assertEqual(outcome.status, 127, outcome.err)
        self.assertRegex(outcome.err, r"^zc run: [^\n]*/once: cannot be executed: No such file or directory\n$")


class CommandLine(run_harness.RunTest):
    def test_the_program_begins_after_the_mark_or_at_the_first_word(self):
        for words in (
            ["-n", 1, "--", "echo", "-n2", "--", "--help"],
            ["-n", 1, "echo", "-n2", "--", "--help"],
            ["-n1", "--prefix=never", "--timeout", 9, "echo", "-n2", "--", "--help"],
            ["--ranks=1", "--prefix", "never", "--timeout=9", "--", "echo", "-n2", "--", "--help"],
        ):
            outcome = self.run_zc(*words)
            # echo takes "-n2" for text
            self.assertEqual((outcome.status, outcome.out, outcome.err), (0, "-n2 -- --help\n", ""), words)

    def test_a_program_may_be_called_like_a_command(self):
        self.file("layout", '#!/bin/sh\necho "mine $*"\n', 0o755)
        path = {"PATH": self.folder.name + ":" + os.environ["PATH"]}
        for mark in (["--"], []):
            outcome = self.run_zc("-n", 1, *mark, "layout", "-n", 3, environment=path)
            self.assertEqual((outcome.status, outcome.out), (0, "mine -n 3\n"), outcome.err)

    def test_arguments_arrive_unchanged(self):
        code = "import sys; print(sys.argv[1:])"
        words = ["", " ", "a b", "*", "$HOME", "--", "\\"]
        outcome = self.run_zc("-n", 1, "--", *python(code), *words)
        self.assertEqual(outcome.out, f"{words}\n")

    def test_wrong_command_lines_end_with_2_and_one_line(self):
        for words, text in (
            ([], "--ranks"),
            (["--", "true"], "--ranks"),
            (["-n", 2], "needs a program"),
            (["-n", 2, "--"], "needs a program"),
            (["-n", 0, "true"], "1 to 1024"),
            (["-n", -1, "true"], "1 to 1024"),
            (["-n", 1025, "true"], "1 to 1024"),
            (["-n", "two", "true"], "--ranks"),
            (["-n", 99999999999, "true"], "--ranks"),
            (["-n", 2, "--timeout", 0, "true"], "--timeout 0"),
            (["-n", 2, "--timeout", -1, "true"], "--timeout -1"),
            (["-n", 2, "--timeout", "nan", "true"], "--timeout nan"),
            (["-n", 2, "--timeout", "inf", "true"], "1e9"),
            (["-n", 2, "--timeout", "soon", "true"], "--timeout"),
            (["-n", 2, "--prefix", "often", "true"], "--prefix often"),
            (["-n", 2, "--frob", "true"], "--frob"),
            (["-n", 2, "-n", 3, "true"], "--ranks"),
        ):
            outcome = self.run_zc(*words)
            self.assertEqual((outcome.status, outcome.out), (2, ""), words)
            self.assertRegex(outcome.err, r"^zc: [^\n]*\n$")
            self.assertIn(text, outcome.err)

    def test_help_tells_how_to_write_it(self):
        outcome = self.run_zc("--help")
        self.assertEqual(outcome.status, 0)
        self.assertIn("zc run -n RANKS [OPTIONS] -- PROGRAM ARGS...", outcome.out)


if __name__ == "__main__":
    run_harness.main()
