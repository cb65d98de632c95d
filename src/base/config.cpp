#include "base/config.hpp"

#include "base/check.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace zerocomm {
namespace {

constexpr Variable kVariables[] = {
    {"ZC_ALGO", "collective=form, with commas between",
     "how native collectives move data, in place of the table of zc info: staged, pull, spread or auto, and behind it "
     "/cached or /streaming for the stores. Same on all ranks. Not of control traffic"},
    {"ZC_COPY", "auto, staging or read",
     "how a process reads memory of another that it cannot map: through a copy, or process_vm_readv"},
    {"ZC_DEADLINE_MS", "milliseconds", "longest wait of any call, where the program sets none"},
    {"ZC_INIT_DEADLINE_MS", "milliseconds",
     "longest wait for all ranks when a communicator of processes is made; default 60000"},
    {"ZC_JOB", "text", "names the job among those of this user on this host; set by zc run"},
    {"ZC_KERNELS", "auto, baseline, avx2 or avx512",
     "instruction set of the kernels that reduce and copy; results are the same"},
    {"ZC_KEY_FILE", "path",
     "file of this user, mode 0600, with 32 random bytes or more that all hosts of the job have"},
    {"ZC_LOCAL_RANK", "number", "rank of this process among those of its host; set by zc run"},
    {"ZC_LOCAL_RANKS", "number", "ranks on this host; set by zc run"},
    {"ZC_POISON", "0 or 1", "1: engines fill released memory with NaN, where the program does not say"},
    {"ZC_RANK", "number", "rank of this process; set by zc run"},
    {"ZC_RANKS", "number", "ranks of the job; set by zc run"},
    {"ZC_RENDEZVOUS", "auto, local, tcp, tcp://ADDRESS:PORT or tcp://:PORT",
     "how ranks find each other; auto: a local socket, TCP where the launcher says several hosts"},
    {"ZC_SHM_BYTES", "bytes",
     "address space for the memory that ranks of one host share; default by the memory of the host"},
    {"ZC_SPIN_NS", "nanoseconds", "time to spin before sleeping, where the program sets none; 0: never"},
};

}  // namespace

std::span<const Variable> variables() { return kVariables; }

std::optional<std::string> text_variable(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return std::nullopt;
  return text;
}

std::optional<std::int64_t> integer_variable(const char* name, std::int64_t least, std::int64_t most) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return std::nullopt;
  char* end = nullptr;
  errno = 0;
  const long long value = std::strtoll(text, &end, 10);
  ZC_REQUIRE(errno == 0 && *end == '\0' && value >= least && value <= most, ZC_ARGUMENT,
             "the variable %s is \"%.40s\"; it takes a whole number from %lld to %lld", name, text,
             static_cast<long long>(least), static_cast<long long>(most));
  return value;
}

}  // namespace zerocomm
