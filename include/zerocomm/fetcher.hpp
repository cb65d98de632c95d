/**
 * The parameter part of the ZeRO engine in C++: see fetcher.h, whose contracts hold.
 */
#pragma once

#include <zerocomm/fetcher.h>
#include <zerocomm/held.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace zc {

/** Options of a fetcher, as in zc_fetcher_config; what is left out has its default. */
struct FetcherConfig {
  std::size_t budget_bytes = 0;
  std::size_t max_held_bytes = 0;
  std::int32_t prefetch = 0;
  bool drop_released = false;
  std::int32_t poison = 0;
  std::chrono::nanoseconds deadline{0};
  std::span<void *const> shards{}; /**< one per buffer; empty: memory of the library */
  zc_allocator gather_allocator{};

  zc_fetcher_config raw() const noexcept {
    zc_fetcher_config config{};
    config.struct_size = sizeof config;
    config.budget_bytes = budget_bytes;
    config.max_held_bytes = max_held_bytes;
    config.prefetch = prefetch;
    config.drop_released = drop_released ? 1 : 0;
    config.poison = poison;
    config.deadline_ns = deadline.count();
    config.shards = shards.empty() ? nullptr : shards.data();
    config.gather_allocator = gather_allocator;
    return config;
  }
};

/** A unit's parameters between acquire and release. */
using FetchedUnit = detail::Held<zc_fetcher, zc_fetcher_release>;

/** A fetcher. Its destructor detaches this rank; it must go before its communicator. */
class Fetcher : public detail::Handle<detail::View<zc_fetcher>, zc_fetcher, zc_fetcher_destroy> {
 public:
  Fetcher() = default;

  /** Collective. All memory is allocated here, but for one array of addresses in each FetchedUnit. */
  static Fetcher create(CommView comm, const Layout &layout, const FetcherConfig &config = {}) {
    auto table = std::make_unique<detail::UseTable>(layout);
    if (!config.shards.empty())
      detail::check_count("zc::Fetcher::create", "shards", config.shards.size(), layout.info().buffer_count);
    const zc_fetcher_config raw = config.raw();
    zc_fetcher *fetcher = nullptr;
    check(zc_fetcher_create(comm.get(), layout.get(), &raw, &fetcher));
    return Fetcher(fetcher, std::move(table));
  }

  /** Open a pass; close it. Both are local. */
  void begin(const std::string &pass) const { check(zc_fetcher_begin(get(), pass.c_str())); }
  void end() const { check(zc_fetcher_end(get())); }

  /** Get a unit's parameters, for as long as the result lives. Threads: any, at any time. */
  [[nodiscard]] FetchedUnit acquire(std::size_t unit) const {
    std::vector<const void *> tensors(table_->unit("zc::Fetcher::acquire", unit).size());
    check(zc_fetcher_acquire(get(), unit, tensors.data(), tensors.size(), nullptr));
    return {get(), table_.get(), unit, std::move(tensors)};
  }

  /** The same without an allocation: the caller brings room for the addresses, and calls release. */
  void acquire(std::size_t unit, std::span<const void *> tensors) const {
    check(zc_fetcher_acquire(get(), unit, tensors.data(), tensors.size(), nullptr));
  }
  void release(std::size_t unit) const { check(zc_fetcher_release(get(), unit, nullptr)); }

  /** Fetch a unit ahead by hand. False: no room, or its owners have not published; nothing happened. */
  bool prefetch(std::size_t unit) const {
    const zc_status status = zc_fetcher_prefetch(get(), unit);
    if (status != ZC_AGAIN) check(status);
    return status == ZC_OK;
  }

  /** This rank's shard of one buffer, to be written between update_begin and publish. ARGUMENT: T is not its dtype. */
  template <Element T>
  std::span<T> shard(const Layout &layout, std::size_t buffer) const {
    const zc_dtype wanted = layout.buffer(buffer).dtype;
    if (dtype<T> != wanted)
      throw Error(ZC_ARGUMENT, "zc::Fetcher::shard: buffer " + std::to_string(buffer) + " holds " +
                                   zc_dtype_name(wanted) + ", not " + zc_dtype_name(dtype<T>));
    void *shard = nullptr;
    std::size_t count = 0;
    check(zc_fetcher_shard(get(), buffer, &shard, &count));
    return {static_cast<T *>(shard), count};
  }

  /** Open the update: waits until no rank reads what is about to be overwritten. */
  void update_begin() const { check(zc_fetcher_update_begin(get())); }

  /** Announce the new values; that nothing changed. */
  void publish() const { check(zc_fetcher_publish(get(), nullptr)); }
  void publish_unchanged() const { check(zc_fetcher_publish_unchanged(get())); }

  zc_fetcher_stats stats() const {
    return detail::read_info<zc_fetcher_stats>(
        [this](zc_fetcher_stats *stats) { return zc_fetcher_get_stats(get(), stats); });
  }
  zc_fetcher_ledger ledger() const {
    return detail::read_info<zc_fetcher_ledger>(
        [this](zc_fetcher_ledger *ledger) { return zc_fetcher_get_ledger(get(), ledger); });
  }

 private:
  Fetcher(zc_fetcher *owned, std::unique_ptr<const detail::UseTable> table) noexcept
      : Handle(owned), table_(std::move(table)) {}

  std::unique_ptr<const detail::UseTable> table_;
};

}  // namespace zc
