//===- EventFile.h - a file that TensorBoard reads ------------------------===//
#pragma once

#include "runtime/monitor/AppendedFile.h"
#include "runtime/monitor/Sink.h"

#include <filesystem>
#include <string>

namespace ds::runtime {

/// Records of events.proto, each framed as TensorFlow's: the length of the data as uint64, its checksum, the data, the
/// data's checksum; all little-endian. A checksum is CRC-32C, turned right by 15 bits, plus 0xa282ead8.
class EventFile final : public Sink {
public:
  /// Begins a file of its own in `folder`, which is made. Throws ds::Error.
  explicit EventFile(const std::filesystem::path &folder);

  Status write(const char *tag, uint64_t samples, const Scalar &value) noexcept override;
  std::string place() const override { return path_; }

private:
  const std::string path_;
  AppendedFile file_;
};

} // namespace ds::runtime
