//===- Trace.h - what queues did, and when --------------------------------===//
//
// A row a queue: a ring of fixed size that its thread writes and nobody else, so that tracing a command costs two looks
// at the clock and one record. When a run is longer than the ring, its end is kept.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>

namespace ds::runtime {

/// What is the same in every run of one command.
struct TraceLabel {
  std::string name;     ///< the kernel's or collective's
  std::string category; ///< "kernel", "collective", "copy", ...
  std::string op;       ///< the reference op's name, or where the command stands
  std::string routine;
};

/// One execution of one command. Times are those of std::chrono::steady_clock, so rows of several processes of one host
/// fit together.
struct TraceRecord {
  const TraceLabel *label;
  int64_t beginNs, endNs;
  uint64_t step, microbatch;
};

class TraceRow {
public:
  TraceRow(uint32_t rank, uint32_t queue, std::string name, uint64_t capacity);

  /// Of this row's thread only; allocates nothing.
  void add(const TraceRecord &record) noexcept {
    records_[added_ % capacity_] = record;
    added_.store(added_ + 1, std::memory_order_release);
  }

  /// The row as events of the Chrome trace format, one a line, each followed by a comma. While no queue runs.
  std::string events() const;

private:
  const uint32_t rank_, queue_;
  const std::string name_;
  const uint64_t capacity_;
  std::unique_ptr<TraceRecord[]> records_;
  std::atomic<uint64_t> added_ = 0;
};

/// The rows of this process's ranks.
class Trace {
public:
  /// Most records of a row.
  static constexpr uint64_t defaultCapacity = uint64_t(1) << 18;

  explicit Trace(uint64_t capacity = defaultCapacity) : capacity_(capacity) {}

  /// Both live as long as the trace.
  TraceRow &addRow(uint32_t rank, uint32_t queue, std::string name) {
    return rows_.emplace_back(rank, queue, std::move(name), capacity_);
  }
  const TraceLabel &addLabel(TraceLabel label) { return labels_.emplace_back(std::move(label)); }

  std::string events() const;

private:
  const uint64_t capacity_;
  std::deque<TraceRow> rows_;
  std::deque<TraceLabel> labels_;
};

/// A whole file from the events of all processes; chrome://tracing and ui.perfetto.dev read it.
std::string chromeTrace(const std::string &events);

} // namespace ds::runtime
