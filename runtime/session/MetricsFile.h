//===- MetricsFile.h - --metrics ------------------------------------------===//
#pragma once

#include "core/Status.h"
#include "runtime/session/StepReport.h"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ds::runtime {

/// A JSON object a line, written at once when it is complete, so that a reader may follow. A line that cannot be
/// written whole is not there at all, and the next one is tried again. Allocates nothing after it is opened.
class MetricsFile {
public:
  /// A file that an older run left is moved aside, to the first of PATH.1, PATH.2, ... that is free, or, where this run
  /// `resumes` it, gets its lines. Throws ds::Error when it cannot be written or another run is writing it. An empty
  /// path: everything is dropped.
  explicit MetricsFile(const std::string &path, bool resumes = false);
  ~MetricsFile();
  MetricsFile(const MetricsFile &) = delete;
  MetricsFile &operator=(const MetricsFile &) = delete;

  /// Where the older run's lines are now; empty: there were none.
  const std::string &movedTo() const { return movedTo_; }

  /// SHA-256 of the plan's file and the id of this run, in hexadecimal digits: members of the first line of a step.
  void identify(const std::string &plan, const std::string &run);

  Status write(const StepReport &report) noexcept;
  Status write(const EvaluationReport &report) noexcept;
  /// Of all ranks; the last line. May allocate: no step follows.
  Status write(std::span<const SummaryReport> ranks);

private:
  void open();
  [[noreturn]] void refuse(int problem);
  void moveAside();
  void endHalfLine(uint64_t bytes);
  void append(std::string_view text) noexcept;
  void append(const Scalar &value) noexcept;
  /// A number, or null: JSON has no NaN and no infinity.
  void append(const std::optional<Scalar> &value) noexcept;
  void appendNonFinite(const StepReport &report) noexcept;
  void append(std::string_view key, uint64_t value) noexcept;
  Status writeLine() noexcept;
  Status writeBytes(std::string_view bytes) noexcept;

  const std::string path_;
  std::string movedTo_, identity_;
  int file_ = -1; // locked while this run writes it
  std::array<char, 2048> line_;
  size_t used_ = 0;
};

} // namespace ds::runtime
