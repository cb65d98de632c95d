// window.h.
#include "capi/blocking_form.hpp"
#include "comm/window.hpp"

#include <memory>

namespace {

using namespace zerocomm;
using capi::guard;
using capi::read_struct;

zc_window& checked(zc_window* window) {
  ZC_REQUIRE(window != nullptr, ZC_ARGUMENT, "the window is NULL");
  return *window;
}

// Runs `body` unless this process is a forked child: words are shared with the parent.
template <class Body>
zc_status with_words(zc_window* window, Body&& body) noexcept {
  return guard([&]() -> zc_status {
    ZC_TRY(checked(window).comm().check_process());
    return body();
  });
}

// Runs `body` with the wait's options, unless the communicator is dead already.
template <class Body>
zc_status with_wait(zc_window* window, const zc_wait_options* options, Body&& body) noexcept {
  return guard([&]() -> zc_status {
    ZC_TRY(checked(window).comm().check_alive());
    const zc_wait_options mine = read_struct(options, "zc_wait_options");
    capi::check_deadline(mine.deadline_ns);
    ZC_REQUIRE(mine.blame == nullptr && mine.extend_ns == nullptr, ZC_ARGUMENT,
               "rank %d: blame and extend_ns are for zc_comm_wait; a wait for a window names its rank itself",
               window->comm().rank());
    return body(comm::WaitSpec{mine.deadline_ns, mine.label, nullptr});
  });
}

}  // namespace

zc_status zc_window_create(zc_comm* comm, const zc_window_config* config, zc_window** window) {
  return guard([&]() -> zc_status {
    ZC_REQUIRE(comm != nullptr && window != nullptr, ZC_ARGUMENT, "comm or window is NULL");
    ZC_TRY(comm->check_alive());
    zc_status status = ZC_OK;
    auto made = std::make_unique<zc_window>(*comm, read_struct(config, "zc_window_config"), &status);
    if (status == ZC_OK) *window = made.release();
    return status;
  });
}

zc_status zc_window_destroy(zc_window* window) {
  if (window == nullptr) return ZC_OK;
  return with_words(window, [&] {
    delete window;
    return ZC_OK;
  });
}

zc_status zc_window_ptr(zc_window* window, int32_t rank, void** memory, size_t* bytes) {
  return guard([&] {
    checked(window).check_rank(rank);
    ZC_REQUIRE(memory != nullptr && bytes != nullptr, ZC_ARGUMENT, "memory or bytes is NULL");
    *memory = window->memory(rank);
    *bytes = window->bytes(rank);
    return ZC_OK;
  });
}

zc_status zc_window_view(zc_window* window, const void** all, size_t* bytes, const zc_coll_options* options) {
  return guard([&]() -> zc_status {
    const comm::Comm& comm = checked(window).comm();
    ZC_REQUIRE(all != nullptr && bytes != nullptr, ZC_ARGUMENT, "rank %d: all or bytes is NULL", comm.rank());
    const zc_coll_options mine = capi::read_blocking_form(comm, options, "zc_window_view");
    ZC_REQUIRE(mine.output_dtype == ZC_DTYPE_NONE && mine.premul == 0 && mine.reproducible == ZC_SWITCH_DEFAULT &&
                   mine.traffic == ZC_TRAFFIC_DEFAULT,
               ZC_ARGUMENT, "rank %d: zc_window_view moves nothing: deadline_ns is the only option that it has",
               comm.rank());
    ZC_TRY(window->view(mine.deadline_ns));
    *all = window->memory(0);
    *bytes = window->total_bytes();
    return ZC_OK;
  });
}

zc_status zc_window_signal(zc_window* window, uint64_t generation) {
  return with_words(window, [&] {
    const std::int32_t rank = window->comm().rank();
    std::uint64_t before = window->word(rank, 0).load();
    do {
      ZC_REQUIRE(generation >= before, ZC_STATE, "rank %d: generation %llu after %llu: it may not fall", rank,
                 static_cast<unsigned long long>(generation), static_cast<unsigned long long>(before));
    } while (!window->word(rank, 0).compare_exchange_strong(before, generation));
    window->comm().control().ring_all();
    return ZC_OK;
  });
}

zc_status zc_window_wait(zc_window* window, int32_t rank, uint64_t generation, const zc_wait_options* options) {
  return with_wait(window, options, [&](const comm::WaitSpec& spec) {
    window->check_rank(rank);
    return window->wait(rank, generation, spec);
  });
}

zc_status zc_window_read(zc_window* window, int32_t rank, size_t offset_bytes, void* destination, size_t bytes,
                         uint64_t generation, const zc_wait_options* options) {
  return with_wait(window, options, [&](const comm::WaitSpec& spec) {
    return window->read(rank, offset_bytes, destination, bytes, generation, ZC_TRAFFIC_DATA, spec);
  });
}

zc_status zc_window_load(zc_window* window, int32_t rank, size_t word, uint64_t* value) {
  return with_words(window, [&] {
    window->check_word(rank, word);
    ZC_REQUIRE(value != nullptr, ZC_ARGUMENT, "value is NULL");
    *value = window->word(rank, word).load();
    return ZC_OK;
  });
}

zc_status zc_window_store(zc_window* window, int32_t rank, size_t word, uint64_t value) {
  return with_words(window, [&] {
    window->check_word(rank, word);
    window->word(rank, word).store(value);
    window->comm().control().ring_all();
    return ZC_OK;
  });
}

zc_status zc_window_add(zc_window* window, int32_t rank, size_t word, uint64_t delta, uint64_t* before) {
  return with_words(window, [&] {
    window->check_word(rank, word);
    const std::uint64_t held = window->word(rank, word).fetch_add(delta);
    if (before != nullptr) *before = held;
    window->comm().control().ring_all();
    return ZC_OK;
  });
}

zc_status zc_window_compare_swap(zc_window* window, int32_t rank, size_t word, uint64_t expected, uint64_t desired,
                                 uint64_t* before) {
  return with_words(window, [&] {
    window->check_word(rank, word);
    window->word(rank, word).compare_exchange_strong(expected, desired);
    if (before != nullptr) *before = expected;
    return ZC_OK;
  });
}

zc_status zc_window_reduce(zc_window* window, const zc_window_reduction* reduction) {
  return guard([&]() -> zc_status {
    ZC_TRY(checked(window).comm().check_alive());
    window->reduce(read_struct(reduction, "zc_window_reduction"));
    return ZC_OK;
  });
}
