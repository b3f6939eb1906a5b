//===- Status.h - the outcome of code that must not throw -----------------===//
#pragma once

#include "core/Shortening.h"

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstddef>
#include <cstdio>

namespace ds {

/// The outcome of an execute: ok, or one sentence. Returned by value; formats text only when something failed and never
/// allocates, so that a step stays free of heap traffic.
class [[nodiscard]] Status {
public:
  static Status success() { return {}; }

  __attribute__((format(printf, 1, 2))) static Status failure(const char *format, ...) {
    Status status;
    status.failed_ = true;
    std::array<char, 16384> whole; // two of the longest paths, and words between
    va_list arguments;
    va_start(arguments, format);
    const int length = std::vsnprintf(whole.data(), whole.size(), format, arguments);
    va_end(arguments);
    copyShortened({whole.data(), std::min(size_t(std::max(0, length)), whole.size() - 1)}, status.text_);
    return status;
  }

  bool ok() const { return !failed_; }
  /// The sentence of a failure, of which a long path lacks the middle; empty when ok.
  const char *message() const { return text_.data(); }

private:
  bool failed_ = false;
  std::array<char, 512> text_{};
};

} // namespace ds
