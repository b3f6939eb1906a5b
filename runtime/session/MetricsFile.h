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

/// A JSON object a line, written at once when it is complete, so that a reader may follow. Allocates nothing after it
/// is opened.
class MetricsFile {
public:
  /// Empties the file; throws ds::Error when it cannot be written. An empty path: everything is dropped.
  explicit MetricsFile(const std::string &path);
  ~MetricsFile();
  MetricsFile(const MetricsFile &) = delete;
  MetricsFile &operator=(const MetricsFile &) = delete;

  Status write(const StepReport &report) noexcept;
  Status write(const EvaluationReport &report) noexcept;
  /// Of all ranks; the last line. May allocate: no step follows.
  Status write(std::span<const SummaryReport> ranks);

private:
  void append(std::string_view text) noexcept;
  void append(const Scalar &value) noexcept;
  void append(const std::optional<Scalar> &value) noexcept;
  void append(std::string_view key, uint64_t value) noexcept;
  Status writeLine() noexcept;
  Status writeBytes(std::string_view bytes) noexcept;

  const std::string path_;
  int file_ = -1;
  std::array<char, 2048> line_;
  size_t used_ = 0;
};

} // namespace ds::runtime
