#include "cli/bench_peers.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include <algorithm>
#include <array>

namespace zerocomm::cli {
namespace {

constexpr int kPatience = 300;  // looks, 10 ms apart, before a job is ended by signal
constexpr std::size_t kLastWords = 2048;

// Both MPIs take a scratch buffer for each reduction; without these, large ones are mapped and unmapped every time.
const char* const kKeepMemory[] = {"MALLOC_MMAP_THRESHOLD_=8589934592", "MALLOC_TRIM_THRESHOLD_=17179869184"};

std::string folder_of_zc() {
  std::array<char, 4096> path{};
  const ssize_t got = readlink("/proc/self/exe", path.data(), path.size());
  if (got <= 0) return ".";
  const std::string whole(path.data(), static_cast<std::size_t>(got));
  return whole.substr(0, whole.rfind('/'));
}

std::string find_program(const std::string& group, const std::string& folder) {
  const std::string name = peer_program(group);
  std::vector<std::string> folders{folder};
  if (folder.empty()) folders = {folder_of_zc(), folder_of_zc() + "/../bench/peers"};
  std::string places;
  for (const std::string& place : folders) {
    std::string path = fmt::format("{}/{}", place, name);
    if (access(path.c_str(), X_OK) == 0) return path;
    places.append(places.empty() ? "" : " or ").append(place);
  }
  const PeerCommand command = peer_command(group, "", "", 1, 1, false);
  throw Failure(
      fmt::format("--compare {}: there is no {} in {}; with -DZC_BUILD_BENCH=ON build the target {} (Debian: apt "
                  "install {}), or say "
                  "--peers FOLDER",
                  group, name, places, name, command.package));
}

void sleep_10_ms() {
  const timespec pause{0, 10'000'000};
  nanosleep(&pause, nullptr);
}

}  // namespace

std::string peer_program(const std::string& group) {
  return group == "mpich" ? "zc_peer_mpich" : group == "gloo" ? "zc_peer_gloo" : "zc_peer_openmpi";
}

PeerCommand peer_command(const std::string& group, const std::string& program_path, const std::string& socket,
                         int ranks, int cores, bool pin) {
  PeerCommand command;
  command.program = peer_program(group);
  const std::string count = std::to_string(ranks);
  // With more ranks than cores no MPI binds them round and round.
  const char* const bind = pin && ranks <= cores ? "core" : "none";
  std::vector<std::string>& words = command.words;
  if (group == "gloo") {
    command.package = "libgloo-dev";
    words = {program_path, "--socket", socket, "--group", group, "--ranks", count};
  } else if (group == "mpich") {
    command.package = "mpich libmpich-dev";
    words = {"mpirun.mpich", "-bind-to", bind, "-n", count, program_path, "--socket", socket, "--group", group};
  } else {
    command.package = "openmpi-bin libopenmpi-dev";
    words = {"mpirun.openmpi", "--oversubscribe", "--bind-to", bind};
    // More ranks than cores that spin would wait for the scheduler's time slice in every step.
    const char* const yields = ranks > cores ? "1" : "0";
    words.insert(words.end(), {"--mca", "mpi_yield_when_idle", yields});
    if (group == "openmpi-ucx")
      words.insert(words.end(),
                   {"--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any"});
    words.insert(words.end(), {"-n", count, program_path, "--socket", socket, "--group", group});
    command.environment = {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"};
  }
  command.environment.insert(command.environment.end(), std::begin(kKeepMemory), std::end(kKeepMemory));
  return command;
}

PeerJob::PeerJob(const std::string& group, const std::string& folder, const std::string& socket, int ranks, int cores,
                 bool pin)
    : group_(group), words_(memfd_create("zc bench", MFD_CLOEXEC)) {
  PeerCommand command = peer_command(group, find_program(group, folder), socket, ranks, cores, pin);
  package_ = command.package;
  RunDescriptor null(open("/dev/null", O_RDWR | O_CLOEXEC));
  int ends[2];
  if (!words_ || !null || pipe2(ends, O_CLOEXEC) != 0) refuse("the start of " + group);
  const RunDescriptor read_end(ends[0]);
  RunDescriptor write_end(ends[1]);
  std::vector<char*> arguments, environment;
  for (std::string& word : command.words) arguments.push_back(word.data());
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (std::string_view(*variable).substr(0, 3) != "ZC_") environment.push_back(*variable);
  for (std::string& variable : command.environment) environment.push_back(variable.data());
  arguments.push_back(nullptr);
  environment.push_back(nullptr);
  sigset_t none;
  sigemptyset(&none);
  pid_ = fork();
  if (pid_ < 0) refuse("the start of " + group);
  if (pid_ == 0) {
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && sigprocmask(SIG_SETMASK, &none, nullptr) == 0 &&
        dup2(null.get(), STDIN_FILENO) >= 0 && dup2(null.get(), STDOUT_FILENO) >= 0 &&
        dup2(words_.get(), STDERR_FILENO) >= 0)
      execvpe(arguments[0], arguments.data(), environment.data());
    const int error = errno;
    _exit(write(write_end.get(), &error, sizeof error) == sizeof error ? 127 : 126);
  }
  write_end.close();
  int error = 0;
  ssize_t got = 0;
  do got = read(read_end.get(), &error, sizeof error);
  while (got < 0 && errno == EINTR);
  if (got == 0) return;  // it runs
  waitpid(pid_, nullptr, 0);
  throw Failure(fmt::format("--compare {}: {} cannot be started: {} (Debian: apt install {})", group, command.words[0],
                            std::strerror(error), command.package));
}

PeerJob::PeerJob(PeerJob&& other) noexcept
    : group_(std::move(other.group_)),
      package_(std::move(other.package_)),
      words_(std::move(other.words_)),
      pid_(std::exchange(other.pid_, 0)) {}

// The last line of what it wrote.
std::string PeerJob::last_words() const {
  const off_t end = lseek(words_.get(), 0, SEEK_END);
  std::array<char, kLastWords> bytes{};
  const off_t from = std::max<off_t>(end - static_cast<off_t>(bytes.size()), 0);
  const ssize_t got = pread(words_.get(), bytes.data(), bytes.size(), from);
  std::string text(bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  std::string best;
  std::size_t at = 0;
  while (at < text.length()) {
    const std::size_t line_end = std::min(text.find('\n', at), text.length());
    const std::string line = text.substr(at, line_end - at);
    if (line.find_first_not_of("-= \t") != std::string::npos) best = line;  // no ruler of mpirun's boxes
    at = line_end + 1;
  }
  return best;
}

std::optional<std::string> PeerJob::trouble() {
  int status = 0;
  if (pid_ != 0 && waitpid(pid_, &status, WNOHANG) == pid_) pid_ = 0;
  if (pid_ != 0) return std::nullopt;
  const std::string words = last_words();
  return fmt::format("its program has ended{}{}", words.empty() ? "" : ": ", words);
}

PeerJob::~PeerJob() {
  for (int look = 0; pid_ != 0; ++look) {
    if (waitpid(pid_, nullptr, WNOHANG) != 0) {
      pid_ = 0;
      break;
    }
    if (look == kPatience) kill(pid_, SIGTERM);
    if (look == 2 * kPatience) kill(pid_, SIGKILL);
    sleep_10_ms();
  }
}

}  // namespace zerocomm::cli
