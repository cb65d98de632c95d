#include "cli/bench_rank.hpp"

#include "cli/bench_call.hpp"
#include "cli/bench_kernels.hpp"
#include "cli/bench_team.hpp"
#include "cli/model_layout.hpp"

#include <zerocomm/mem.h>
#include <zerocomm/version.h>

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>

namespace zerocomm::cli {
namespace {

constexpr std::size_t kIterationStep = 31;  // of the phase
constexpr std::int64_t kSettleNs = 10'000'000;
constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kLineBytes = 64;

std::size_t whole_lines(std::size_t bytes) { return bytes / kLineBytes * kLineBytes; }

std::size_t size_word(const std::vector<std::string_view>& words, std::size_t i) {
  const auto number = i < words.size() ? whole_number(words[i]) : std::nullopt;
  if (!number || *number < 0) throw Failure("the driver sent a line that is no question");
  return static_cast<std::size_t>(*number);
}

}  // namespace

BenchBuffer::BenchBuffer(zc_comm* comm, std::size_t bytes, bool plain) : bytes_(bytes) {
  if (bytes == 0) return;
  if (!plain) {
    comm_ = comm;
    void* memory = nullptr;
    require_ok(zc_mem_alloc(comm, bytes, &memory), "zc_mem_alloc");
    memory_ = static_cast<std::byte*>(memory);
    return;
  }
  // As malloc takes large blocks: private pages of the system's choice.
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) refuse(fmt::format("{} bytes of memory", bytes));
  memory_ = static_cast<std::byte*>(memory);
}

BenchBuffer& BenchBuffer::operator=(BenchBuffer&& other) noexcept {
  std::swap(comm_, other.comm_);
  std::swap(memory_, other.memory_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

BenchBuffer::~BenchBuffer() {
  if (memory_ == nullptr) return;
  if (comm_ != nullptr)
    (void)zc_mem_free(comm_, memory_);
  else
    munmap(memory_, bytes_);
}

struct BenchRank::Call {
  BenchCall call;
  std::vector<Piece> pieces;
  bool check = true;
  int warmup = 0, iterations = 0;
};

BenchRank::BenchRank(zc_comm* comm) : comm_(comm), cores_(core_count()) {
  require_ok(zc_comm_rank(comm, &rank_), "zc_comm_rank");
  require_ok(zc_comm_size(comm, &ranks_), "zc_comm_size");
}

void BenchRank::serve(const std::string& socket) {
  LineSocket driver = connect_to(socket);
  zc_comm_info info{};
  info.struct_size = sizeof info;
  require_ok(zc_comm_get_info(comm_, &info), "zc_comm_get_info");
  const std::string library = fmt::format("zerocomm {}, {}, copies: {}, spin {} ns", zc_version_text(), info.transport,
                                          info.private_copy, info.spin_ns);
  if (!driver.send(hello_line({"zerocomm", rank_, ranks_, library}))) return;
  while (const auto line = driver.wait_line()) {
    if (*line == "quit") return;
    BenchReply reply;
    try {
      reply = answer(*line);
    } catch (const std::exception& error) {
      reply.error = error.what();
    }
    if (!driver.send(reply_lines(reply))) return;
  }
}

BenchReply BenchRank::answer(const std::string& line) {
  const std::string_view name = std::string_view(line).substr(0, line.find(' '));
  if (name == "reserve") return reserve(line);
  if (name == "stream") return stream(line);
  if (name == "triad") return triad(line);
  const auto request = parse_request(name == "bits" ? "run" + line.substr(name.length()) : line);
  if (!request) throw Failure("the driver sent a line that is no question");
  return name == "bits" ? bits(*request) : run(*request);
}

// "reserve FIRST_BYTES SECOND_BYTES MEMORY PIN". Fills the pages, so that no measurement pays for them.
BenchReply BenchRank::reserve(const std::string& line) {
  const std::vector<std::string_view> words = words_of(line);
  const bool plain = words.size() > 3 && words[3] == "plain";
  if (words.size() > 4 && words[4] == "pin") pin_to_core(rank_);
  first_ = {};
  second_ = {};
  first_ = BenchBuffer(comm_, size_word(words, 1), plain);
  second_ = BenchBuffer(comm_, size_word(words, 2), plain);
  for (const BenchBuffer* buffer : {&first_, &second_}) std::fill_n(buffer->get(), buffer->bytes(), std::byte{1});
  return {};
}

void BenchRank::choose_patterns(const BenchRequest& request) {
  const zc_op op = info_of(request.collective).reduces ? request.op : ZC_OP_NONE;
  if (request.dtype == pattern_dtype_ && op == pattern_op_) return;
  source_ = bench_source(request.dtype, op);
  result_ = op == ZC_OP_NONE ? source_ : bench_result(request.dtype, op, ranks_);
  pattern_dtype_ = request.dtype;
  pattern_op_ = op;
}

BenchRank::Call BenchRank::prepare(const BenchRequest& request) const {
  Call result{make_call(request, comm_, rank_, ranks_, first_.get(), second_.get()),
              {},
              request.check,
              request.warmup,
              request.iterations};
  const BenchCall& call = result.call;
  const std::size_t element_bytes = zc_dtype_bytes(request.dtype);
  const bool in = request.place == BenchPlace::in || request.collective == Collective::broadcast;
  const std::size_t needed = std::max(call.send_count, in ? request.count : 0) * element_bytes;
  if (needed > first_.bytes() || (!in && call.recv_count * element_bytes > second_.bytes()))
    throw Failure("more is asked for than was reserved");
  const auto add = [&](const std::byte* at, std::size_t count, const BenchPattern& pattern, std::size_t phase) {
    if (count > 0) result.pieces.push_back({at, count, &pattern, phase});
  };
  const auto rank_phase = [](int rank) { return static_cast<std::size_t>(rank) * kBenchRankStep; };
  switch (request.collective) {
    case Collective::all_gather:
    case Collective::all_gather_v:
    case Collective::all_to_all:
    case Collective::all_to_all_v: {
      const bool gathers = call.recv_counts.empty();
      const std::byte* at = call.recv;
      for (int rank = 0; rank < ranks_; ++rank) {
        const std::size_t count = (gathers ? call.counts : call.recv_counts)[static_cast<std::size_t>(rank)];
        add(at, count, source_, rank_phase(rank) + call.send_offset);
        at += count * element_bytes;
      }
      break;
    }
    case Collective::broadcast:
      add(call.send, call.count, source_, rank_phase(request.root));
      break;
    case Collective::barrier:
      break;
    default:
      add(call.recv, call.recv_count, result_, call.send_offset);
  }
  return result;
}

bool BenchRank::is_right(const Call& call, std::size_t phase) const {
  bool all = true;
  for (const Piece& piece : call.pieces) all = piece.pattern->equals(piece.at, piece.count, phase + piece.phase) && all;
  return all;
}

void BenchRank::barrier() { require_ok(zc_barrier(comm_, nullptr), "zc_barrier"); }

// Before each call the whole source is written, and after it the whole result is read, as a training step does.
void BenchRank::time(const Call& call, BenchReply& reply) {
  std::vector<std::int64_t> begins, ends;
  for (int i = -call.warmup; i < call.iterations; ++i) {
    phase_ += kIterationStep;
    source_.fill(call.call.send, call.call.send_count, phase_ + static_cast<std::size_t>(rank_) * kBenchRankStep);
    barrier();
    const std::int64_t begin = clock_.stamp();
    const zc_status status = call.call();
    const std::int64_t end = clock_.stamp();
    require_ok(status, info_of(call.call.collective).name);
    if (!is_right(call, phase_) && call.check) ++reply.wrong;
    if (i < 0) continue;
    begins.push_back(begin);
    ends.push_back(end);
  }
  clock_.to_ns(ends);
  clock_.to_ns(begins);
  for (std::size_t i = 0; i < begins.size(); ++i)
    reply.times_ns.push_back(std::max<std::int64_t>(ends[i] - begins[i], 0));
  reply.arrivals_ns = std::move(begins);
}

// All ranks have been woken by one process, which tends to bring them together on its core. The scheduler spreads them
// within some ticks, if they have work.
void BenchRank::settle() const {
  if (ranks_ > cores_) return;
  const std::int64_t end_ns = bench_now_ns() + kSettleNs;
  while (bench_now_ns() < end_ns) {
  }
}

BenchReply BenchRank::run(const BenchRequest& request) {
  choose_patterns(request);
  settle();
  BenchReply reply;
  Call call = prepare(request);
  if (!request.loop) {
    time(call, reply);
    return reply;
  }
  // nccl-tests' way: back to back, on data that nobody touches; then one call whose result is looked at.
  source_.fill(call.call.send, call.call.send_count, phase_ + static_cast<std::size_t>(rank_) * kBenchRankStep);
  for (int i = 0; i < call.warmup; ++i) require_ok(call.call(), info_of(request.collective).name);
  barrier();
  std::vector<std::int64_t> stamps{clock_.stamp()};
  zc_status status = ZC_OK;
  for (int i = 0; i < call.iterations && status == ZC_OK; ++i) status = call.call();
  stamps.push_back(clock_.stamp());
  require_ok(status, info_of(request.collective).name);
  clock_.to_ns(stamps);
  reply.times_ns = {(stamps[1] - stamps[0]) / call.iterations};
  reply.arrivals_ns = {stamps[0]};
  BenchReply checked;
  call.warmup = 0;
  call.iterations = 1;
  time(call, checked);
  reply.wrong = checked.wrong;
  return reply;
}

BenchReply BenchRank::bits(const BenchRequest& request) {
  choose_patterns(request);
  const Call call = prepare(request);
  bench_noise(request.dtype)
      .fill(call.call.send, call.call.send_count, static_cast<std::size_t>(rank_) * kBenchRankStep);
  require_ok(call.call(), info_of(request.collective).name);
  std::uint64_t digest = 0;
  for (const Piece& piece : call.pieces)
    digest = bench_digest(piece.at, piece.count * zc_dtype_bytes(request.dtype), digest);
  BenchReply reply;
  reply.bits = fmt::format("{:016x}", digest);
  return reply;
}

BenchReply BenchRank::time_streams(int iterations, const std::function<void()>& refresh,
                                   const std::function<void()>& work) {
  BenchReply reply;
  for (int i = -1; i < iterations; ++i) {
    refresh();
    barrier();
    std::vector<std::int64_t> stamps{clock_.stamp()};
    work();
    stamps.push_back(clock_.stamp());
    if (i < 0) continue;
    clock_.to_ns(stamps);
    reply.times_ns.push_back(stamps[1] - stamps[0]);
    reply.arrivals_ns.push_back(stamps[0]);
  }
  return reply;
}

// "stream READS WRITES RUN_BYTES ITERATIONS BYPASS WHERE": over the buffers of the collectives: out, from the first to
// the second; in, within the first; apart, within the first, to what is behind that which is read.
BenchReply BenchRank::stream(const std::string& line) {
  const std::vector<std::string_view> words = words_of(line);
  const std::size_t reads = size_word(words, 1), writes = size_word(words, 2);
  const std::size_t run_bytes = whole_lines(size_word(words, 3));
  const std::string_view where = words.size() > 6 ? words[6] : "";
  const BenchBuffer& target = where == "out" ? second_ : first_;
  const std::size_t skipped = where == "apart" ? reads : 0;
  if (std::max(reads, std::size_t{1}) * run_bytes > first_.bytes() || (skipped + writes) * run_bytes > target.bytes())
    throw Failure("a stream of more than was reserved");
  std::vector<const std::byte*> from;
  std::vector<std::byte*> to;
  for (std::size_t i = 0; i < reads; ++i) from.push_back(first_.get() + i * run_bytes);
  for (std::size_t i = 0; i < writes; ++i) to.push_back(target.get() + (skipped + i) * run_bytes);
  const auto refresh = [&] {
    std::fill_n(first_.get(), reads * run_bytes, std::byte{1});
    sink_ ^= static_cast<int>(bench_digest(target.get() + skipped * run_bytes, writes * run_bytes, 0));
  };
  const BenchStream stream{from, to, run_bytes, size_word(words, 5) != 0};
  return time_streams(static_cast<int>(size_word(words, 4)), refresh, [&] { sink_ ^= run_stream(stream); });
}

// "triad BYTES ITERATIONS BYPASS": this rank's part of one array, of three. Takes the place of the buffers until others
// are reserved.
BenchReply BenchRank::triad(const std::string& line) {
  const std::vector<std::string_view> words = words_of(line);
  const std::size_t bytes = std::max(size_word(words, 1) / kPageBytes, std::size_t{1}) * kPageBytes;
  if (first_.bytes() != 3 * bytes) {
    first_ = {};
    first_ = BenchBuffer(comm_, 3 * bytes, true);
    std::fill_n(first_.get(), 3 * bytes, std::byte{1});
  }
  const std::byte* const from[] = {first_.get(), first_.get() + bytes};
  std::byte* const to[] = {first_.get() + 2 * bytes};
  const BenchStream stream{from, to, bytes, size_word(words, 3) != 0};
  return time_streams(
      static_cast<int>(size_word(words, 2)), [] {}, [&] { sink_ ^= run_stream(stream); });
}

}  // namespace zerocomm::cli
