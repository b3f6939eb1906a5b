//===- Status.h - the outcome of code that must not throw -----------------===//
#pragma once

#include <array>
#include <cstdarg>
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
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(status.text_.data(), status.text_.size(), format, arguments);
    va_end(arguments);
    return status;
  }

  bool ok() const { return !failed_; }
  /// The sentence of a failure; empty when ok.
  const char *message() const { return text_.data(); }

private:
  bool failed_ = false;
  std::array<char, 512> text_{};
};

} // namespace ds
