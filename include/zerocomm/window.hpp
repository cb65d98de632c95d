/**
 * Windows in C++: see window.h, whose contracts hold.
 */
#pragma once

#include <zerocomm/window.h>
#include <zerocomm/coll.hpp>
#include <zerocomm/types.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace zc {

/** What this rank brings, as in zc_window_config; what is left out has its default. */
struct WindowConfig {
  std::size_t bytes = 0;
  void *memory = nullptr;
  std::size_t word_count = 0;
  bool contiguous = false;
  const std::int32_t *descriptor = nullptr;
  std::uint64_t descriptor_offset_bytes = 0;

  zc_window_config raw() const noexcept {
    zc_window_config config{};
    config.struct_size = sizeof config;
    config.bytes = bytes;
    config.memory = memory;
    config.word_count = word_count;
    config.contiguous = contiguous ? 1 : 0;
    config.descriptor = descriptor;
    config.descriptor_offset_bytes = descriptor_offset_bytes;
    return config;
  }
};

/** Memory of every rank that the others can reach. Its destructor detaches this rank; it must go before its communicator. */
class Window : public detail::Handle<detail::View<zc_window>, zc_window, zc_window_destroy> {
 public:
  using Handle::Handle;

  /** Collective. */
  static Window create(CommView comm, const WindowConfig &config) {
    const zc_window_config raw = config.raw();
    zc_window *window = nullptr;
    check(zc_window_create(comm.get(), &raw, &window));
    return Window(window);
  }

  /** A rank's part, for direct access; empty if it has none. ARGUMENT, ALIGNMENT: it is no array of T. */
  template <class T>
  std::span<T> part(std::int32_t rank) const {
    static_assert(std::is_trivially_copyable_v<T>, "zc: a window holds plain values alone");
    void *memory = nullptr;
    std::size_t bytes = 0;
    check(zc_window_ptr(get(), rank, &memory, &bytes));
    if (bytes % sizeof(T) != 0) {
      throw Error(ZC_ARGUMENT, "zc::Window::part: the " + std::to_string(bytes) + " bytes of rank " +
                                   std::to_string(rank) + " are no whole number of elements of " +
                                   std::to_string(sizeof(T)) + " bytes");
    }
    if (reinterpret_cast<std::uintptr_t>(memory) % alignof(T) != 0) {
      throw Error(ZC_ALIGNMENT, "zc::Window::part: the part of rank " + std::to_string(rank) +
                                    " does not begin at a multiple of " + std::to_string(alignof(T)) + " bytes");
    }
    return {static_cast<T *>(memory), bytes / sizeof(T)};
  }

  /** All parts of a contiguous window, end to end in rank order, once every rank has called. Collective; moves nothing. */
  std::span<const std::byte> view(const CollOptions &options = {}) const {
    const zc_coll_options raw = options.raw();
    const void *all = nullptr;
    std::size_t bytes = 0;
    check(zc_window_view(get(), &all, &bytes, &raw));
    return {static_cast<const std::byte *>(all), bytes};
  }

  /** Announce a generation of this rank's bytes. */
  void signal(std::uint64_t generation) const { check(zc_window_signal(get(), generation)); }

  /** Wait until `rank` has announced `generation` or a later one. False: not yet, and the deadline is kPoll. */
  [[nodiscard]] bool wait(std::int32_t rank, std::uint64_t generation, const WaitOptions &options = {}) const {
    const zc_wait_options raw = options.raw();
    const zc_status status = zc_window_wait(get(), rank, generation, &raw);
    if (status != ZC_AGAIN) check(status);
    return status == ZC_OK;
  }

  /** Copy elements of a rank's part, once it has announced `generation` (0: at once). */
  template <class To>
  void read(std::int32_t rank, std::size_t offset_bytes, To &&to, std::uint64_t generation = 0,
            const WaitOptions &options = {}) const {
    detail::check_range<To>();
    const auto out = detail::output(to);
    const zc_wait_options raw = options.raw();
    check(zc_window_read(get(), rank, offset_bytes, out.data(), out.size_bytes(), generation, &raw));
  }

  /** The word of a rank; word 0 is its generation. */
  std::uint64_t load(std::int32_t rank, std::size_t word) const {
    std::uint64_t value = 0;
    check(zc_window_load(get(), rank, word, &value));
    return value;
  }

  /** Write a word and wake whoever waits. */
  void store(std::int32_t rank, std::size_t word, std::uint64_t value) const {
    check(zc_window_store(get(), rank, word, value));
  }

  /** Add to a word; what it held before. */
  std::uint64_t add(std::int32_t rank, std::size_t word, std::uint64_t delta) const {
    std::uint64_t before = 0;
    check(zc_window_add(get(), rank, word, delta, &before));
    return before;
  }

  /** Replace `expected` by `desired`; what the word held: equal to `expected` if it was replaced. */
  std::uint64_t compare_swap(std::int32_t rank, std::size_t word, std::uint64_t expected, std::uint64_t desired) const {
    std::uint64_t before = 0;
    check(zc_window_compare_swap(get(), rank, word, expected, desired, &before));
    return before;
  }

  /** Sum one run of elements over all ranks' parts; the struct is the C API's, and its struct_size is set here. */
  void reduce(zc_window_reduction reduction) const {
    reduction.struct_size = sizeof reduction;
    check(zc_window_reduce(get(), &reduction));
  }
};

}  // namespace zc
