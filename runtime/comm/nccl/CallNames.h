//===- CallNames.h - numbers for what a stream does -----------------------===//
#pragma once

#include "core/RunningClock.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace ds::runtime {

/// Collectives and messages of one connection by number, so that a device can say by one store which of them it has
/// come to. Texts are copied, since they are read by a watchdog that may outlive the command; nothing allocates. One
/// thread numbers, any reads.
class CallNames {
public:
  struct Name {
    const char *verb = ""; ///< "all_gather", "send"
    std::array<char, 120> what{};
  };

  /// The number of `what`, which is known by its address.
  uint32_t number(const char *verb, const char *what) noexcept {
    const uint32_t known = known_;
    for (uint32_t i = 0; i < known; ++i)
      if (addresses_[i] == what && names_[i].verb == verb)
        return i;
    if (known == names_.size())
      return uint32_t(known - 1);
    addresses_[known] = what;
    names_[known].verb = verb;
    std::snprintf(names_[known].what.data(), names_[known].what.size(), "%s", known + 1 < names_.size() ? what : "...");
    known_ = known + 1;
    return known;
  }

  /// The name behind a number; an empty one for a number that was not given out.
  const Name &operator[](uint32_t number) const noexcept {
    static constexpr Name none{};
    return number < known_ ? names_[number] : none;
  }

private:
  static constexpr size_t most = 256; // the last stands for all that come later
  std::array<const char *, most> addresses_{};
  std::array<Name, most> names_;
  std::atomic<uint32_t> known_ = 0;
};

/// Notices that a stream stays in one collective or message for longer than it may.
class Overdue {
public:
  using Time = RunningClock::Time;

  /// To be asked now and then; counts as in Progress.
  bool look(uint64_t begun, uint64_t done, Time now, std::chrono::milliseconds timeout) noexcept {
    if (begun <= done || begun != begun_) {
      begun_ = begun;
      since_ = now;
      return false;
    }
    return now - since_ > timeout;
  }

private:
  uint64_t begun_ = 0;
  Time since_;
};

} // namespace ds::runtime
