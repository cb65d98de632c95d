"""How threads and processes may share memory: atomics that order their own accesses, and nothing else."""

import re

import sources

FOLDERS = ("include", "src", "cuda", "bench", "examples", "tests/support")

FENCE = re.compile(
    r"\b(atomic_thread_fence|atomic_signal_fence|__atomic_thread_fence|__atomic_signal_fence|__sync_synchronize"
    r"|_mm_[lms]fence|__builtin_ia32_[lms]fence|__builtin_arm_d[ms]b|__d[ms]b)\b"
)
VOLATILE = re.compile(r"\b(volatile|__volatile__|__volatile)\b")
RELAXED = re.compile(r"\b(memory_order_relaxed|memory_order_consume|memory_order::relaxed|memory_order::consume)\b")
# Streaming stores are ordered by nothing else.
MAY_SFENCE = {"src/device/copy.cpp"}
# Counts that order nothing.
MAY_RELAX = {"src/base/fork.cpp", "src/comm/counters.cpp", "src/comm/counters.hpp"}

ASM = re.compile(r"\b(?:asm|__asm__|__asm)\b")
# An assembler statement up to its end, and its first string.
STATEMENT = re.compile(
    r"\w+\s*(?:\b(?:volatile|__volatile__|__volatile|inline|goto)\b\s*)*"
    r'\((?P<rest>\s*"(?P<text>(?:\\.|[^"\\])*)"(?:"(?:\\.|[^"\\])*"|[^";])*)?'
)
# Instructions that say nothing about memory: hints to a core that spins, and the mode of floating point.
HARMLESS = {"pause", "yield", "mrs %0, fpcr", "msr fpcr, %0"}


def line_at(text, offset):
    return text.count("\n", 0, offset) + 1


def check_file(name, text):
    code, rest = sources.bare(text, keep_strings=True), sources.bare(text)  # of one length
    for keyword in ASM.finditer(rest):
        match = STATEMENT.match(code, keyword.start())
        if not match or match["text"] not in HARMLESS or '"memory"' in match["rest"]:
            yield line_at(code, keyword.start()), f"asm {match and match['text']!r}: order the accesses themselves"
        if match:
            rest = rest[: match.start()] + re.sub(r"[^\n]", " ", match[0]) + rest[match.end() :]
    for match in FENCE.finditer(rest):
        if match[1] == "_mm_sfence" and name in MAY_SFENCE:
            continue
        text = f"{match[1]}: order the accesses themselves; ThreadSanitizer cannot see a fence"
        yield line_at(rest, match.start()), text
    for match in VOLATILE.finditer(rest):
        yield line_at(rest, match.start()), f"{match[1]} is not a way to share memory between threads"
    if name not in MAY_RELAX:
        for match in RELAXED.finditer(rest):
            yield line_at(rest, match.start()), f"{match[1]}: acquire and release at least"


def check(root):
    problems = []
    for path in sources.code_files(root, *FOLDERS):
        name = str(path.relative_to(root))
        found = sorted(check_file(name, path.read_text(encoding="utf-8")))
        problems.extend(f"{name}:{number}: {text}" for number, text in found)
    return problems


def source(line, path="src/comm/a.cpp"):
    return {path: "\n" + line + "\n"}


PLANTS = [
    ("fence of C++", source("std::atomic_thread_fence(std::memory_order_seq_cst);"), "src/comm/a.cpp:2: atomic_thread"),
    ("fence for signals", source("std::atomic_signal_fence(std::memory_order_seq_cst);"), "atomic_signal_fence"),
    ("old builtin", source("__sync_synchronize();"), "src/comm/a.cpp:2: __sync_synchronize"),
    ("new builtin", source("__atomic_thread_fence(__ATOMIC_SEQ_CST);"), "src/comm/a.cpp:2: __atomic_thread_fence"),
    ("intrinsic", source("_mm_mfence();"), "_mm_mfence"),
    ("fence of stores", source("_mm_sfence();"), "src/comm/a.cpp:2: _mm_sfence"),
    ("fence of streaming stores", source("_mm_sfence();", "src/device/copy.cpp"), None),
    ("instruction", source('asm volatile("mfence" ::: "memory");'), "src/comm/a.cpp:2: asm 'mfence'"),
    ("instruction on a line of its own", source('__asm__ __volatile__(\n    "lock; addl $0,0(%%rsp)");'), "a.cpp:2: asm 'lock"),
    ("instruction without volatile", source('asm("dmb ish");'), "asm 'dmb ish'"),
    ("nothing but a clobber", source('asm volatile("" ::: "memory");'), "asm ''"),
    ("pause as a fence", source('asm volatile("pause" ::: "memory");'), "asm 'pause'"),
    ("assembler by a macro", source("asm volatile(BARRIER);"), "asm None"),
    ("volatile flag", source("volatile bool stop = false;"), "src/comm/a.cpp:2: volatile"),
    ("volatile access", source("while (*static_cast<volatile int*>(flag) == 0) {"), "volatile"),
    ("volatile beside a pause", source('asm volatile("pause"); volatile int x;'), "volatile is not"),
    ("in a header that is installed", source("volatile int flag;", "include/zerocomm/a.h"), "include/zerocomm/a.h:2: v"),
    ("in what tests share", source("volatile int flag;", "tests/support/a.hpp"), "tests/support/a.hpp:2: volatile"),
    ("in an example", source("__sync_synchronize();", "examples/gpt/a.cpp"), "examples/gpt/a.cpp:2: __sync"),
    ("relaxed flag", source("flag.store(1, std::memory_order_relaxed);"), "src/comm/a.cpp:2: memory_order_relaxed"),
    ("relaxed counter", source("n.fetch_add(1, std::memory_order_relaxed);", "src/comm/counters.hpp"), None),
    ("pause", source('asm volatile("pause");'), None),
    ("yield", source('asm volatile("yield");'), None),
    ("mode of floating point", source('asm volatile("mrs %0, fpcr" : "=r"(saved_));'), None),
    ("in a comment or a string", source('// volatile, mfence\nf("asm volatile(\\"mfence\\") __sync_synchronize");'), None),
    ("orders of accesses", source("flag.store(1); flag.load(std::memory_order_acquire);"), None),
]

if __name__ == "__main__":
    sources.main(check, PLANTS)
