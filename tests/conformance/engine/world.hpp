// A small model on thread ranks: layouts in one expression, engines that free themselves, and values that say which
// generation, tensor and element they are. Poison is on in every program that includes this.
#pragma once

#include "support/rank_threads.hpp"

#include <zerocomm/zerocomm.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace zerocomm::test {

inline const int poison_is_on = setenv("ZC_POISON", "1", 1);

inline zc_tensor tensor(const char* name, const char* unit, std::size_t count, zc_dtype dtype = ZC_DTYPE_F32) {
  zc_tensor result{};
  result.struct_size = sizeof result;
  result.name = name;
  result.unit = unit;
  result.count = count;
  result.dtype = dtype;
  return result;
}
inline zc_tensor frozen(zc_tensor of) {
  of.frozen = 1;
  return of;
}
inline zc_tensor tied(zc_tensor of, const char* owner) {
  of.tied_to = owner;
  return of;
}

inline zc_layout_config shape(std::int32_t ranks, zc_stage stage, std::size_t bucket_bytes = 0,
                              zc_placement placement = ZC_PLACEMENT_DEFAULT) {
  zc_layout_config config{};
  config.struct_size = sizeof config;
  config.ranks = ranks;
  config.stage = stage;
  config.bucket_bytes = bucket_bytes;
  config.placement = placement;
  return config;
}

class Model {
 public:
  Model(const std::vector<zc_tensor>& tensors, const zc_layout_config& config) : tensors_(tensors) {
    zc_layout* made = nullptr;
    RANK_OK(zc_layout_create(tensors.data(), tensors.size(), &config, &made));
    layout_.reset(made);
    info_.struct_size = sizeof info_;
    RANK_OK(zc_layout_get_info(made, &info_));
  }
  const zc_layout* get() const { return layout_.get(); }
  const zc_layout_info& info() const { return info_; }
  const zc_tensor& tensor_of(std::size_t tensor) const { return tensors_[tensor]; }
  zc_use_info use(std::size_t index) const {
    zc_use_info info{};
    info.struct_size = sizeof info;
    RANK_OK(zc_layout_get_use(get(), index, &info));
    return info;
  }
  zc_unit_info unit(std::size_t index) const {
    zc_unit_info info{};
    info.struct_size = sizeof info;
    RANK_OK(zc_layout_get_unit(get(), index, &info));
    return info;
  }
  std::size_t use_of(std::size_t unit, std::size_t position) const {
    std::size_t use = 0;
    RANK_OK(zc_layout_unit_use(get(), unit, position, &use));
    return use;
  }
  bool trainable(std::size_t use_index) const { return tensors_[use(use_index).tensor].frozen == 0; }

 private:
  struct Free {
    void operator()(zc_layout* layout) const { zc_layout_destroy(layout); }
  };
  std::vector<zc_tensor> tensors_;
  std::unique_ptr<zc_layout, Free> layout_;
  zc_layout_info info_{};
};

// What element `element` of a stored tensor holds in version `version` of the parameters; exact in its dtype.
inline float value_of(zc_dtype dtype, std::uint64_t version, std::size_t tensor, std::size_t element) {
  if (dtype != ZC_DTYPE_F32) return static_cast<float>((version * 37 + tensor * 11 + element * 3) % 251);
  return static_cast<float>(version % 60 * 131072 + tensor % 32 * 4096 + element % 4096);
}

inline float read_element(zc_dtype dtype, const void* data, std::size_t element) {
  if (dtype == ZC_DTYPE_F32) return static_cast<const float*>(data)[element];
  if (dtype == ZC_DTYPE_U8) return static_cast<const unsigned char*>(data)[element];
  float result = 0;
  std::uint32_t bits = std::uint32_t{static_cast<const std::uint16_t*>(data)[element]} << 16;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}

inline zc_zero_config options() {
  zc_zero_config config{};
  config.struct_size = sizeof config;
  return config;
}

class TestEngine {
 public:
  TestEngine(zc_comm* comm, const Model& model, const zc_zero_config& config = options()) : model_(&model) {
    zc_zero* made = nullptr;
    RANK_OK(zc_zero_create(comm, model.get(), &config, &made));
    zero_.reset(made);
  }
  operator zc_zero*() const { return zero_.get(); }  // NOLINT: a stand-in for the handle
  const Model& model() const { return *model_; }

  // Values of a version for a unit, given as f32 (bytes where the tensor holds bytes). Frozen tensors have version 0
  // only.
  void load_unit(std::size_t unit, std::uint64_t version, std::int32_t root = ZC_NONE) const {
    const std::size_t count = model_->unit(unit).use_count;
    std::vector<std::vector<float>> floats(count);
    std::vector<std::vector<unsigned char>> bytes(count);
    std::vector<const void*> full(count, nullptr);
    for (std::size_t i = 0; i < count; ++i) {
      const zc_use_info use = model_->use(model_->use_of(unit, i));
      if (use.tensor != use.stored_tensor) continue;
      const zc_tensor& tensor = model_->tensor_of(use.tensor);
      const zc_dtype dtype = tensor.dtype;
      for (std::size_t e = 0; e < use.in_tensor.count; ++e) {
        const float value = value_of(dtype, tensor.frozen != 0 ? 0 : version, use.tensor, use.in_tensor.offset + e);
        if (dtype == ZC_DTYPE_U8)
          bytes[i].push_back(static_cast<unsigned char>(value));
        else
          floats[i].push_back(value);
      }
      full[i] = dtype == ZC_DTYPE_U8 ? static_cast<const void*>(bytes[i].data()) : floats[i].data();
    }
    RANK_OK(zc_zero_load(zero_.get(), unit, full.data(), ZC_DTYPE_F32, root));
  }
  void load_all(std::uint64_t version = 0) const {
    for (std::size_t unit = 0; unit < model_->info().unit_count; ++unit) load_unit(unit, version);
  }

  std::vector<const void*> acquire(std::size_t unit) const {
    std::vector<const void*> tensors(model_->unit(unit).use_count);
    RANK_OK(zc_zero_acquire(zero_.get(), unit, tensors.data(), tensors.size(), nullptr));
    return tensors;
  }
  void check_values(std::size_t unit, const std::vector<const void*>& tensors, std::uint64_t version) const {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const zc_use_info use = model_->use(model_->use_of(unit, i));
      const zc_tensor& tensor = model_->tensor_of(use.stored_tensor);
      for (std::size_t e = 0; e < use.in_tensor.count; ++e) {
        const float wanted =
            value_of(tensor.dtype, tensor.frozen != 0 ? 0 : version, use.stored_tensor, use.in_tensor.offset + e);
        const float found = read_element(tensor.dtype, tensors[i], e);
        RANK_CHECK(found == wanted, "unit %zu, tensor %s, element %zu of version %llu: %g instead of %g", unit,
                   tensor.name, e, static_cast<unsigned long long>(version), static_cast<double>(found),
                   static_cast<double>(wanted));
      }
    }
  }
  void visit(std::size_t unit, std::uint64_t version) const {
    check_values(unit, acquire(unit), version);
    RANK_OK(zc_zero_release(zero_.get(), unit, nullptr));
  }

  struct Pieces {
    const zc_zero_piece* data = nullptr;
    std::size_t count = 0, state_count = 0;
    const zc_zero_piece* begin() const { return data; }
    const zc_zero_piece* end() const { return data + count; }
  };
  Pieces pieces() const {
    Pieces result;
    RANK_OK(zc_zero_pieces(zero_.get(), &result.data, &result.count, &result.state_count));
    return result;
  }
  // The optimizer of these tests: writes a version. Between update_begin and publish.
  void write(std::uint64_t version) const {
    for (const zc_zero_piece& piece : pieces())
      for (std::size_t i = 0; i < piece.count; ++i)
        piece.master[i] =
            value_of(model_->tensor_of(piece.tensor).dtype, version, piece.tensor, piece.tensor_offset + i);
    RANK_OK(zc_zero_cast(zero_.get()));
  }
  void update(std::uint64_t version) const {
    RANK_OK(zc_zero_update_begin(zero_.get()));
    write(version);
    RANK_OK(zc_zero_publish(zero_.get(), nullptr));
  }
  // Every reduced gradient of this rank, by (tensor, element).
  void check_gradients(const std::function<float(std::size_t tensor, std::size_t element)>& wanted) const {
    for (const zc_zero_piece& piece : pieces())
      for (std::size_t i = 0; i < piece.count; ++i) {
        const float found = piece.gradient[i], right = wanted(piece.tensor, piece.tensor_offset + i);
        RANK_CHECK(found == right, "gradient %zu of tensor %s: %g instead of %g", piece.tensor_offset + i,
                   model_->tensor_of(piece.tensor).name, static_cast<double>(found), static_cast<double>(right));
      }
  }
  zc_zero_stats stats() const {
    zc_zero_stats stats{};
    stats.struct_size = sizeof stats;
    RANK_OK(zc_zero_get_stats(zero_.get(), &stats));
    return stats;
  }
  zc_zero_ledger ledger() const {
    zc_zero_ledger ledger{};
    ledger.struct_size = sizeof ledger;
    RANK_OK(zc_zero_get_ledger(zero_.get(), &ledger));
    return ledger;
  }
  // Elements of this rank's shards that belong to no piece are zero, in all states that can be had.
  void check_padding(std::int32_t rank) const {
    for (std::size_t buffer = 0; buffer < model_->info().buffer_count; ++buffer) {
      const zc_piece* pieces = nullptr;
      std::size_t piece_count = 0;
      RANK_OK(zc_layout_pieces(model_->get(), rank, buffer, &pieces, &piece_count));
      for (const zc_state state : {ZC_STATE_PARAMETER, ZC_STATE_MASTER, ZC_STATE_GRADIENT}) {
        void* shard = nullptr;
        std::size_t count = 0;
        if (zc_zero_state(zero_.get(), state, buffer, &shard, &count) != ZC_OK) continue;
        zc_buffer_info info{};
        info.struct_size = sizeof info;
        RANK_OK(zc_layout_get_buffer(model_->get(), buffer, &info));
        const zc_dtype dtype = state == ZC_STATE_PARAMETER ? info.dtype : ZC_DTYPE_F32;
        std::vector<bool> real(count, false);
        for (std::size_t p = 0; p < piece_count; ++p)
          std::fill_n(real.begin() + static_cast<std::ptrdiff_t>(pieces[p].shard_offset), pieces[p].count, true);
        for (std::size_t e = 0; e < count; ++e)
          RANK_CHECK(real[e] || read_element(dtype, shard, e) == 0,
                     "padding element %zu of buffer %zu, state %d is not zero", e, buffer, static_cast<int>(state));
      }
    }
  }

 private:
  struct Free {
    void operator()(zc_zero* zero) const { zc_zero_destroy(zero); }
  };
  const Model* model_;
  std::unique_ptr<zc_zero, Free> zero_;
};

// Gradients of one pass of one rank, in the caller's memory until end.
class Gradients {
 public:
  using Rule = std::function<float(std::size_t use, std::size_t element)>;
  Gradients(const Model& model, const Rule& rule) : f32_(model.info().use_count), bf16_(model.info().use_count) {
    for (std::size_t use = 0; use < f32_.size(); ++use) {
      const zc_use_info info = model.use(use);
      const zc_tensor& of = model.tensor_of(info.tensor);
      half_.push_back((of.gradient_dtype != ZC_DTYPE_NONE ? of.gradient_dtype : of.dtype) == ZC_DTYPE_BF16);
      for (std::size_t e = 0; e < info.in_tensor.count; ++e) {
        const float value = rule(use, e);
        std::uint32_t bits = 0;
        std::memcpy(&bits, &value, sizeof bits);
        f32_[use].push_back(value);
        bf16_[use].push_back(static_cast<std::uint16_t>(bits >> 16));
      }
    }
  }
  const void* of(std::size_t use) const {
    return half_[use] ? static_cast<const void*>(bf16_[use].data()) : f32_[use].data();
  }
  void report_all(const TestEngine& engine) const {
    for (std::size_t use = 0; use < f32_.size(); ++use)
      if (engine.model().trainable(use)) RANK_OK(zc_zero_grad_ready(engine, use, of(use), nullptr));
  }

 private:
  std::vector<std::vector<float>> f32_;
  std::vector<std::vector<std::uint16_t>> bf16_;
  std::vector<bool> half_;
};

// Runs `body` on several threads of one rank; the first failure is thrown again here.
inline void run_threads(int count, const std::function<void(int)>& body) {
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(count));
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t)
    threads.emplace_back([&, t] {
      try {
        body(t);
      } catch (...) {
        failures[static_cast<std::size_t>(t)] = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

inline void sleep_ms(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Two dtypes, a frozen tensor and a tie in three units.
inline std::vector<zc_tensor> mixed() {
  return {tensor("w", "u0", 37, ZC_DTYPE_BF16),
          tensor("b", "u0", 5),
          frozen(tensor("f", "u1", 9)),
          tensor("v", "u1", 20),
          tied(tensor("again", "u2", 37, ZC_DTYPE_BF16), "w"),
          tensor("last", "u2", 3)};
}

}  // namespace zerocomm::test
