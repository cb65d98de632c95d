#include "comm/window.hpp"

#include "base/check.hpp"
#include "base/math.hpp"
#include "comm/collective.hpp"
#include "comm/reduce_leaf.hpp"

#include <array>
#include <cstdio>
#include <optional>

namespace zerocomm::comm {
namespace {

using transport::Segment;

std::shared_ptr<Segment> library_segment(std::size_t bytes, const char* purpose) {
  auto segment = std::make_shared<Segment>();
  segment->pages = std::make_shared<Pages>(bytes, purpose);
  segment->address = segment->pages->address();
  segment->bytes = bytes;
  return segment;
}

// Memory of zc_mem_alloc lives until the last window over it is gone.
std::shared_ptr<Segment> caller_segment(Comm& comm, void* memory, std::size_t bytes) {
  auto segment = std::make_shared<Segment>();
  segment->pages = comm.find_memory(memory, bytes);
  segment->address = static_cast<std::byte*>(memory);
  segment->bytes = bytes;
  return segment;
}

// What ranks find each other's segments under: a call of a communicator makes two.
std::uint64_t part_key(std::uint64_t call) { return 2 * call; }
std::uint64_t words_key(std::uint64_t call) { return 2 * call + 1; }

}  // namespace

Window::Window(Comm& comm, const zc_window_config& config, zc_status* status)
    : comm_(comm.shared_from_this()), word_count_(config.word_count == 0 ? 1 : config.word_count) {
  const std::size_t word_bytes = checked_mul(word_count_, sizeof(std::uint64_t));
  const std::size_t wanted_bytes = checked_add(config.memory != nullptr ? 0 : config.bytes, word_bytes);
  parts_.reserve(static_cast<std::size_t>(comm.ranks()));
  words_.reserve(static_cast<std::size_t>(comm.ranks()));
  Collect what;
  what.call.collective = static_cast<std::uint32_t>(Collective::window_create);
  what.call.count = word_count_;
  auto& group = comm.group();
  std::optional<std::uint64_t> own_call;
  const auto bring_segments = [&](std::uint64_t call) -> std::uint64_t {
    own_call = call;
    try {
      group.offer(part_key(call), comm.rank(),
                  config.memory != nullptr ? caller_segment(comm, config.memory, config.bytes)
                                           : library_segment(config.bytes, "window"));
      group.offer(words_key(call), comm.rank(), library_segment(word_bytes, "words of a window"));
      return 0;
    } catch (const std::exception&) {  // no memory: tell the others, who wait for us
      return wanted_bytes;
    }
  };
  FunctionRef<std::uint64_t(std::uint64_t)> prepare = bring_segments;
  const auto find_segments = [&](const Peers&) { attach(*own_call); };
  FunctionRef<void(const Peers&)> find_all = find_segments;
  what.prepare = &prepare;
  *status = run_collective(comm, what, &find_all);
  if (own_call) {
    group.withdraw(part_key(*own_call), comm.rank());
    group.withdraw(words_key(*own_call), comm.rank());
  }
  if (*status != ZC_OK) return;
  own_bytes_ = config.memory != nullptr ? 0 : config.bytes;
  own_word_bytes_ = word_bytes;
  comm.window_bytes.fetch_add(own_bytes_);
  comm.word_bytes.fetch_add(own_word_bytes_);
}

void Window::attach(std::uint64_t call) {
  for (std::int32_t rank = 0; rank < comm_->ranks(); ++rank) {
    parts_.push_back(comm_->group().find(part_key(call), rank));
    words_.push_back(comm_->group().find(words_key(call), rank));
  }
}

Window::~Window() {
  comm_->window_bytes.fetch_sub(own_bytes_);
  comm_->word_bytes.fetch_sub(own_word_bytes_);
}

void Window::check_rank(std::int32_t rank) const {
  ZC_REQUIRE(rank >= 0 && rank < comm_->ranks(), ZC_ARGUMENT, "rank %d: rank %d is not one from 0 to %d", comm_->rank(),
             rank, comm_->ranks() - 1);
}

void Window::check_word(std::int32_t rank, std::size_t word) const {
  check_rank(rank);
  ZC_REQUIRE(word < word_count_, ZC_ARGUMENT, "rank %d: word %zu of a window with %zu words", comm_->rank(), word,
             word_count_);
}

zc_status Window::wait(std::int32_t rank, std::uint64_t generation, const WaitSpec& spec) const noexcept {
  const auto& announced = word(rank, 0);
  const auto name_culprit = [&](std::int32_t* culprit, char* text, std::size_t capacity_bytes) {
    *culprit = rank;
    std::snprintf(text, capacity_bytes, "rank %d has announced generation %llu, and %llu is waited for", rank,
                  static_cast<unsigned long long>(announced.load()), static_cast<unsigned long long>(generation));
  };
  FunctionRef<void(std::int32_t*, char*, std::size_t)> blame = name_culprit;
  WaitSpec with_blame = spec;
  if (with_blame.blame == nullptr) with_blame.blame = &blame;
  if (with_blame.label == nullptr) with_blame.label = "zc_window_wait";
  return comm_->wait([&]() -> int { return announced.load() >= generation; }, with_blame);
}

zc_status Window::read(std::int32_t rank, std::size_t offset_bytes, void* destination, std::size_t bytes,
                       std::uint64_t generation, zc_traffic traffic, const WaitSpec& spec) const {
  check_rank(rank);
  const std::size_t there = this->bytes(rank);
  ZC_REQUIRE(offset_bytes <= there && bytes <= there - offset_bytes, ZC_ARGUMENT,
             "rank %d: read of %zu bytes at %zu from rank %d, whose part has %zu bytes", comm_->rank(), bytes,
             offset_bytes, rank, there);
  ZC_REQUIRE(destination != nullptr || bytes == 0, ZC_ARGUMENT, "rank %d: destination is NULL", comm_->rank());
  if (generation != 0) ZC_TRY(wait(rank, generation, spec));
  comm_->copy(destination, memory(rank) + offset_bytes, bytes, rank, traffic);
  return ZC_OK;
}

void Window::reduce(const zc_window_reduction& reduction) const {
  constexpr std::size_t kMostRanks = 1024;
  const Window& to = reduction.to != nullptr ? *reduction.to : *this;
  const zc_dtype output = reduction.output_dtype == ZC_DTYPE_NONE ? reduction.dtype : reduction.output_dtype;
  device::ReduceSpec spec{reduction.dtype, output, ZC_OP_SUM, static_cast<std::size_t>(comm_->ranks())};
  spec.divisor = reduction.divisor;
  spec.accumulate = reduction.accumulate != 0;
  const zc_status status = device::check_reduce(spec);
  ZC_REQUIRE(status == ZC_OK, status, "rank %d: %s", comm_->rank(), zc_last_error());
  ZC_REQUIRE(&to.comm() == &comm(), ZC_ARGUMENT, "rank %d: the two windows belong to two communicators", comm_->rank());
  ZC_REQUIRE(reduction.source_bytes != nullptr, ZC_ARGUMENT, "rank %d: source_bytes is NULL", comm_->rank());
  const auto inside = [&](const Window& window, std::int32_t rank, std::size_t offset_bytes, zc_dtype dtype) {
    const std::size_t bytes = checked_mul(reduction.count, zc_dtype_bytes(dtype)), there = window.bytes(rank);
    ZC_REQUIRE(offset_bytes <= there && bytes <= there - offset_bytes, ZC_ARGUMENT,
               "rank %d: %zu elements of %s at byte %zu of rank %d, whose part has %zu bytes", comm_->rank(),
               reduction.count, zc_dtype_name(dtype), offset_bytes, rank, there);
    std::byte* const address = window.memory(rank) + offset_bytes;
    ZC_REQUIRE(reinterpret_cast<std::uintptr_t>(address) % zc_dtype_bytes(dtype) == 0, ZC_ALIGNMENT,
               "rank %d: byte %zu of rank %d is not aligned to an element of %s", comm_->rank(), offset_bytes, rank,
               zc_dtype_name(dtype));
    return address;
  };
  std::array<const void*, kMostRanks> inputs;
  std::array<void*, kMostRanks> outputs;
  std::array<std::int32_t, kMostRanks> output_ranks;
  for (std::int32_t rank = 0; rank < comm_->ranks(); ++rank) {
    const std::int64_t source = reduction.source_bytes[rank];
    inputs[static_cast<std::size_t>(rank)] =
        source == ZC_NONE ? nullptr : inside(*this, rank, static_cast<std::size_t>(source), reduction.dtype);
  }
  std::size_t output_count = 0;
  for (std::int32_t rank = 0; rank < comm_->ranks(); ++rank) {
    if (reduction.destination != ZC_NONE && reduction.destination != rank) continue;
    outputs[output_count] = inside(to, rank, reduction.destination_bytes, output);
    output_ranks[output_count++] = rank;
  }
  ZC_REQUIRE(output_count > 0, ZC_ARGUMENT, "rank %d: destination %d is no rank", comm_->rank(), reduction.destination);
  reduce_over_ranks(*comm_, {inputs.data(), outputs.data(), output_ranks.data(), output_count, reduction.count,
                             reduction.dtype, output, ZC_OP_SUM, spec.args(), ZC_TRAFFIC_DATA});
}

}  // namespace zerocomm::comm
