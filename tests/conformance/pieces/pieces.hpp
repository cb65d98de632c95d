// Reducers and fetchers of one rank, over the models of tests/conformance/engine/world.hpp.
#pragma once

#include "conformance/engine/world.hpp"

#include <map>
#include <set>

namespace zerocomm::test {

inline zc_reducer_config reducer_options() {
  zc_reducer_config config{};
  config.struct_size = sizeof config;
  return config;
}
inline zc_fetcher_config fetcher_options() {
  zc_fetcher_config config{};
  config.struct_size = sizeof config;
  return config;
}

inline zc_buffer_info buffer_of(const Model& model, std::size_t buffer) {
  zc_buffer_info info{};
  info.struct_size = sizeof info;
  RANK_OK(zc_layout_get_buffer(model.get(), buffer, &info));
  return info;
}

// Tied, empty, frozen, tiny and mixed tensors in five units.
inline std::vector<zc_tensor> mixed_tensors() {
  return {tensor("embed", "first", 37), tensor("w0", "u0", 100),
          tensor("b0", "u0", 5),        frozen(tensor("f1", "u1", 9, ZC_DTYPE_U8)),
          tensor("none", "u2", 0),      tensor("h2", "u2", 41, ZC_DTYPE_BF16),
          tensor("w3", "u3", 130),      tied(tensor("head", "last", 37), "embed"),
          tensor("norm", "last", 7)};
}

class TestReducer {
 public:
  TestReducer(zc_comm* comm, const Model& model, const zc_reducer_config& config = reducer_options()) : model_(&model) {
    zc_reducer* made = nullptr;
    RANK_OK(zc_reducer_create(comm, model.get(), &config, &made));
    reducer_.reset(made);
  }
  operator zc_reducer*() const { return reducer_.get(); }  // NOLINT: a stand-in for the handle
  const Model& model() const { return *model_; }

  TestEngine::Pieces pieces() const {
    TestEngine::Pieces result;
    RANK_OK(zc_reducer_pieces(reducer_.get(), &result.data, &result.count, &result.state_count));
    return result;
  }
  void report_all(const Gradients& gradients) const {
    for (std::size_t use = 0; use < model_->info().use_count; ++use)
      if (model_->trainable(use)) RANK_OK(zc_reducer_grad_ready(reducer_.get(), use, gradients.of(use), nullptr));
  }
  void step(const Gradients& gradients) const {
    RANK_OK(zc_reducer_begin(reducer_.get(), ZC_PHASE_ONLY));
    report_all(gradients);
    RANK_OK(zc_reducer_end(reducer_.get()));
  }
  void check_gradients(const std::function<float(std::size_t tensor, std::size_t element)>& wanted) const {
    for (const zc_zero_piece& piece : pieces())
      for (std::size_t i = 0; i < piece.count; ++i) {
        const float found = piece.gradient[i], right = wanted(piece.tensor, piece.tensor_offset + i);
        RANK_CHECK(found == right, "gradient %zu of tensor %s: %g instead of %g", piece.tensor_offset + i,
                   model_->tensor_of(piece.tensor).name, static_cast<double>(found), static_cast<double>(right));
      }
  }
  zc_reducer_stats stats() const {
    zc_reducer_stats stats{};
    stats.struct_size = sizeof stats;
    RANK_OK(zc_reducer_get_stats(reducer_.get(), &stats));
    return stats;
  }
  zc_reducer_ledger ledger() const {
    zc_reducer_ledger ledger{};
    ledger.struct_size = sizeof ledger;
    RANK_OK(zc_reducer_get_ledger(reducer_.get(), &ledger));
    return ledger;
  }

 private:
  struct Free {
    void operator()(zc_reducer* reducer) const { zc_reducer_destroy(reducer); }
  };
  const Model* model_;
  std::unique_ptr<zc_reducer, Free> reducer_;
};

class TestFetcher {
 public:
  TestFetcher(zc_comm* comm, const Model& model, const zc_fetcher_config& config = fetcher_options()) : model_(&model) {
    RANK_OK(zc_comm_rank(comm, &rank_));
    zc_fetcher* made = nullptr;
    RANK_OK(zc_fetcher_create(comm, model.get(), &config, &made));
    fetcher_.reset(made);
  }
  operator zc_fetcher*() const { return fetcher_.get(); }  // NOLINT: a stand-in for the handle
  const Model& model() const { return *model_; }

  // Puts a version into this rank's shards with zc_partition. Frozen tensors have version 0 only.
  void write(std::uint64_t version) const {
    std::vector<void*> shards;
    for (std::size_t buffer = 0; buffer < model_->info().buffer_count; ++buffer) {
      std::size_t count = 0;
      RANK_OK(zc_fetcher_shard(fetcher_.get(), buffer, &shards.emplace_back(), &count));
      RANK_CHECK(count == buffer_of(*model_, buffer).shard_count, "buffer %zu: %zu elements", buffer, count);
    }
    for (std::size_t unit = 0; unit < model_->info().unit_count; ++unit) {
      std::vector<std::vector<std::byte>> values(model_->unit(unit).use_count);
      std::vector<const void*> full(values.size(), nullptr);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const zc_use_info use = model_->use(model_->use_of(unit, i));
        const zc_tensor& of = model_->tensor_of(use.tensor);
        const std::size_t bytes = zc_dtype_bytes(of.dtype);
        for (std::size_t e = 0; e < use.in_tensor.count; ++e) {
          const float value = value_of(of.dtype, of.frozen != 0 ? 0 : version, use.tensor, use.in_tensor.offset + e);
          std::uint32_t bits = 0;
          std::memcpy(&bits, &value, sizeof bits);
          if (of.dtype == ZC_DTYPE_BF16) bits >>= 16;
          if (of.dtype == ZC_DTYPE_U8) bits = static_cast<std::uint32_t>(value);
          const auto* at = reinterpret_cast<const std::byte*>(&bits);
          values[i].insert(values[i].end(), at, at + bytes);
        }
        full[i] = values[i].data();
      }
      RANK_OK(zc_partition(model_->get(), rank_, unit, full.data(), shards.data()));
    }
  }
  void update(std::uint64_t version) const {
    RANK_OK(zc_fetcher_update_begin(fetcher_.get()));
    write(version);
    RANK_OK(zc_fetcher_publish(fetcher_.get(), nullptr));
  }

  std::vector<const void*> acquire(std::size_t unit) const {
    std::vector<const void*> tensors(model_->unit(unit).use_count);
    RANK_OK(zc_fetcher_acquire(fetcher_.get(), unit, tensors.data(), tensors.size(), nullptr));
    return tensors;
  }
  void visit(std::size_t unit, std::uint64_t version) const {
    const std::vector<const void*> tensors = acquire(unit);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const zc_use_info use = model_->use(model_->use_of(unit, i));
      const zc_tensor& of = model_->tensor_of(use.stored_tensor);
      for (std::size_t e = 0; e < use.in_tensor.count; ++e) {
        const float found = read_element(of.dtype, tensors[i], e);
        const float right =
            value_of(of.dtype, of.frozen != 0 ? 0 : version, use.stored_tensor, use.in_tensor.offset + e);
        RANK_CHECK(found == right, "element %zu of tensor %s, version %llu: %g instead of %g", e, of.name,
                   static_cast<unsigned long long>(version), static_cast<double>(found), static_cast<double>(right));
      }
    }
    RANK_OK(zc_fetcher_release(fetcher_.get(), unit, nullptr));
  }
  void pass(const char* name, const std::vector<std::size_t>& units, std::uint64_t version) const {
    RANK_OK(zc_fetcher_begin(fetcher_.get(), name));
    for (const std::size_t unit : units) visit(unit, version);
    RANK_OK(zc_fetcher_end(fetcher_.get()));
  }
  std::vector<std::size_t> all_units() const {
    std::vector<std::size_t> units(model_->info().unit_count);
    for (std::size_t i = 0; i < units.size(); ++i) units[i] = i;
    return units;
  }
  zc_fetcher_stats stats() const {
    zc_fetcher_stats stats{};
    stats.struct_size = sizeof stats;
    RANK_OK(zc_fetcher_get_stats(fetcher_.get(), &stats));
    return stats;
  }
  zc_fetcher_ledger ledger() const {
    zc_fetcher_ledger ledger{};
    ledger.struct_size = sizeof ledger;
    RANK_OK(zc_fetcher_get_ledger(fetcher_.get(), &ledger));
    return ledger;
  }

 private:
  struct Free {
    void operator()(zc_fetcher* fetcher) const { zc_fetcher_destroy(fetcher); }
  };
  const Model* model_;
  std::int32_t rank_ = 0;
  std::unique_ptr<zc_fetcher, Free> fetcher_;
};

}  // namespace zerocomm::test
