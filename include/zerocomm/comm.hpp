/**
 * Communicators in C++: see comm.h, whose contracts hold.
 */
#pragma once

#include <zerocomm/comm.h>
#include <zerocomm/handle.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace zc {

/** A deadline that has passed already: look once, never wait. */
inline constexpr std::chrono::nanoseconds kPoll{ZC_POLL};

/** Options of a communicator, as in zc_comm_config; what is left out has its default. */
struct CommConfig {
  std::chrono::nanoseconds deadline{0};
  std::chrono::nanoseconds spin{0};
  const char *topology = nullptr;
  std::int32_t ranks = 0;
  std::int32_t rank = 0;
  const zc_unique_id *id = nullptr;
  std::chrono::nanoseconds init_deadline{0};
  std::int32_t requests = 0;
  bool helper_thread = false;
  zc_switch reproducible = ZC_SWITCH_DEFAULT;
  const zc_store *store = nullptr; /**< read until the communicator is made */

  zc_comm_config raw() const noexcept {
    zc_comm_config config{};
    config.struct_size = sizeof config;
    config.deadline_ns = deadline.count();
    config.spin_ns = spin.count();
    config.topology = topology;
    config.ranks = ranks;
    config.rank = rank;
    config.id = id;
    config.init_deadline_ns = init_deadline.count();
    config.requests = requests;
    config.helper_thread = helper_thread ? 1 : 0;
    config.reproducible = reproducible;
    config.store = store;
    return config;
  }
};

/** Make a fresh id; see zc_unique_id_create. */
inline zc_unique_id make_unique_id() {
  zc_unique_id id{};
  check(zc_unique_id_create(&id));
  return id;
}

/** A communicator that somebody else owns: a zc::Comm, or a framework's zc_comm*. The collectives take it by value. */
class CommView : public detail::View<zc_comm> {
 public:
  CommView() = default;
  CommView(zc_comm *comm) noexcept : View(comm) {}  // NOLINT(google-explicit-constructor)

  /** Rank of this handle, 0 .. size() - 1. */
  std::int32_t rank() const {
    std::int32_t rank = 0;
    check(zc_comm_rank(get(), &rank));
    return rank;
  }

  /** Number of ranks. */
  std::int32_t size() const {
    std::int32_t ranks = 0;
    check(zc_comm_size(get(), &ranks));
    return ranks;
  }

  /** Index of the node that a rank is on. */
  std::int32_t node(std::int32_t rank) const {
    std::int32_t node = 0;
    check(zc_comm_node(get(), rank, &node));
    return node;
  }

  /** The status that killed the communicator, or ZC_OK. */
  zc_status status() const noexcept { return zc_comm_status(get()); }

  /** Kill the communicator. Always safe, also in a signal handler. */
  zc_status abort() const noexcept { return zc_comm_abort(get()); }

  zc_comm_info info() const {
    return detail::read_info<zc_comm_info>([this](zc_comm_info *info) { return zc_comm_get_info(get(), info); });
  }

  zc_stats stats() const {
    return detail::read_info<zc_stats>([this](zc_stats *stats) { return zc_comm_stats(get(), stats); });
  }

  void stats_reset() const { check(zc_comm_stats_reset(get())); }

  zc_ledger ledger() const {
    return detail::read_info<zc_ledger>([this](zc_ledger *ledger) { return zc_comm_ledger(get(), ledger); });
  }

  /** What a rank did: `back` 0 is its youngest record. Nothing if there is none so far back. */
  std::optional<zc_flight_record> flight(std::int32_t rank, std::uint64_t back) const {
    zc_flight_record record{};
    record.struct_size = sizeof record;
    const zc_status status = zc_comm_flight(get(), rank, back, &record);
    if (status == ZC_AGAIN) return std::nullopt;
    check(status);
    return record;
  }

  /** Put a note into this rank's flight recorder. */
  void note(const std::string &label, std::uint64_t value) const { check(zc_comm_note(get(), label.c_str(), value)); }
};

/**
 * One rank's communicator. Its destructor detaches the rank: destroy windows, engines, memory and requests before.
 *
 * Threads    As the C functions; moving a handle while another thread uses it is the caller's race.
 */
class Comm : public detail::Handle<CommView, zc_comm, zc_comm_destroy> {
 public:
  using Handle::Handle;

  /** Ranks that are processes of this host; see zc_comm_create. Collective. */
  static Comm create(const CommConfig &config = {}) {
    const zc_comm_config raw = config.raw();
    zc_comm *comm = nullptr;
    check(zc_comm_create(&raw, &comm));
    return Comm(comm);
  }

  /** Ranks that are threads of this process: handle r is rank r's. See zc_comm_create_threads. */
  static std::vector<Comm> create_threads(std::int32_t ranks, const CommConfig &config = {}) {
    const zc_comm_config raw = config.raw();
    const std::size_t room = ranks > 0 ? static_cast<std::size_t>(ranks) : 1;
    std::vector<Comm> comms(room);
    std::vector<zc_comm *> made(room, nullptr);
    check(zc_comm_create_threads(ranks, &raw, made.data()));
    for (std::size_t i = 0; i < room; ++i) comms[i] = Comm(made[i]);
    return comms;
  }

  /** The ranks of one colour form a child, numbered by key; with ZC_NONE the result is empty. Collective. */
  static Comm split(CommView parent, std::int32_t color, std::int32_t key, const CommConfig &config = {}) {
    const zc_comm_config raw = config.raw();
    zc_comm *child = nullptr;
    check(zc_comm_split(parent.get(), color, key, &raw, &child));
    return Comm(child);
  }
};

/** Options of one wait, as in zc_wait_options. */
struct WaitOptions {
  std::chrono::nanoseconds deadline{0};
  const char *label = nullptr;

  zc_wait_options raw() const noexcept {
    zc_wait_options options{};
    options.struct_size = sizeof options;
    options.deadline_ns = deadline.count();
    options.label = label;
    return options;
  }
};

}  // namespace zc
