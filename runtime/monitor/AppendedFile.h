//===- AppendedFile.h - a file that grows by whole records ----------------===//
#pragma once

#include "core/Status.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace ds::runtime {

class AppendedFile {
public:
  /// Throws ds::Error, a sentence that begins with `what`, where the file cannot be written.
  AppendedFile(std::string what, std::string path);
  ~AppendedFile();
  AppendedFile(const AppendedFile &) = delete;
  AppendedFile &operator=(const AppendedFile &) = delete;

  bool isEmpty() const;
  /// All of it or nothing: a reader would stop at half a record.
  Status append(std::string_view record) noexcept;

private:
  const std::string what_, path_;
  int file_ = -1;
};

} // namespace ds::runtime
