#include "comm/window.hpp"

#include "base/check.hpp"
#include "base/log.hpp"
#include "base/math.hpp"
#include "comm/adopt.hpp"
#include "comm/blocks.hpp"
#include "comm/collective.hpp"
#include "comm/native.hpp"
#include "comm/reduce_leaf.hpp"

#include <array>
#include <cstdio>
#include <optional>

namespace zerocomm::comm {
namespace {

using transport::Segment;

// Memory of zc_mem_alloc lives until the last window over it is gone.
std::shared_ptr<Segment> caller_segment(Comm& comm, void* memory, std::size_t bytes) {
  const std::shared_ptr<Segment> owner = comm.find_memory(memory, bytes);
  ZC_REQUIRE(owner != nullptr || comm.group().is_shared(comm.group().refer(memory, bytes)), ZC_ARGUMENT,
             "rank %d: the window's memory [%p, +%zu) cannot be reached by other processes: take it from zc_mem_alloc, "
             "or let the window allocate it",
             comm.rank(), memory, bytes);
  return std::make_shared<Segment>(
      Segment{owner != nullptr ? owner->keep : nullptr, static_cast<std::byte*>(memory), bytes, false, 0});
}

// What ranks find each other's segments under: a call of a communicator makes two.
std::uint64_t part_key(std::uint64_t call) { return 2 * call; }
std::uint64_t words_key(std::uint64_t call) { return 2 * call + 1; }

}  // namespace

Window::Window(Comm& comm, const zc_window_config& config, zc_status* status)
    : comm_(comm.shared_from_this()),
      word_count_(config.word_count == 0 ? 1 : config.word_count),
      contiguous_(config.contiguous != 0) {
  const std::size_t word_bytes = checked_mul(word_count_, sizeof(std::uint64_t));
  parts_.reserve(static_cast<std::size_t>(comm.ranks()));
  words_.reserve(static_cast<std::size_t>(comm.ranks()));
  ZC_REQUIRE(config.contiguous == 0 || config.memory == nullptr, ZC_ARGUMENT,
             "rank %d: a contiguous window brings no memory of the caller", comm.rank());
  ZC_REQUIRE(config.descriptor == nullptr || (config.memory == nullptr && config.contiguous == 0), ZC_ARGUMENT,
             "rank %d: a window has a descriptor, memory or contiguous parts, not two of them", comm.rank());
  std::shared_ptr<Segment> given;
  if (config.descriptor != nullptr)
    given = map_descriptor(comm.rank(), *config.descriptor, config.descriptor_offset_bytes, config.bytes);
  if (config.memory != nullptr) given = caller_segment(comm, config.memory, config.bytes);
  Collect what;
  what.call.collective = static_cast<std::uint32_t>(Collective::window_create);
  what.call.count = word_count_;
  what.call.in_place = config.contiguous != 0;
  what.held = true;
  const Hold hold(comm);
  if (!hold.is_held()) {
    *status = Hold::refuse(comm, what.call);
    return;
  }
  std::vector<std::uint64_t> part_bytes;
  if (config.contiguous != 0) {
    *status = exchange_bytes(config.bytes, &part_bytes);
    if (*status != ZC_OK) return;
  }
  // Of a contiguous window the first rank brings everything.
  std::size_t own_bytes = config.bytes;
  if (config.contiguous != 0) {
    own_bytes = 0;
    if (comm.rank() == 0)
      for (const std::uint64_t bytes : part_bytes) own_bytes = checked_add(own_bytes, bytes);
  }
  const std::size_t wanted_bytes = checked_add(given ? 0 : own_bytes, word_bytes);
  auto& group = comm.group();
  std::optional<std::uint64_t> own_call;
  const auto bring_segments = [&](std::uint64_t call) -> std::uint64_t {
    own_call = call;
    try {
      group.offer(part_key(call), comm.rank(), given ? given : group.allocate(comm.rank(), own_bytes, "window"));
      group.offer(words_key(call), comm.rank(), group.allocate(comm.rank(), word_bytes, "words of a window"));
      return 0;
    } catch (const Error& error) {  // no memory: tell the others, who wait for us
      record_error(error.status(), error.what());
      log(ZC_LOG_ERROR, "rank %d: %s", comm.rank(), error.what());
    } catch (const std::exception&) {
    }
    return wanted_bytes;
  };
  FunctionRef<std::uint64_t(std::uint64_t)> prepare = bring_segments;
  const auto find_segments = [&](const Peers&) {
    ZC_TRY(attach(*own_call, part_bytes));
    if (!group.exchanges_descriptors()) return ZC_OK;
    return exchange_adopted(comm, *own_call, config.descriptor != nullptr ? *config.descriptor : -1, parts_.data());
  };
  FunctionRef<zc_status(const Peers&)> find_all = find_segments;
  what.prepare = &prepare;
  *status = run_collective(comm, what, &find_all);
  if (own_call) {
    group.withdraw(part_key(*own_call), comm.rank());
    group.withdraw(words_key(*own_call), comm.rank());
  }
  if (*status != ZC_OK) return;
  call_ = *own_call;
  own_bytes_ = given ? 0 : config.bytes;
  own_word_bytes_ = word_bytes;
  comm.window_bytes.fetch_add(own_bytes_);
  comm.word_bytes.fetch_add(own_word_bytes_);
}

zc_status Window::exchange_bytes(std::size_t bytes, std::vector<std::uint64_t>* all) const {
  all->resize(static_cast<std::size_t>(comm_->ranks()));
  const std::uint64_t own = bytes;
  Options options;
  options.traffic = ZC_TRAFFIC_CONTROL;
  options.held = true;
  return all_gather(*comm_, &own, all->data(), 1, nullptr, ZC_DTYPE_I64, options);
}

// Every rank's part and words. `part_bytes` is empty unless the window is contiguous.
// An owner that was told of an error may have taken its offer back: then so was this rank.
zc_status Window::attach(std::uint64_t call, const std::vector<std::uint64_t>& part_bytes) {
  const auto find_all = [&](std::uint64_t key, std::vector<std::shared_ptr<Segment>>& segments) {
    for (std::int32_t rank = 0; rank < comm_->ranks(); ++rank) {
      segments.push_back(comm_->group().find(key, rank));
      if (!segments.back()) return false;
    }
    return true;
  };
  if (!find_all(words_key(call), words_)) return comm_->check_alive();
  if (part_bytes.empty()) return find_all(part_key(call), parts_) ? ZC_OK : comm_->check_alive();
  const std::shared_ptr<Segment> whole = comm_->group().find(part_key(call), 0);
  if (!whole) return comm_->check_alive();
  std::byte* address = whole->address;
  for (const std::uint64_t bytes : part_bytes) {
    parts_.push_back(std::make_shared<Segment>(Segment{whole->keep, address, bytes, false, 0}));
    address += bytes;
  }
  return ZC_OK;
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
  // An owner that was told of an error while this rank was stopped may have written meanwhile.
  return comm_->check_alive();
}

zc_status Window::view(std::int64_t deadline_ns) const {
  ZC_REQUIRE(contiguous_, ZC_UNSUPPORTED,
             "rank %d: zc_window_view: the parts of this window do not lie end to end; zc_window_config.contiguous "
             "makes one where they do",
             comm_->rank());
  Operation what;
  what.call.collective = static_cast<std::uint32_t>(Collective::window_view);
  what.call.count = call_;
  what.deadline_ns = deadline_ns;
  return run_collective(*comm_, what, nullptr);
}

std::size_t Window::total_bytes() const noexcept {
  std::size_t bytes = 0;
  for (const auto& part : parts_) bytes += part->bytes;
  return bytes;
}

void Window::reduce(const zc_window_reduction& reduction) const {
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
