#include "cli/run_output.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <climits>
#include <limits>

namespace zerocomm::cli {
namespace {

constexpr std::size_t kUnbounded = std::numeric_limits<std::size_t>::max();

// Lines of both streams may only be kept whole by one writer.
bool same_file(int a, int b) {
  struct stat x {
  }, y{};
  return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

}  // namespace

// Non-blocking is a mark of the open file, which others hold too; a terminal or pipe can be opened once more.
RunSink::RunSink(int fd) : fd_(fd) {
  struct stat what {};
  if (fstat(fd, &what) != 0 || S_ISREG(what.st_mode)) return;
  waits_ = true;
  if (!S_ISFIFO(what.st_mode) && isatty(fd) == 0) return;
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  own_ = RunDescriptor(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!own_) return;
  fd_ = own_.get();
  waits_ = false;
}

void RunSink::write_some() {
  while (waiting()) {
    const std::size_t rest = queue_.length() - written_;
    // A pipe that poll calls ready takes that much without waiting.
    const ssize_t wrote = write(fd_, queue_.data() + written_, waits_ ? std::min<std::size_t>(rest, PIPE_BUF) : rest);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0 && errno == EAGAIN) break;
    if (wrote < 0) {
      broken_ = true;
      break;
    }
    written_ += static_cast<std::size_t>(wrote);
    if (waits_) break;
  }
  if (broken_ || !waiting())
    queue_.clear();
  else if (written_ >= kQueueBytes)
    queue_.erase(0, written_);
  else
    return;
  written_ = 0;
}

RunOutput::RunOutput(Prefix prefix, int ranks) : sinks_{RunSink(STDOUT_FILENO), RunSink(STDERR_FILENO)} {
  set_up(out_, STDOUT_FILENO, prefix, ranks);
  set_up(err_, STDERR_FILENO, prefix, ranks);
  err_.sink = &sinks_[1];
  out_.sink = same_file(STDOUT_FILENO, STDERR_FILENO) ? &sinks_[1] : &sinks_[0];
}

void RunOutput::set_up(Stream& stream, int fd, Prefix prefix, int ranks) {
  if (prefix == Prefix::never || (prefix == Prefix::automatic && isatty(fd) == 0)) return;
  for (int rank = 0; rank < ranks; ++rank) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) refuse("a pipe for the output of rank " + std::to_string(rank));
    RunDescriptor read_end(ends[0]), write_end(ends[1]);
    if (fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) refuse("fcntl");
    stream.pipes.push_back({std::move(read_end), std::move(write_end), LinePrefixer(rank), kUnbounded});
    ++stream.open;
  }
}

int RunOutput::write_end(const Stream& stream, int rank) {
  return stream.pipes.empty() ? -1 : stream.pipes[static_cast<std::size_t>(rank)].write_end.get();
}

void RunOutput::started() {
  for (Stream* stream : {&out_, &err_})
    for (Pipe& pipe : stream->pipes) pipe.write_end.close();
}

void RunOutput::say(const std::string& text) { sinks_[1].queue() += text + '\n'; }

void RunOutput::close(Stream& stream, Pipe& pipe) {
  pipe.lines.finish(stream.sink->queue());
  pipe.read_end.close();
  --stream.open;
}

void RunOutput::read_some(Stream& stream, Pipe& pipe) {
  std::array<char, 8192> chunk;
  const ssize_t got = read(pipe.read_end.get(), chunk.data(), std::min(chunk.size(), pipe.rest_bytes));
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got > 0) {
    pipe.lines.take({chunk.data(), static_cast<std::size_t>(got)}, stream.sink->queue());
    if (pipe.rest_bytes != kUnbounded) pipe.rest_bytes -= static_cast<std::size_t>(got);
  }
  if (got <= 0 || pipe.rest_bytes == 0) close(stream, pipe);
}

void RunOutput::wait_for(std::vector<pollfd>& polled) {
  entries_.clear();
  for (RunSink& sink : sinks_) {
    if (!sink.waiting()) continue;
    polled.push_back({sink.fd(), POLLOUT, 0});
    entries_.push_back({&sink, nullptr, nullptr});
  }
  ++turn_;
  for (Stream* stream : {&out_, &err_})
    for (std::size_t i = 0; i < stream->pipes.size(); ++i) {
      Pipe& pipe = stream->pipes[(i + turn_) % stream->pipes.size()];
      if (!pipe.read_end || stream->sink->full()) continue;
      polled.push_back({pipe.read_end.get(), POLLIN, 0});
      entries_.push_back({nullptr, stream, &pipe});
    }
}

void RunOutput::handle(const pollfd* polled, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (polled[i].revents == 0) continue;
    const Entry& entry = entries_[i];
    if (entry.sink != nullptr)
      entry.sink->write_some();
    else if (!entry.stream->sink->full())
      read_some(*entry.stream, *entry.pipe);
  }
  // The ranks are to get what they would get without us: SIGPIPE.
  for (Stream* stream : {&out_, &err_})
    if (stream->sink->broken())
      for (Pipe& pipe : stream->pipes)
        if (pipe.read_end) close(*stream, pipe);
}

void RunOutput::finish() {
  for (Stream* stream : {&out_, &err_})
    for (Pipe& pipe : stream->pipes) {
      if (!pipe.read_end) continue;
      int bytes = 0;
      if (ioctl(pipe.read_end.get(), FIONREAD, &bytes) != 0 || bytes <= 0)
        close(*stream, pipe);
      else
        pipe.rest_bytes = static_cast<std::size_t>(bytes);
    }
}

}  // namespace zerocomm::cli
