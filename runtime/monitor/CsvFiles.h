//===- CsvFiles.h - a table a metric --------------------------------------===//
#pragma once

#include "runtime/monitor/AppendedFile.h"
#include "runtime/monitor/Sink.h"

#include <filesystem>
#include <map>
#include <string>

namespace ds::runtime {

/// "Train/Samples/lr" is Train_Samples_lr.csv with the columns step (samples, as DeepSpeed has it) and lr.
class CsvFiles final : public Sink {
public:
  /// Makes `folder`. Throws ds::Error.
  explicit CsvFiles(std::filesystem::path folder);

  /// A file is opened, and gets its heading if it is new, when its first value comes.
  Status write(const char *tag, uint64_t samples, const Scalar &value) noexcept override;
  std::string place() const override { return folder_.string(); }

private:
  AppendedFile &fileOf(const std::string &tag);

  const std::filesystem::path folder_;
  std::map<std::string, AppendedFile> files_; // by tag
};

} // namespace ds::runtime
