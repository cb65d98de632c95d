// The ranks of the job as this process sees them: it runs all of them as threads, or it is one of them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "job.hpp"
#include "options.hpp"

namespace gpt {

class Ranks {
 public:
  virtual ~Ranks() = default;

  virtual std::int32_t count() const = 0;
  // Whether it is this process that prints and writes.
  virtual bool speaks() const = 0;
  // "" or "rank 2: ", for errors.
  virtual std::string name() const = 0;

  // Throws unless all processes were told the same.
  virtual void require_same(const std::string& options_hash) = 0;
  // Trains one row, with all ranks or with one. Nothing for a process that has no part in it. Throws the first error.
  virtual std::optional<Row> run(const JobOptions& options, const Text& text, const Progress& progress) = 0;
  // Whether all processes say that all is well. Each waits for all others.
  virtual bool all_well(bool well) = 0;
  // Ends the other processes' waits: this one cannot go on.
  virtual void abort() = 0;
};

// Ranks that are threads of this process.
std::unique_ptr<Ranks> thread_ranks(std::int32_t count);

// This process is one rank of a job that a launcher has started, or that was given an id. Returns when all have come.
std::unique_ptr<Ranks> process_ranks(const JobId& id);

}  // namespace gpt
